// How scores cut a line into words, each by the rules of the sacreBLEU tokenizer of the same name. They have
// nothing to do with the tokens of a model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/core/function_ref.h"

namespace weft {

/// A tokenizer of BLEU: the rules of mteval-v13a, white space only, every character a word, or every Chinese
/// character a word and 13a's rules of punctuation for the rest.
enum class BleuTokenizer { k13a, kNone, kChar, kZh };

/// The tokenizer of a name: "13a", "none", "char" or "zh". Throws ConfigError for another one.
BleuTokenizer bleu_tokenizer(std::string_view name);

/// The name of a tokenizer.
std::string_view name_of(BleuTokenizer tokenizer);

/// Calls take(word) for each of BLEU's words of a line of valid UTF-8, in order; the word lives as long as the call.
void for_each_bleu_word(std::string_view line, BleuTokenizer tokenizer, FunctionRef<void(std::string_view)> take);

/// BLEU's words of a line of valid UTF-8.
std::vector<std::string> bleu_tokenize(std::string_view line, BleuTokenizer tokenizer);

/// Calls take(word) for each word between white space, which is what Python's str.split() takes for it.
void for_each_word(std::string_view line, FunctionRef<void(std::string_view)> take);

}  // namespace weft
