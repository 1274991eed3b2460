#include "weft/data/hold_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/threads.h"
#include "weft/data/text_hash.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

using Number = std::uint32_t;  // of a pair: half the memory of an Index

/// Groups of pairs as trees (union by least number, path halving).
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), Number{0}); }

  Number root(Number i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(Number a, Number b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<Number> parent_;
};

/// Joins the pairs whose hash on one side is the same.
void join_equal(const std::vector<FoldedPair>& pairs, std::uint64_t FoldedPair::*side, Groups& groups) {
  std::vector<std::pair<std::uint64_t, Number>> sorted;
  sorted.reserve(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!pairs[i].blank()) sorted.emplace_back(pairs[i].*side, static_cast<Number>(i));
  }
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].first == sorted[i - 1].first) groups.join(sorted[i].second, sorted[i - 1].second);
  }
}

struct Group {
  std::uint64_t rank = std::numeric_limits<std::uint64_t>::max();  // the least of its pairs' random numbers
  Number root = 0;
  Number size = 0;
};

/// The groups in an order that depends on what they hold and the seed.
std::vector<Group> shuffled(const std::vector<FoldedPair>& pairs, Groups& groups, std::uint64_t seed) {
  std::vector<Group> all(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].blank()) continue;
    Group& group = all[groups.root(static_cast<Number>(i))];
    group.root = groups.root(static_cast<Number>(i));
    group.rank = std::min(group.rank, mix_hash(mix_hash(mix_hash(0, seed), pairs[i].source), pairs[i].target));
    ++group.size;
  }
  all.erase(std::remove_if(all.begin(), all.end(), [](const Group& g) { return g.size == 0; }), all.end());
  std::sort(all.begin(), all.end(),
            [](const Group& a, const Group& b) { return std::pair(a.rank, a.root) < std::pair(b.rank, b.root); });
  return all;
}

}  // namespace

void fold_pairs(const ParallelText& block, std::vector<FoldedPair>& pairs) {
  const std::size_t first = pairs.size();
  pairs.resize(first + block.source.size());
  parallel_for(static_cast<Index>(block.source.size()), 4096, [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      if (is_blank(block.source[i]) || is_blank(block.target[i])) continue;
      pairs[first + i] = {text_hash(fold_text(block.source[i])), text_hash(fold_text(block.target[i]))};
    }
  });
}

std::vector<Part> hold_out(const std::vector<FoldedPair>& pairs, Index valid, Index test, std::uint64_t seed) {
  if (pairs.size() > std::numeric_limits<Number>::max()) {
    throw DataError(
        fmt::format("{} pairs are too many to hold some out; name files for validation and test", pairs.size()));
  }
  const auto full = static_cast<Index>(
      std::count_if(pairs.begin(), pairs.end(), [](const FoldedPair& pair) { return !pair.blank(); }));
  if (valid + test >= full) {
    throw DataError(fmt::format(
        "data.hold_out_valid and data.hold_out_test ask for {} pairs, but the training text has {} without a "
        "blank side, and one must be left to train on; ask for fewer",
        valid + test, full));
  }
  Groups groups(pairs.size());
  join_equal(pairs, &FoldedPair::source, groups);
  join_equal(pairs, &FoldedPair::target, groups);
  std::vector<Part> part_of_root(pairs.size(), Part::kTrain);
  Index valid_left = valid, test_left = test;
  for (const Group& group : shuffled(pairs, groups, seed)) {
    for (const auto& [left, part] : {std::pair(&valid_left, Part::kValid), std::pair(&test_left, Part::kTest)}) {
      if (group.size > *left) continue;
      *left -= group.size;
      part_of_root[group.root] = part;
      break;
    }
  }
  if (valid_left + test_left > 0) {
    throw DataError(fmt::format(
        "only {} of {} pairs for validation and {} of {} for test can be held out: the others hang together "
        "by equal sentences, in groups that are larger than what is wanted; ask for other numbers or remove "
        "duplicates",
        valid - valid_left, valid, test - test_left, test));
  }
  std::vector<Part> parts(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) parts[i] = part_of_root[groups.root(static_cast<Number>(i))];
  return parts;
}

}  // namespace weft
