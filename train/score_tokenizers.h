// How scores cut a line into words, each by the rules of the sacreBLEU tokenizer of the same name. They have
// nothing to do with the tokens of a model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A tokenizer of BLEU: the rules of mteval-v13a, white space only, every character a word, or every Chinese
/// character a word and 13a's rules of punctuation for the rest.
enum class BleuTokenizer { k13a, kNone, kChar, kZh };

/// The tokenizer of a name: "13a", "none", "char" or "zh". Throws ConfigError for another one.
BleuTokenizer bleu_tokenizer(std::string_view name);

/// The name of a tokenizer.
std::string_view name_of(BleuTokenizer tokenizer);

/// Cuts a line of valid UTF-8 into BLEU's words.
std::vector<std::string> bleu_tokenize(std::string_view line, BleuTokenizer tokenizer);

/// Cuts a line at white space, which is what Python's str.split() takes for it.
std::vector<std::string> split_words(std::string_view line);

}  // namespace weft
