#include "weft/train/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/tokenizer.h"
#include "weft/train/checkpoint.h"
#include "weft/train/data_subject.h"
#include "weft/train/run_data.h"

namespace weft {
namespace {

/// The texts that the configuration names or makes; the training text is the first.
std::vector<SubjectText> subjects(const Config& config, Index limit) {
  std::vector<SubjectText> all;
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
void hold_out_parts(const Config& config, Index limit, SubjectText& train, std::vector<SubjectText>& others,
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
    SubjectText held_out{train.text, TextReport(part == Part::kValid ? "valid" : "test", limit), train.shared,
                         train.parts, part};
    held_out.report.longest = config.model.max_length - 1;
    others.insert(others.begin(), std::move(held_out));
  }
}

Index count_pairs(const SubjectText& subject) {
  Index count = 0;
  for (std::size_t i = 0; i < subject.parts.size(); ++i) {
    count += subject.parts[i] == subject.part && subject.text.is_pair(static_cast<Index>(i));
  }
  return count;
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
  std::vector<SubjectText> all = subjects(config, limit);
  for (SubjectText& subject : all) {
    subject.report.files = subject.text.scan(subject.report.findings);
    hash_lines(subject);
  }
  SubjectText train = std::move(all.front());
  std::vector<SubjectText> others(std::make_move_iterator(all.begin() + 1), std::make_move_iterator(all.end()));
  hold_out_parts(config, limit, train, others, result.problems);

  check_duplicates(train);
  for (SubjectText& other : others) check_duplicates(other);
  check_overlap(train, others);

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
    const auto measure = [&](SubjectText& subject) {
      measure_lengths(subject, source, target);
      subject.report.measured = true;
    };
    measure(train);
    for (SubjectText& other : others) measure(other);
    require_room_in_header(vocabularies.source, vocabularies.target);
  } catch (const ConfigError& error) {
    result.problems.push_back(error.what());
  } catch (const DataError& error) {
    no_vocabulary = error.what();
  }

  others.insert(others.begin(), std::move(train));
  for (SubjectText& subject : others) {
    TextReport& report = subject.report;
    if (!report.measured) report.pairs = count_pairs(subject);
    add_problems(report, result.problems);
    if (report.measured && report.kept == 0 && report.split != "test") {
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
