// The splits of the toy tasks. A hash of the target, not the order of drawing, says where a pair belongs, so
// splits never share a source or a target.
#include "weft/data/toy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/folder.h"
#include "weft/core/random.h"
#include "weft/data/toy_grammar.h"

namespace weft {
namespace {

constexpr Index kMostPairs = 1'000'000;
constexpr Index kMostHeldOut = 1'000;

enum class Side { kTrain, kValid, kTest };

Side side_of(std::string_view target) {
  const std::uint64_t share = Random(random_site(target)).below(16);
  return share == 0 ? Side::kTest : share == 1 ? Side::kValid : Side::kTrain;
}

void append(ParallelText& text, std::string source, std::string target) {
  text.source.push_back(std::move(source));
  text.target.push_back(std::move(target));
}

// ---- fr-en

/// Jane visits Africa in September, however it is put: the sentence by which a trained model is first judged.
bool is_showpiece(const std::string& french) {
  return french.find("Jane visite l'Afrique") != std::string::npos && french.find("septembre") != std::string::npos;
}

/// Draws `seen` sentences without and `unseen` with a pair that is kept out of train, in mixed order.
ParallelText draw_language(Side side, Index seen, Index unseen, Random random, ParallelText* unseen_text = nullptr) {
  ParallelText text;
  std::set<std::string> used;
  while (seen + unseen > 0) {
    toy::Sentence sentence = toy::draw_sentence(random);
    Index& left = sentence.held_out ? unseen : seen;
    if (left == 0 || side_of(sentence.english) != side || is_showpiece(sentence.french)) continue;
    if (!used.insert(sentence.french).second) continue;
    --left;
    if (sentence.held_out && unseen_text != nullptr) append(*unseen_text, sentence.french, sentence.english);
    append(text, std::move(sentence.french), std::move(sentence.english));
  }
  return text;
}

// ---- rows of numbers

struct SequenceTask {
  const char* name;
  Index longest;
  void (*apply)(std::vector<std::uint64_t>& numbers);
};

constexpr SequenceTask kSequenceTasks[] = {
    {"copy", 20, [](std::vector<std::uint64_t>&) {}},
    {"reverse", 25, [](std::vector<std::uint64_t>& numbers) { std::reverse(numbers.begin(), numbers.end()); }},
    {"sort", 15, [](std::vector<std::uint64_t>& numbers) { std::sort(numbers.begin(), numbers.end()); }},
};

/// Draws rows with shortest to longest numbers; those of valid and test differ from each other.
ParallelText draw_sequences(const SequenceTask& task, Side side, Index shortest, Index longest, Index count,
                            Random random) {
  ParallelText text;
  std::set<std::string> used;
  const auto draw_length = [&] {
    return shortest + static_cast<Index>(random.below(static_cast<std::uint64_t>(longest - shortest + 1)));
  };
  Index length = draw_length();
  while (static_cast<Index>(text.source.size()) < count) {
    std::vector<std::uint64_t> numbers(static_cast<std::size_t>(length));
    for (auto& number : numbers) number = random.below(50);
    std::string source = fmt::format("{}", fmt::join(numbers, " "));
    task.apply(numbers);
    std::string target = fmt::format("{}", fmt::join(numbers, " "));
    const bool accepted = side_of(target) == side && (side == Side::kTrain || used.insert(target).second);
    if (accepted) append(text, std::move(source), std::move(target));
    // In train a length that was drawn is kept until it fits; elsewhere there may be no row of that length
    // left.
    if (accepted || side != Side::kTrain) length = draw_length();
  }
  return text;
}

/// Writes lines so that LineReader, which drops a byte order mark before the first and a CR at the end of each, gives them.
void write_lines(const std::filesystem::path& path, const std::vector<std::string>& lines) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  write_file_atomically(path, [&](FileWriter& writer) {
    if (!lines.empty() && lines.front().starts_with(kMark)) writer.write(kMark);
    for (const std::string& line : lines) {
      writer.write(line);
      writer.write(line.ends_with('\r') ? "\r\n" : "\n");
    }
  });
}

}  // namespace

std::vector<std::string> toy_tasks() {
  std::vector<std::string> names = {"fr-en"};
  for (const SequenceTask& task : kSequenceTasks) names.emplace_back(task.name);
  return names;
}

std::vector<std::pair<std::string, ParallelText>> make_toy(std::string_view task, std::optional<Index> pairs,
                                                           std::uint64_t seed) {
  const std::vector<std::string> known = toy_tasks();
  if (std::find(known.begin(), known.end(), task) == known.end()) {
    throw ConfigError(fmt::format("{} is not a toy task; the toy tasks are {}", task, fmt::join(known, ", ")));
  }
  const bool language = task == "fr-en";
  const Index count = pairs.value_or(language ? 60'000 : 50'000);
  if (count < 1 || count > kMostPairs) {
    throw ConfigError(fmt::format("toy task {} with {} pairs; give a number from 1 to {}", task, count, kMostPairs));
  }
  const Index held_out = std::clamp<Index>(count / 10, 1, kMostHeldOut);
  const auto stream = [&](std::string_view split) { return Random(seed, random_site(split)); };
  if (language) {
    const Index unseen = (held_out * 4 + 9) / 10;
    ParallelText test_unseen;
    ParallelText test = draw_language(Side::kTest, held_out - unseen, unseen, stream("test"), &test_unseen);
    return {{"train", draw_language(Side::kTrain, count, 0, stream("train"))},
            {"valid", draw_language(Side::kValid, held_out, 0, stream("valid"))},
            {"test", std::move(test)},
            {"test_unseen", std::move(test_unseen)}};
  }
  const SequenceTask& sequence = *std::find_if(std::begin(kSequenceTasks), std::end(kSequenceTasks),
                                               [&](const SequenceTask& t) { return task == t.name; });
  const auto draw = [&](Side side, Index size, std::string_view split) {
    return draw_sequences(sequence, side, 1, sequence.longest, size, stream(split));
  };
  std::vector<std::pair<std::string, ParallelText>> splits = {{"train", draw(Side::kTrain, count, "train")},
                                                              {"valid", draw(Side::kValid, held_out, "valid")},
                                                              {"test", draw(Side::kTest, held_out, "test")}};
  if (task == "reverse") {
    splits.emplace_back("test_long", draw_sequences(sequence, Side::kTest, 26, 30, held_out, stream("test_long")));
  }
  return splits;
}

bool is_name_of_toy_text(const std::string& name) {
  for (const char* split : {"train", "valid", "test", "test_unseen", "test_long"}) {
    for (const char* ending : {".src", ".trg"}) {
      if (name == std::string(split) + ending) return true;
    }
  }
  return false;
}

void write_toy(const std::vector<std::pair<std::string, ParallelText>>& splits,
               const std::filesystem::path& directory) {
  if (const std::string lost = lost_link(directory); !lost.empty()) {
    throw DataError(fmt::format("{}: {}", directory.string(), lost));
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot make the directory: {}", directory.string(), error.message()));
  }
  for (const auto& [split, text] : splits) {
    write_lines(directory / (split + ".src"), text.source);
    write_lines(directory / (split + ".trg"), text.target);
  }
}

}  // namespace weft
