// Corpus BLEU. Lines are cut into words, words become numbers, and n-grams are counted per line; only the
// sums over the corpus decide the score. The tokenizer works on bytes: its rules speak of ASCII only, and no
// byte of a longer UTF-8 sequence is ASCII.
#include "weft/train/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include "weft/core/error.h"

namespace weft {
namespace {

constexpr std::size_t kOrders = 4;
constexpr std::string_view kPairing = "line i of one belongs to line i of the other";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

/// The ASCII punctuation that always stands alone: all but apostrophe, comma, hyphen and full stop.
bool stands_alone(char c) {
  return (c >= '!' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Bytes of the white space that `s` starts with, or 0. White space is what Python's str.split() takes for
/// it.
std::size_t space_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned a = byte(0), b = byte(1), c = byte(2);
  if ((a >= 0x09 && a <= 0x0D) || (a >= 0x1C && a <= 0x20)) return 1;
  if (a == 0xC2 && (b == 0x85 || b == 0xA0)) return 2;
  const bool wide = (a == 0xE1 && b == 0x9A && c == 0x80) ||  // U+1680
                    (a == 0xE2 && b == 0x80 && ((c >= 0x80 && c <= 0x8A) || c == 0xA8 || c == 0xA9 || c == 0xAF)) ||
                    (a == 0xE2 && b == 0x81 && c == 0x9F) ||  // U+205F
                    (a == 0xE3 && b == 0x80 && c == 0x80);    // U+3000
  return wide ? 3 : 0;
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  std::size_t begin = 0, at = 0;
  while (at < line.size()) {
    const std::size_t space = space_length(line.substr(at));
    if (space == 0) {
      ++at;
      continue;
    }
    if (at > begin) words.emplace_back(line.substr(begin, at - begin));
    at += space;
    begin = at;
  }
  if (at > begin) words.emplace_back(line.substr(begin, at - begin));
  return words;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

std::string_view trim_end(std::string_view line) {
  for (bool more = true; more;) {
    more = false;
    for (const std::size_t size : {1u, 2u, 3u}) {
      if (line.size() >= size && space_length(line.substr(line.size() - size)) == size) {
        line.remove_suffix(size);
        more = true;
        break;
      }
    }
  }
  return line;
}

/// Puts spaces around punctuation. Each pass reads what the one before wrote, left to right, as mteval's
/// substitutions do; a pass over pairs steps over both characters of a pair that it changed.
std::string space_out(const std::string& line) {
  std::string alone = " ";
  for (const char c : line) {
    if (stands_alone(c)) {
      alone += {' ', c, ' '};
    } else {
      alone += c;
    }
  }
  alone += ' ';

  const auto pass = [](const std::string& in, auto matches, std::string_view before, std::string_view between,
                       std::string_view after) {
    std::string out;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (i + 1 < in.size() && matches(in[i], in[i + 1])) {
        out.append(before).append(1, in[i]).append(between).append(1, in[i + 1]).append(after);
        ++i;
      } else {
        out += in[i];
      }
    }
    return out;
  };
  const std::string ended = pass(
      alone, [](char a, char b) { return !is_digit(a) && is_point(b); }, "", " ", " ");
  const std::string begun = pass(
      ended, [](char a, char b) { return is_point(a) && !is_digit(b); }, " ", " ", "");
  return pass(
      begun, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");
}

using Ngram = std::array<std::int32_t, kOrders>;  // word numbers; -1 after the last word
using NgramCounts = std::map<Ngram, Index>;
using Words = std::unordered_map<std::string, std::int32_t>;

std::size_t order(const Ngram& ngram) {
  return static_cast<std::size_t>(std::find(ngram.begin(), ngram.end(), -1) - ngram.begin());
}

struct Line {
  NgramCounts ngrams;
  Index length = 0;
};

Line count_ngrams(std::string_view text, BleuTokenizer tokenizer, Words& words) {
  std::vector<std::int32_t> ids;
  for (std::string& word : bleu_tokenize(text, tokenizer)) {
    ids.push_back(words.try_emplace(std::move(word), static_cast<std::int32_t>(words.size())).first->second);
  }
  Line line;
  line.length = static_cast<Index>(ids.size());
  for (std::size_t begin = 0; begin < ids.size(); ++begin) {
    Ngram ngram = {-1, -1, -1, -1};
    for (std::size_t n = 0; n < kOrders && begin + n < ids.size(); ++n) {
      ngram[n] = ids[begin + n];
      ++line.ngrams[ngram];
    }
  }
  return line;
}

struct Sums {
  std::array<double, kOrders> correct = {}, total = {};
};

/// The geometric mean of the smoothed precisions times the brevity penalty, from the sums over the corpus.
void finish(Sums sums, const BleuOptions& options, BleuScore& result) {
  const auto length = static_cast<double>(result.hypothesis_length);
  const auto wanted = static_cast<double>(result.reference_length);
  if (length < wanted) result.brevity_penalty = length > 0 ? std::exp(1 - wanted / length) : 0;
  if (std::all_of(sums.correct.begin(), sums.correct.end(), [](double c) { return c == 0; })) return;

  const double value = options.smooth_value.value_or(options.smoothing == BleuSmoothing::kAddK ? 1.0 : 0.1);
  double halvings = 1;
  for (std::size_t n = 0; n < kOrders; ++n) {
    double& correct = sums.correct[n];
    double& total = sums.total[n];
    if (options.smoothing == BleuSmoothing::kAddK && n > 0) {
      correct += value;
      total += value;
    }
    if (total == 0) break;  // no line is this long: the orders from here on stay 0, and so does the score
    if (correct > 0) {
      result.precisions[n] = 100 * correct / total;
    } else if (options.smoothing == BleuSmoothing::kExp) {
      halvings *= 2;
      result.precisions[n] = 100 / (halvings * total);
    } else if (options.smoothing == BleuSmoothing::kFloor) {
      result.precisions[n] = 100 * value / total;
    }
  }
  double sum = 0;
  for (const double precision : result.precisions) {
    if (precision == 0) return;
    sum += std::log(precision);
  }
  // exp(log(100)) is a little over 100; a perfect score is 100 and not that.
  result.score = std::min(100.0, result.brevity_penalty * std::exp(sum / kOrders));
}

}  // namespace

std::vector<std::string> bleu_tokenize(std::string_view line, BleuTokenizer tokenizer) {
  if (tokenizer == BleuTokenizer::kNone) return split(line);
  std::string text(trim_end(line));
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  return split(space_out(text));
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                      const BleuOptions& options) {
  if (references.empty()) throw DataError("BLEU needs at least one reference for each line, found none");
  for (const auto& reference : references) {
    if (reference.size() != hypotheses.size()) {
      throw DataError(
          fmt::format("BLEU: {} hypotheses but {} references; {}", hypotheses.size(), reference.size(), kPairing));
    }
  }
  if (options.smooth_value && !(*options.smooth_value >= 0)) {
    throw ConfigError(fmt::format("BLEU: smooth_value is {}; it must be 0 or more", *options.smooth_value));
  }

  BleuScore result;
  Sums sums;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    Words words;
    const Line hypothesis = count_ngrams(hypotheses[i], options.tokenizer, words);
    Line best;  // the most of each n-gram in any reference, and the length closest to the hypothesis'
    for (std::size_t r = 0; r < references.size(); ++r) {
      const Line reference = count_ngrams(references[r][i], options.tokenizer, words);
      const Index off = std::abs(reference.length - hypothesis.length);
      const Index best_off = std::abs(best.length - hypothesis.length);
      if (r == 0 || off < best_off || (off == best_off && reference.length < best.length)) {
        best.length = reference.length;
      }
      for (const auto& [ngram, count] : reference.ngrams) {
        Index& most = best.ngrams[ngram];
        most = std::max(most, count);
      }
    }
    result.hypothesis_length += hypothesis.length;
    result.reference_length += best.length;
    for (const auto& [ngram, count] : hypothesis.ngrams) {
      const std::size_t n = order(ngram) - 1;
      sums.total[n] += static_cast<double>(count);
      const auto found = best.ngrams.find(ngram);
      if (found != best.ngrams.end()) sums.correct[n] += static_cast<double>(std::min(count, found->second));
    }
  }
  finish(sums, options, result);
  return result;
}

std::string format_bleu(const BleuScore& score) {
  const double ratio = score.reference_length == 0
                           ? 0
                           : static_cast<double>(score.hypothesis_length) / static_cast<double>(score.reference_length);
  const auto& p = score.precisions;
  return fmt::format("BLEU = {:.2f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
                     score.score, p[0], p[1], p[2], p[3], score.brevity_penalty, ratio, score.hypothesis_length,
                     score.reference_length);
}

std::string bleu_signature(const BleuOptions& options, Index references) {
  std::string smoothing;
  switch (options.smoothing) {
    case BleuSmoothing::kExp:
      smoothing = "exp";
      break;
    case BleuSmoothing::kFloor:
      smoothing = fmt::format("floor[{:.2f}]", options.smooth_value.value_or(0.1));
      break;
    case BleuSmoothing::kAddK:
      smoothing = fmt::format("add-k[{:.2f}]", options.smooth_value.value_or(1.0));
      break;
    case BleuSmoothing::kNone:
      smoothing = "none";
      break;
  }
  return fmt::format("nrefs:{}|case:mixed|eff:no|tok:{}|smooth:{}|version:weft-" WEFT_VERSION, references,
                     options.tokenizer == BleuTokenizer::k13a ? "13a" : "none", smoothing);
}

double exact_match(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  if (hypotheses.size() != references.size()) {
    throw DataError(fmt::format("exact match: {} hypotheses but {} references; {}", hypotheses.size(),
                                references.size(), kPairing));
  }
  if (hypotheses.empty()) return 0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) equal += hypotheses[i] == references[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(hypotheses.size());
}

}  // namespace weft
