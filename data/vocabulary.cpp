#include "weft/data/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "weft/core/error.h"
#include "weft/data/subword_model.h"
#include "weft/data/text_file.h"
#include "weft/data/text_hash.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr std::size_t kSpecials = kSpecialTokens.size();
constexpr std::uint64_t kHashPrime = (std::uint64_t{1} << 31) - 1;

/// A number below kHashPrime that nobody knows before the process begins.
std::uint64_t hash_key() {
  static const char here = 0;
  static const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  static const std::uint64_t key = 1 + mix_hash(now, reinterpret_cast<std::uintptr_t>(&here)) % (kHashPrime - 1);
  return key;
}

bool only_spaces(std::string_view token) {
  for (std::size_t at = 0; at < token.size();) {
    const CodePoint point = code_point_at(token, at);
    if (!is_space(point.value)) return false;
    at += point.length;
  }
  return true;
}

}  // namespace

bool is_special_token(std::string_view token) {
  return std::find(kSpecialTokens.begin(), kSpecialTokens.end(), token) != kSpecialTokens.end();
}

std::size_t StringHash::operator()(std::string_view text) const {
  // The bytes, three at a time, as the coefficients of a polynomial: two texts are equal at few keys.
  const std::uint64_t key = hash_key();
  std::uint64_t hash = text.size() % kHashPrime;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::uint64_t three = 0;
    for (const char c : text.substr(at, 3)) three = three << 8 | static_cast<unsigned char>(c);
    hash = (hash * key + three) % kHashPrime;
  }
  return static_cast<std::size_t>(hash);
}

void TokenCounter::add(std::span<const std::string> tokens) {
  for (const std::string& token : tokens) ++counts_[token];
}

void TokenCounter::add(const TokenCounter& other) {
  for (const auto& [token, count] : other.counts_) counts_[token] += count;
}

std::vector<std::pair<std::string, Index>> TokenCounter::sorted() const {
  std::vector<std::pair<std::string, Index>> result(counts_.begin(), counts_.end());
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return result;
}

Vocabulary Vocabulary::build(const TokenCounter& counter, const VocabularyOptions& options) {
  if (options.min_count < 1) {
    throw ConfigError(fmt::format("vocabulary: min_count is {}; use 1 or more", options.min_count));
  }
  if (options.max_size != 0 && options.max_size <= static_cast<Index>(kSpecials)) {
    throw ConfigError(
        fmt::format("vocabulary: max_size is {}, but {} of the entries are specials; use more, or 0 for no limit",
                    options.max_size, kSpecials));
  }
  std::vector<std::string> tokens(kSpecialTokens.begin(), kSpecialTokens.end());
  for (auto& [token, count] : counter.sorted()) {
    if (count < options.min_count || static_cast<Index>(tokens.size()) == options.max_size) break;
    if (!is_special_token(token)) tokens.push_back(std::move(token));
  }
  if (tokens.size() == kSpecials) {
    throw DataError(
        fmt::format("vocabulary: none of {} different tokens occurs {} times; lower min_count or check that "
                    "the text is not blank",
                    counter.distinct(), options.min_count));
  }
  return from_tokens(std::move(tokens));
}

Vocabulary Vocabulary::from_tokens(std::vector<std::string> tokens, std::string_view name) {
  for (std::size_t i = 0; i < kSpecials; ++i) {
    if (i >= tokens.size() || tokens[i] != kSpecialTokens[i]) {
      throw DataError(fmt::format(
          "{}:{}: {} where {} must be; a vocabulary begins with the entries <unk>, <s> and </s>, in this "
          "order",
          name, i + 1, i < tokens.size() ? fmt::format("\"{}\"", tokens[i]) : "nothing", kSpecialTokens[i]));
    }
  }
  Vocabulary vocabulary;
  vocabulary.tokens_ = std::move(tokens);
  vocabulary.ids_.reserve(vocabulary.tokens_.size());
  for (std::size_t i = kSpecials; i < vocabulary.tokens_.size(); ++i) {
    const std::string& token = vocabulary.tokens_[i];
    if (only_spaces(token)) throw DataError(fmt::format("{}:{}: blank entry; remove it", name, i + 1));
    if (token.find_first_of("\r\n") != std::string::npos) {
      throw DataError(fmt::format("{}:{}: an entry with a line break; make it two or remove it", name, i + 1));
    }
    if (const auto problem = text_problem(token)) {
      throw DataError(fmt::format("{}:{}:{}: {}", name, i + 1, problem->column, problem->what));
    }
    const auto special = std::find(kSpecialTokens.begin(), kSpecialTokens.end(), token);
    const auto [place, is_new] = vocabulary.ids_.try_emplace(token, static_cast<TokenId>(i));
    if (special != kSpecialTokens.end() || !is_new) {
      const auto first = is_new ? special - kSpecialTokens.begin() : place->second;
      throw DataError(
          fmt::format("{}:{}: \"{}\" is entry {} already; remove one of them", name, i + 1, token, first + 1));
    }
  }
  return vocabulary;
}

Vocabulary Vocabulary::from_subwords(std::shared_ptr<const SubwordModel> model) {
  Vocabulary vocabulary = from_tokens(model->tokens(), "subword model");
  vocabulary.subwords_ = std::move(model);
  return vocabulary;
}

TokenId Vocabulary::id(std::string_view token) const {
  const auto place = ids_.find(token);
  return place == ids_.end() ? kUnknown : place->second;
}

const std::string& Vocabulary::token(TokenId id) const {
  if (id < 0 || id >= size()) {
    throw DataError(fmt::format("vocabulary: {} is not an id; there are {}, from 0", id, size()));
  }
  return tokens_[static_cast<std::size_t>(id)];
}

std::vector<TokenId> Vocabulary::ids(std::span<const std::string> tokens) const {
  std::vector<TokenId> result;
  result.reserve(tokens.size());
  for (const std::string& token : tokens) result.push_back(id(token));
  return result;
}

std::vector<std::string> Vocabulary::tokens(std::span<const TokenId> ids) const {
  std::vector<std::string> result;
  result.reserve(ids.size());
  for (const TokenId id : ids) result.push_back(token(id));
  return result;
}

std::uint64_t Vocabulary::content_hash() const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&hash](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u; };
  for (const std::string& token : tokens_) {
    for (const char c : token) mix(c);
    mix('\n');  // no entry has one, so entries cannot run together
  }
  if (subwords_ != nullptr) {
    for (const char c : subwords_->bytes()) mix(c);
  }
  return hash;
}

}  // namespace weft
