// SentencePiece ends the process where its own assumptions fail; so those are checked before it begins.
#include "weft/data/subword_trainer.h"

#include <fmt/format.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <new>
#include <unordered_map>

#include "weft/core/error.h"
#include "weft/data/subword_model.h"
#include "weft/data/subword_tokenizer.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

using Texts = std::span<const std::span<const std::string>>;

constexpr std::size_t kLongest = 4000;                  // SentencePiece skips lines of more than 4192 bytes
constexpr std::string_view kReserved = "\xE2\x96\x85";  // U+2585: SentencePiece skips lines that hold it
constexpr Index kFew = 1000;
constexpr int kRepeats = 256;

std::string prepared(const std::string& line, bool lowercase) {
  const std::string text = escape_for_subwords(normalise_text(line, lowercase));
  std::string made;
  made.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with(kReserved)) {
      made += ' ';
      at += kReserved.size();
      continue;
    }
    made += text[at++];
    // SentencePiece cuts sentences at its symbols, whose letters it would then not learn.
    if (rest.starts_with("<s>") || rest.starts_with("</s>") || rest.starts_with("<unk>")) made += ' ';
  }
  return made;
}

/// Hands the lines to SentencePiece one after the other, in parts of at most kLongest bytes.
class Lines : public sentencepiece::SentenceIterator {
 public:
  Lines(Texts texts, bool lowercase, int repeats) : texts_(texts), lowercase_(lowercase), repeats_(repeats) { Next(); }

  bool done() const override { return repeats_ == 0; }
  const std::string& value() const override { return part_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    while (rest_.empty() && !done()) next_line();
    if (done()) return;
    std::size_t length = rest_.size();
    if (length > kLongest) {
      length = rest_.rfind(' ', kLongest);
      if (length == rest_.npos || length == 0) {
        length = kLongest;
        while ((rest_[length] & 0xC0) == 0x80) --length;  // not within a code point
      }
    }
    part_ = rest_.substr(0, length);
    rest_.erase(0, length);
  }

 private:
  void next_line() {
    if (line_ < texts_[text_].size()) {
      rest_ = prepared(texts_[text_][line_++], lowercase_);
      return;
    }
    line_ = 0;
    if (++text_ < texts_.size()) return;
    text_ = 0;
    --repeats_;
  }

  Texts texts_;
  bool lowercase_;
  int repeats_;
  std::size_t text_ = 0, line_ = 0;
  std::string rest_, part_;
};

/// How many characters SentencePiece makes pieces of, and how many the text has in all.
struct Characters {
  Index pieces = 0;
  Index all = 0;
};

Characters count_characters(Texts texts, const SubwordOptions& options) {
  std::unordered_map<char32_t, Index> counts;
  Characters result;
  for (Lines lines(texts, options.lowercase, 1); !lines.done(); lines.Next()) {
    const std::string& text = lines.value();
    if (text.find_first_not_of(' ') == text.npos) continue;
    ++counts[U' '];  // before the first word
    ++result.all;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      ++counts[point.value];
      ++result.all;
      at += point.length;
    }
  }
  std::vector<Index> sorted;
  for (const auto& [character, count] : counts) sorted.push_back(count);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  Index covered = 0;
  for (const Index count : sorted) {
    const auto coverage = static_cast<float>(static_cast<double>(covered) / static_cast<double>(result.all));
    if (coverage >= static_cast<float>(options.character_coverage)) break;
    covered += count;
    ++result.pieces;
  }
  return result;
}

/// A number as "09995e-4" instead of "0.9995": SentencePiece reads by the global locale of C++, whose decimal point may
/// be another.
std::string without_point(double value) {
  std::string text = fmt::format("{:.15f}", value);
  const std::size_t point = text.find('.'), decimals = text.find_last_not_of('0') - point;
  text.resize(point + decimals + 1);
  text.erase(point, 1);
  return fmt::format("{}e-{}", text, decimals);
}

std::unordered_map<std::string, std::string> trainer_options(const SubwordOptions& options) {
  return {{"model_type", options.kind == "bpe" ? "BPE" : "UNIGRAM"},  // in Turkish the capital of i is another letter
          {"vocab_size", fmt::format("{}", options.size)},
          {"hard_vocab_limit", "false"},
          {"character_coverage", without_point(options.character_coverage)},
          {"byte_fallback", options.byte_fallback ? "true" : "false"},
          {"normalization_rule_name", "identity"},
          {"unk_id", "0"},
          {"bos_id", "1"},
          {"eos_id", "2"},
          {"pad_id", "-1"},
          {"unk_surface", "<unk>"},
          {"num_threads", "1"},  // beside ours, which waits; sums are rounded in another way for another number
          {"minloglevel", "3"}};
}

}  // namespace

std::string train_subwords(Texts texts, const SubwordOptions& options) {
  const Characters characters = count_characters(texts, options);
  if (characters.all == 0) throw DataError("subwords: the text to learn them from is blank");
  const Index least = 3 + (options.byte_fallback ? 256 : 0) + characters.pieces + 1;
  if (options.size < least) {
    throw ConfigError(fmt::format(
        "data.max_vocabulary is {}; subwords need at least {} here: 3 specials, {}{} characters and one more. "
        "Raise it, or lower data.character_coverage",
        options.size, least, options.byte_fallback ? "256 bytes, " : "", characters.pieces));
  }
  silence_sentencepiece();
  // A piece that is expected less than half a time falls away; with very little text none might be left.
  const int repeats = characters.all < kFew ? kRepeats : 1;
  Lines lines(texts, options.lowercase, repeats);
  std::string bytes, problem;
  try {
    const auto status = sentencepiece::SentencePieceTrainer::Train(trainer_options(options), &lines, &bytes);
    if (!status.ok()) problem = status.error_message();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (!problem.empty() || bytes.empty()) {
    std::replace(problem.begin(), problem.end(), '\n', ' ');
    throw DataError(
        fmt::format("subwords: SentencePiece cannot learn them from this text ({}); change data.tokenizer, "
                    "data.max_vocabulary or data.character_coverage",
                    problem));
  }
  return bytes;
}

}  // namespace weft
