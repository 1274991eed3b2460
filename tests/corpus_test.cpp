// Encoding a parallel corpus: which pairs stay, what is counted, and the stop when nothing is left.
#include "weft/data/corpus.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "weft/core/error.h"
#include "weft/core/threads.h"

using namespace weft;
using Ids = std::vector<TokenId>;

namespace {

Ids ids_of(const EncodedText& text, Index sentence) {
  const auto ids = text[sentence];
  return Ids(ids.begin(), ids.end());
}

// Encoders made from the text itself.
struct Coders {
  explicit Coders(const ParallelText& text) : tokenizer(make_tokenizer("word", false)) {
    TokenCounter source_counter, target_counter;
    count_tokens(text.source, *tokenizer, source_counter);
    count_tokens(text.target, *tokenizer, target_counter);
    source_vocabulary = Vocabulary::build(source_counter, {});
    target_vocabulary = Vocabulary::build(target_counter, {});
  }
  TextEncoder source() const { return {*tokenizer, source_vocabulary}; }
  TextEncoder target() const { return {*tokenizer, target_vocabulary}; }

  std::unique_ptr<Tokenizer> tokenizer;
  Vocabulary source_vocabulary, target_vocabulary;
};

std::string error_of(const ParallelText& text, const Coders& coders, Index max_length) {
  try {
    encode_corpus(text, coders.source(), coders.target(), max_length, "train");
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a pair with a blank side is dropped as a whole and counted") {
  const ParallelText text{{"One", "", "Three", "Four", "Five", " \xC2\xA0", "\xE2\x80\x8B"},
                          {"Un", "Deux", "Trois", "", "Cinq", "", "Sept"}};
  const Coders coders(text);
  const auto [corpus, report] = encode_corpus(text, coders.source(), coders.target(), 10, "train");
  CHECK(corpus.size() == 3);
  CHECK(corpus.line == std::vector<Index>{0, 2, 4});
  CHECK(corpus.source.sentences() == 3);
  CHECK(corpus.target.sentences() == 3);
  for (Index i = 0; i < 3; ++i) {
    const auto line = static_cast<std::size_t>(corpus.line[static_cast<std::size_t>(i)]);
    CHECK(ids_of(corpus.source, i) == Ids{coders.source_vocabulary.id(text.source[line])});
    CHECK(ids_of(corpus.target, i) == Ids{coders.target_vocabulary.id(text.target[line])});
  }
  CHECK(report.pairs == 7);
  CHECK(report.kept == 3);
  CHECK(report.blank == 4);
  CHECK(report.too_long == 0);
}

TEST_CASE("pairs over max_length on either side are dropped; unknown tokens are counted in what is kept") {
  const ParallelText known{{"a b c"}, {"x y z"}};
  const Coders coders(known);
  const ParallelText text{{"a b", "a b c", "a b c a", "a", "q <s>"}, {"x", "x y w", "x", "x x x x", "x"}};
  const auto [corpus, report] = encode_corpus(text, coders.source(), coders.target(), 3, "train");
  CHECK(corpus.line == std::vector<Index>{0, 1});
  CHECK(ids_of(corpus.target, 1) == Ids{3, 4, kUnknown});
  CHECK(report.too_long == 3);
  CHECK(report.source_tokens == 5);
  CHECK(report.target_tokens == 4);
  CHECK(report.source_unknown == 0);
  CHECK(report.target_unknown == 1);
  CHECK(report.summary() ==
        "2 of 5 pairs kept (0 dropped as blank on a side, 3 as too long); "
        "5 source tokens (0.00 % unknown), 4 target tokens (25.00 % unknown)");
  // "<s>" in text is ordinary text: three tokens, none a special but kUnknown.
  const auto special = encode_corpus(text, coders.source(), coders.target(), 4, "train");
  CHECK(ids_of(special.corpus.source, special.corpus.size() - 1) == Ids{0, 0, 0, 0});
}

TEST_CASE("a text that is encoded holds no room for more, which the forecast of a run does not count") {
  ParallelText text;
  for (int i = 0; i < 1100; ++i) text.source.push_back("a b c"), text.target.push_back("x y");
  const Coders coders(text);
  const Corpus corpus = encode_corpus(text, coders.source(), coders.target(), 10, "train").corpus;
  for (const EncodedText* side : {&corpus.source, &corpus.target}) {
    CHECK(side->tokens.capacity() == side->tokens.size());
    CHECK(side->rows.offsets().capacity() == side->rows.offsets().size());
  }
  CHECK(corpus.line.capacity() == corpus.line.size());
}

TEST_CASE("nothing left stops with the counts and the mend") {
  std::string line = "w0";
  for (int i = 1; i < 60; ++i) line += " w" + std::to_string(i);
  const ParallelText text{{line, line, ""}, {line, line, "a"}};
  const std::string error = error_of(text, Coders(text), 50);
  CHECK(contains(error, "train: no pair is left of 3 (1 blank, 2 with more than 50 tokens on a side)"));
  CHECK(contains(error, "raise what sets that: model.max_length"));
  const ParallelText some{{"a"}, {"b"}};
  CHECK(contains(error_of({{""}, {""}}, Coders(some), 50), "give a text with sentences"));
  CHECK(contains(error_of({}, Coders(some), 50), "no pair is left of 0"));
  CHECK(contains(error_of({{"a", "a"}, {"b"}}, Coders(some), 50), "2 source lines but 1 target lines"));
}

TEST_CASE("the encoding is the same for any number of threads, over many tiles") {
  ParallelText text;
  for (int i = 0; i < 300000; ++i) {
    text.source.push_back(i % 7 == 0 ? "" : std::to_string(i % 1000) + " a");
    text.target.push_back(std::to_string(i % 500));
  }
  const Coders coders(text);
  const int before = threads();
  set_threads(1);
  const EncodedCorpus one = encode_corpus(text, coders.source(), coders.target(), 10, "train");
  set_threads(3);
  const EncodedCorpus three = encode_corpus(text, coders.source(), coders.target(), 10, "train");
  set_threads(before);
  CHECK(one.report.kept == 300000 - 42858);
  CHECK(one.report.summary() == three.report.summary());
  CHECK(one.corpus.line == three.corpus.line);
  CHECK(one.corpus.source.tokens == three.corpus.source.tokens);
  CHECK(one.corpus.source.rows == three.corpus.source.rows);
  CHECK(one.corpus.target.tokens == three.corpus.target.tokens);
  CHECK(one.corpus.line.back() == 299998);
  CHECK(ids_of(one.corpus.target, one.corpus.size() - 1) == Ids{coders.target_vocabulary.id("498")});
}
