// Vocabularies: their order, their limits, and files of entries that are wrong.
#include "weft/data/vocabulary.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "weft/core/error.h"

using namespace weft;
using Tokens = std::vector<std::string>;
using Ids = std::vector<TokenId>;

namespace {

TokenCounter counted(const std::vector<Tokens>& lines) {
  TokenCounter counter;
  for (const Tokens& line : lines) counter.add(line);
  return counter;
}

// What the error about these entries says; the entries after the specials if not `whole`.
std::string error_of(Tokens entries, bool whole = false) {
  if (!whole) entries.insert(entries.begin(), {"<unk>", "<s>", "</s>"});
  try {
    Vocabulary::from_tokens(entries, "vocab.txt");
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

bool starts(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

}  // namespace

TEST_CASE("build orders by falling count, then by bytes, after the specials") {
  const TokenCounter counter = counted({{"b", "a", "\xC3\xA9"}, {"a", "c", "B", "c"}, {}});
  CHECK(counter.distinct() == 5);
  const Vocabulary vocabulary = Vocabulary::build(counter, {});
  CHECK(vocabulary.tokens() == Tokens{"<unk>", "<s>", "</s>", "a", "c", "B", "b", "\xC3\xA9"});
  CHECK(vocabulary.size() == 8);
  CHECK(vocabulary.id("a") == 3);
  CHECK(vocabulary.token(7) == "\xC3\xA9");
  CHECK(vocabulary.ids(Tokens{"c", "nothing", "a"}) == Ids{4, kUnknown, 3});
  CHECK(vocabulary.tokens(Ids{4, kEnd}) == Tokens{"c", "</s>"});
  CHECK_THROWS_AS(vocabulary.token(8), DataError);
  CHECK_THROWS_AS(vocabulary.token(-1), DataError);
}

TEST_CASE("min_count and max_size limit the vocabulary; a size beyond the data gives what there is") {
  const TokenCounter counter = counted({{"a", "a", "b", "b", "c"}});
  CHECK(Vocabulary::build(counter, {2, 0}).size() == 5);
  CHECK(Vocabulary::build(counter, {1, 4}).tokens() == Tokens{"<unk>", "<s>", "</s>", "a"});
  CHECK(Vocabulary::build(counter, {1, 6}).size() == 6);
  CHECK(Vocabulary::build(counter, {1, 8000}).size() == 6);
  CHECK_THROWS_AS(Vocabulary::build(counter, {0, 0}), ConfigError);
  CHECK_THROWS_AS(Vocabulary::build(counter, {1, 3}), ConfigError);
  CHECK_THROWS_AS(Vocabulary::build(counter, {1, -1}), ConfigError);
  CHECK_THROWS_AS(Vocabulary::build(counter, {3, 0}), DataError);
  CHECK_THROWS_AS(Vocabulary::build(TokenCounter(), {}), DataError);
}

TEST_CASE("text never gets the id of a special") {
  const Vocabulary vocabulary = Vocabulary::build(counted({{"<s>", "<s>", "</s>", "<unk>", "a"}}), {});
  CHECK(vocabulary.tokens() == Tokens{"<unk>", "<s>", "</s>", "a"});
  for (const char* special : {"<unk>", "<s>", "</s>"}) CHECK(vocabulary.id(special) == kUnknown);
}

TEST_CASE("from_tokens is the inverse of tokens and names the faulty entry") {
  const Tokens entries{"<unk>", "<s>", "</s>", "a", "\xE2\x80\x8B", "b"};
  const Vocabulary vocabulary = Vocabulary::from_tokens(entries);
  CHECK(vocabulary.tokens() == entries);
  CHECK(vocabulary.id("b") == 5);

  CHECK(starts(error_of({"a", "b", "a", "</s>"}), "vocab.txt:6: \"a\" is entry 4 already"));
  CHECK(starts(error_of({"a", "</s>"}), "vocab.txt:5: \"</s>\" is entry 3 already"));
  CHECK(starts(error_of({"a", "", "b"}), "vocab.txt:5: blank entry"));
  CHECK(starts(error_of({"\xC2\xA0"}), "vocab.txt:4: blank entry"));
  CHECK(starts(error_of({"a\nb"}), "vocab.txt:4: an entry with a line break"));
  CHECK(starts(error_of({"a\xE9"}), "vocab.txt:4:2: not UTF-8 (byte 0xE9)"));
  CHECK(starts(error_of({"a", "b", "c"}, true), "vocab.txt:1: \"a\" where <unk> must be"));
  CHECK(starts(error_of({"<pad>", "<unk>", "<s>", "</s>", "a"}, true), "vocab.txt:1: \"<pad>\" where <unk> must be"));
  CHECK(starts(error_of({"<unk>", "</s>", "<s>"}, true), "vocab.txt:2: \"</s>\" where <s> must be"));
  CHECK(starts(error_of({"<unk>", "<s>"}, true), "vocab.txt:3: nothing where </s> must be"));
  CHECK(starts(error_of({}, true), "vocab.txt:1: nothing where <unk> must be"));
}

TEST_CASE("content_hash tells vocabularies apart") {
  const auto hash = [](Tokens entries) {
    entries.insert(entries.begin(), {"<unk>", "<s>", "</s>"});
    return Vocabulary::from_tokens(entries).content_hash();
  };
  CHECK(hash({"a", "b"}) == hash({"a", "b"}));
  CHECK(hash({"a", "b"}) != hash({"b", "a"}));
  CHECK(hash({"ab"}) != hash({"a", "b"}));
  CHECK(hash({}) == 0x218f7099a50952eau);  // a file format: it must never change
}

TEST_CASE("tokens that std::hash of libstdc++ cannot tell apart have hashes of their own") {
  const std::string a = "abcdefgh", b = "ab\xA6\x4A\xCA\x80\xBF\xD9";
  std::set<std::size_t> hashes;
  for (int i = 0; i < 1024; ++i) {
    std::string token;
    for (int k = 0; k < 10; ++k) token += (i >> k) % 2 == 0 ? a + a : b + b;
    hashes.insert(StringHash()(token));
  }
  CHECK(hashes.size() > 1000);
  CHECK(StringHash()("a") != StringHash()(std::string("a\0", 2)));
  CHECK(StringHash()("") == StringHash()(std::string()));
}
