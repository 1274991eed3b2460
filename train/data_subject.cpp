#include "weft/train/data_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "weft/core/threads.h"
#include "weft/data/text_hash.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr Index kUnevenRatio = 3, kUnevenTokens = 10;

/// Hashes with the number of the line that each is of, in order.
using Sorted = std::vector<std::pair<std::uint64_t, Index>>;

std::uint64_t pair_hash(const FoldedPair& pair) { return mix_hash(pair.source, pair.target); }
std::uint64_t source_hash(const FoldedPair& pair) { return pair.source; }
std::uint64_t target_hash(const FoldedPair& pair) { return pair.target; }

template <class Hash>
Sorted sorted(const std::vector<FoldedPair>& pairs, const std::vector<Part>& parts, Part part, Hash hash) {
  Sorted result;
  result.reserve(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!pairs[i].blank() && parts[i] == part) result.emplace_back(hash(pairs[i]), static_cast<Index>(i));
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::string as_in(const CheckedText& text, Index line, bool target = false) {
  const auto [file, number] = text.place(line, target);
  return fmt::format("as {}:{}", file, number);
}

template <class Hash>
void note_overlap(const SubjectText& train, std::vector<SubjectText>& others, Oddity oddity, Hash hash) {
  const Sorted known = sorted(train.folded(), train.parts, Part::kTrain, hash);
  const bool target = oddity == Oddity::kTargetInTraining;
  for (SubjectText& other : others) {
    for (std::size_t i = 0; i < other.folded().size(); ++i) {
      const FoldedPair& pair = other.folded()[i];
      if (pair.blank() || other.parts[i] != other.part) continue;
      const std::uint64_t value = hash(pair);
      const auto found = std::lower_bound(known.begin(), known.end(), std::pair(value, Index{0}));
      if (found == known.end() || found->first != value) continue;
      other.text.note(oddity, static_cast<Index>(i), other.report.findings, target,
                      as_in(train.text, found->second, target));
    }
  }
}

Index code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

void add(SideReport& side, Index tokens, Index unknown, Index characters) {
  ++side.lengths[tokens];
  side.tokens += tokens;
  side.unknown += unknown;
  side.characters += characters;
}

}  // namespace

void hash_lines(SubjectText& subject) {
  const auto pairs = std::make_shared<std::vector<FoldedPair>>();
  pairs->reserve(static_cast<std::size_t>(subject.text.lines()));
  subject.text.read([&](const ParallelText& block, Index) { fold_pairs(block, *pairs); });
  subject.parts.assign(pairs->size(), subject.part);
  subject.shared = pairs;
}

void check_duplicates(SubjectText& subject) {
  const Sorted pairs = sorted(subject.folded(), subject.parts, subject.part, pair_hash);
  std::vector<std::pair<Index, Index>> again;  // a line, and the first with the same pair
  for (std::size_t i = 1, first = 0; i < pairs.size(); ++i) {
    if (pairs[i].first != pairs[first].first) {
      first = i;
    } else {
      again.emplace_back(pairs[i].second, pairs[first].second);
    }
  }
  std::sort(again.begin(), again.end());
  for (const auto& [line, first] : again) {
    subject.text.note(Oddity::kDuplicates, line, subject.report.findings, false, as_in(subject.text, first));
  }
}

void check_overlap(const SubjectText& train, std::vector<SubjectText>& others) {
  note_overlap(train, others, Oddity::kPairInTraining, pair_hash);
  note_overlap(train, others, Oddity::kSourceInTraining, source_hash);
  note_overlap(train, others, Oddity::kTargetInTraining, target_hash);
}

void measure_lengths(SubjectText& subject, const TextEncoder& source, const TextEncoder& target) {
  struct Measured {
    Index tokens = 0, unknown = 0, characters = 0;
    std::string first_unknown = {};
  };
  const auto measured = [](const TextEncoder& encoder, const std::string& line) {
    const auto tokens = encoder.tokenizer.split(line);
    const auto ids = encoder.vocabulary.ids(tokens);
    Measured result{static_cast<Index>(ids.size()), std::count(ids.begin(), ids.end(), kUnknown),
                    code_points(encoder.tokenizer.normalise(line))};
    const auto unknown = std::find(ids.begin(), ids.end(), kUnknown);
    if (unknown != ids.end()) result.first_unknown = tokens[static_cast<std::size_t>(unknown - ids.begin())];
    return result;
  };
  TextReport& report = subject.report;
  subject.text.read([&](const ParallelText& block, Index first) {
    const auto count = static_cast<Index>(block.source.size());
    std::vector<std::pair<Measured, Measured>> lines(block.source.size());
    parallel_for(count, 1024, [&](Index begin, Index end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        lines[i] = {measured(source, block.source[i]), measured(target, block.target[i])};
      }
    });
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Index line = first + static_cast<Index>(i);
      if (subject.parts[static_cast<std::size_t>(line)] != subject.part || !subject.text.is_pair(line)) continue;
      ++report.pairs;
      const auto& [s, t] = lines[i];
      const bool source_blank = is_blank(block.source[i]) || s.tokens == 0;
      const bool target_blank = is_blank(block.target[i]) || t.tokens == 0;
      if (source_blank || target_blank) {
        ++report.blank;
        subject.text.note(source_blank && target_blank ? Oddity::kBothBlank
                          : source_blank               ? Oddity::kSourceBlank
                                                       : Oddity::kTargetBlank,
                          line, report.findings, !source_blank);
        continue;
      }
      add(report.source, s.tokens, s.unknown, s.characters);
      add(report.target, t.tokens, t.unknown, t.characters);
      const Index longer = std::max(s.tokens, t.tokens), shorter = std::min(s.tokens, t.tokens);
      const auto note_sizes = [&, source_tokens = s.tokens, target_tokens = t.tokens](Oddity oddity) {
        subject.text.note(oddity, line, report.findings, false,
                          fmt::format("{} and {} tokens", source_tokens, target_tokens));
      };
      if (longer > report.longest) {
        ++report.too_long;
        note_sizes(Oddity::kTooLong);
      } else {
        ++report.kept;
      }
      if (longer > kUnevenRatio * shorter && longer >= kUnevenTokens) {
        note_sizes(Oddity::kUnevenLengths);
      }
      if (s.unknown + t.unknown > 0) {
        subject.text.note(Oddity::kUnknownTokens, line, report.findings, s.unknown == 0,
                          s.unknown > 0 ? s.first_unknown : t.first_unknown);
      }
      const FoldedPair& folded = subject.folded()[static_cast<std::size_t>(line)];
      if (folded.source == folded.target) subject.text.note(Oddity::kEqualSides, line, report.findings);
    }
  });
}

}  // namespace weft
