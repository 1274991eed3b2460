#include "weft/train/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/threads.h"
#include "weft/data/hold_out.h"
#include "weft/data/text_hash.h"
#include "weft/data/tokenizer.h"
#include "weft/data/utf8.h"
#include "weft/train/checked_text.h"
#include "weft/train/run_data.h"

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

/// A text of the configuration on its way through the checks.
struct Subject {
  CheckedText text;
  TextReport report;
  std::shared_ptr<const std::vector<FoldedPair>> shared = {};  // of all lines
  std::vector<Part> parts = {};                                // of all lines
  Part part = Part::kTrain;                                    // the lines of this part belong to the report

  const std::vector<FoldedPair>& folded() const { return *shared; }
};

void fold(Subject& subject) {
  const auto pairs = std::make_shared<std::vector<FoldedPair>>();
  pairs->reserve(static_cast<std::size_t>(subject.text.lines()));
  subject.text.read([&](const ParallelText& block, Index) { fold_pairs(block, *pairs); });
  subject.parts.assign(pairs->size(), subject.part);
  subject.shared = pairs;
}

void check_duplicates(Subject& subject) {
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

template <class Hash>
void check_overlap(const Subject& train, std::vector<Subject>& others, Oddity oddity, Hash hash) {
  const Sorted known = sorted(train.folded(), train.parts, Part::kTrain, hash);
  const bool target = oddity == Oddity::kTargetInTraining;
  for (Subject& other : others) {
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

/// Counts what training would keep, with the lengths and shares of the pairs that are not blank.
void measure(Subject& subject, const TextEncoder& source, const TextEncoder& target) {
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

/// The texts that the configuration names or makes; the training text is the first.
std::vector<Subject> subjects(const Config& config, Index limit) {
  std::vector<Subject> all;
  const auto add_text = [&](const std::string& split, CheckedText text) {
    all.push_back({std::move(text), TextReport(split, limit)});
    const Index holds = config.model.max_length - 1;
    all.back().report.longest = split == "train" ? std::min(config.data.max_length, holds) : holds;
  };
  if (!config.data.task.empty()) {
    const RunText text(config.data);
    for (const std::string split : {"train", "valid", "test"}) add_text(split, CheckedText(split, text.split(split)));
    return all;
  }
  for (const std::string split : {"train", "valid", "test"}) {
    auto files = text_files(config.data, split);
    if (split == "train" || !files.empty()) add_text(split, CheckedText(split, std::move(files)));
  }
  return all;
}

/// Moves what is held out of the training text into reports of its own.
void hold_out_parts(const Config& config, Index limit, Subject& train, std::vector<Subject>& others,
                    std::vector<std::string>& problems) {
  const DataConfig& data = config.data;
  if (data.hold_out_valid + data.hold_out_test == 0) return;
  try {
    train.parts =
        hold_out(train.folded(), data.hold_out_valid, data.hold_out_test, static_cast<std::uint64_t>(data.seed));
  } catch (const DataError& error) {
    problems.push_back(error.what());
    return;
  }
  for (const Part part : {Part::kTest, Part::kValid}) {
    if (std::count(train.parts.begin(), train.parts.end(), part) == 0) continue;
    Subject held_out{train.text, TextReport(part == Part::kValid ? "valid" : "test", limit), train.shared, train.parts,
                     part};
    held_out.report.longest = config.model.max_length - 1;
    others.insert(others.begin(), std::move(held_out));
  }
}

/// Why training would be refused for what was found in a text.
void add_problems(const TextReport& report, std::vector<std::string>& problems) {
  for (std::size_t i = 0; i < kOddities; ++i) {
    const auto oddity = static_cast<Oddity>(i);
    const Finding& finding = report.findings[oddity];
    if (!is_fault(oddity) || finding.count == 0) continue;
    problems.push_back(fmt::format("{}: {}: {}, the first is {}", report.split, meaning_of(oddity), finding.count,
                                   finding.first.front().text()));
  }
}

}  // namespace

Index SideReport::percentile(Index percent) const {
  Index all = 0;
  for (const auto& [length, count] : lengths) all += count;
  Index below = 0;
  for (const auto& [length, count] : lengths) {
    below += count;
    if (100 * below >= percent * all) return length;
  }
  return 0;
}

double SideReport::unknown_rate() const {
  return tokens == 0 ? 0.0 : static_cast<double>(unknown) / static_cast<double>(tokens);
}

double SideReport::characters_per_token() const {
  return tokens == 0 ? 0.0 : static_cast<double>(characters) / static_cast<double>(tokens);
}

DataReport check_data(const Config& config, Index limit) {
  DataReport result;
  std::vector<Subject> all = subjects(config, limit);
  for (Subject& subject : all) {
    subject.report.files = subject.text.scan(subject.report.findings);
    fold(subject);
  }
  Subject train = std::move(all.front());
  std::vector<Subject> others(std::make_move_iterator(all.begin() + 1), std::make_move_iterator(all.end()));
  hold_out_parts(config, limit, train, others, result.problems);

  check_duplicates(train);
  for (Subject& other : others) check_duplicates(other);
  check_overlap(train, others, Oddity::kPairInTraining, pair_hash);
  check_overlap(train, others, Oddity::kSourceInTraining, source_hash);
  check_overlap(train, others, Oddity::kTargetInTraining, target_hash);

  std::string no_vocabulary;
  try {
    const Vocabularies vocabularies = build_vocabularies(config.data, [&](FunctionRef<void(const ParallelText&)> take) {
      train.text.read([&](const ParallelText& block, Index first) {
        ParallelText kept = block;
        for (std::size_t i = 0; i < kept.source.size(); ++i) {
          if (train.parts[static_cast<std::size_t>(first) + i] == Part::kTrain) continue;
          kept.source[i].clear();
          kept.target[i].clear();
        }
        take(kept);
      });
      return ShortLines{};
    });
    result.source_vocabulary = vocabularies.source.size();
    result.target_vocabulary = vocabularies.target.size();
    const auto source_tokenizer =
        make_tokenizer(config.data.tokenizer, config.data.lowercase, vocabularies.source.subwords());
    const auto target_tokenizer =
        make_tokenizer(config.data.tokenizer, config.data.lowercase, vocabularies.target.subwords());
    const TextEncoder source{*source_tokenizer, vocabularies.source}, target{*target_tokenizer, vocabularies.target};
    measure(train, source, target);
    for (Subject& other : others) measure(other, source, target);
  } catch (const ConfigError& error) {
    result.problems.push_back(error.what());
  } catch (const DataError& error) {
    no_vocabulary = error.what();
  }

  others.insert(others.begin(), std::move(train));
  for (Subject& subject : others) {
    TextReport& report = subject.report;
    add_problems(report, result.problems);
    if (report.kept == 0 && result.source_vocabulary > 0 && report.split != "test") {
      result.problems.push_back(
          fmt::format("{}: no pair is left of {} ({} blank, {} with more than {} tokens on a side)", report.split,
                      report.pairs, report.blank, report.too_long, report.longest));
    }
    result.texts.push_back(std::move(report));
  }
  // Where there is another cause, it is that one's consequence.
  if (!no_vocabulary.empty() && result.problems.empty()) result.problems.push_back(no_vocabulary);
  return result;
}

}  // namespace weft
