// Subword models: training, splitting and joining, models made elsewhere, bytes that are no model.
#include <doctest/doctest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "subword_text.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/threads.h"
#include "weft/data/subword_model.h"
#include "weft/data/subword_tokenizer.h"
#include "weft/data/subword_trainer.h"
#include "weft/data/text_file.h"

using namespace weft;

namespace {

using Strings = std::vector<std::string>;

constexpr const char* kKinds[] = {"unigram", "bpe"};

std::string train(const Strings& lines, const SubwordOptions& options) {
  const std::span<const std::string> texts[] = {lines};
  return train_subwords(texts, options);
}

std::shared_ptr<const SubwordModel> model_of(std::string bytes) {
  return SubwordModel::load(std::move(bytes), "model");
}

/// Lines with everything that might be taken for something else.
const Strings& traps() {
  static const Strings lines = {
      "<s>",
      "</s>",
      "<unk>",
      "a <s> b </s> c",
      "<s><s></s><unk><unk>",
      "<pad> <0x41> <0x0A>",
      "\xE2\x96\x81",
      "a\xE2\x96\x81"
      "b \xE2\x96\x81 c\xE2\x96\x81",                                                                 // U+2581
      "\xEF\xBF\xAD \xEF\xBF\xAD_ \xEF\xBF\xAD\xEF\xBF\xAD_ \xEF\xBF\xAD\xE2\x96\x81 _\xEF\xBF\xAD",  // U+FFED
      "\xE2\x96\x85 \xE2\x96\x85\xE2\x96\x81",                                                        // U+2585
      "x\xE2\x80\x8By",
      "\xF0\x9F\x98\x80 \xE4\xB8\xAD\xE6\x96\x87",
      "a \xC2\xA0\t b",
      "\xEF\xAC\x81 \xC2\xBD"};
  return lines;
}

/// Text of syllables, with every trap in it many times if wanted.
Strings text_with_traps(bool traps_too) {
  Strings lines = syllables(400, 7).source;
  for (int i = 0; traps_too && i < 40; ++i) lines.insert(lines.end(), traps().begin(), traps().end());
  return lines;
}

/// A model made by SentencePiece with options of its own.
std::string made_elsewhere(std::unordered_map<std::string, std::string> options, const Strings& lines) {
  struct Lines : sentencepiece::SentenceIterator {
    explicit Lines(const Strings& all) : lines(all) {}
    bool done() const override { return at == lines.size(); }
    void Next() override { ++at; }
    const std::string& value() const override { return lines[at]; }
    sentencepiece::util::Status status() const override { return {}; }
    const Strings& lines;
    std::size_t at = 0;
  } iterator(lines);
  options["minloglevel"] = "3";
  options["hard_vocab_limit"] = "false";
  std::string bytes;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &iterator, &bytes);
  REQUIRE_MESSAGE(status.ok(), status.error_message());
  return bytes;
}

/// Checks that text comes out as it went in, and never as a special.
void check_text_stays(const Tokenizer& tokenizer, const Vocabulary& vocabulary, const std::string& line,
                      const std::string& expected) {
  CAPTURE(line);
  const Strings tokens = tokenizer.split(line);
  for (const std::string& token : tokens) {
    CHECK_FALSE(token.empty());
    CHECK(std::count(kSpecialTokens.begin(), kSpecialTokens.end(), token) == 0);
  }
  for (const TokenId id : vocabulary.ids(tokens)) {
    CHECK(id != kBegin);
    CHECK(id != kEnd);
  }
  CHECK(tokenizer.join(tokens) == expected);
  CHECK(tokenizer.normalise(line) == expected);
}

}  // namespace

TEST_CASE("the specials are 0, 1 and 2, and the pieces' numbers in the model are the ids of tokens") {
  for (const char* kind : kKinds) {
    for (const bool bytes_too : {false, true}) {
      const auto model = model_of(train(text_with_traps(false), {kind, 400, bytes_too}));
      CHECK(model->kind() == kind);
      const Vocabulary vocabulary = Vocabulary::from_subwords(model);
      CHECK(vocabulary.subwords() == model);
      CHECK(vocabulary.content_hash() == Vocabulary::from_subwords(model_of(model->bytes())).content_hash());
      CHECK(vocabulary.content_hash() != Vocabulary::from_tokens(vocabulary.tokens()).content_hash());
      CHECK(vocabulary.token(0) == "<unk>");
      CHECK(vocabulary.token(1) == "<s>");
      CHECK(vocabulary.token(2) == "</s>");
      sentencepiece::SentencePieceProcessor reference;
      REQUIRE(reference.LoadFromSerializedProto(model->bytes()).ok());
      REQUIRE(reference.GetPieceSize() == vocabulary.size());
      for (int id = 0; id < reference.GetPieceSize(); ++id) CHECK(vocabulary.token(id) == reference.IdToPiece(id));
      for (const std::string& line : syllables(50, 8).source) {
        std::vector<int> ids;
        REQUIRE(reference.Encode(line, &ids).ok());
        const SubwordTokenizer tokenizer(model, false);
        CHECK(vocabulary.ids(tokenizer.split(line)) == std::vector<TokenId>(ids.begin(), ids.end()));
      }
    }
  }
}

TEST_CASE("text comes out as it went in but for spaces and case, whatever it reads like") {
  for (const char* kind : kKinds) {
    for (const int variant : {1, 2, 3}) {
      const bool traps_too = variant != 2, bytes_too = variant != 1;
      for (const bool lowercase : {false, true}) {
        CAPTURE(kind);
        CAPTURE(bytes_too);
        const auto model = model_of(train(text_with_traps(traps_too), {kind, 500, bytes_too, 1.0, lowercase}));
        const auto tokenizer = make_tokenizer(kind, lowercase, model);
        const Vocabulary vocabulary = Vocabulary::from_subwords(model);
        for (const std::string& line : text_with_traps(true)) {
          check_text_stays(*tokenizer, vocabulary, line, normalise_text(line, lowercase));
          if (!bytes_too) continue;
          const std::vector<TokenId> ids = vocabulary.ids(tokenizer->split(line));
          CHECK(std::count(ids.begin(), ids.end(), kUnknown) == 0);
        }
      }
    }
  }
}

TEST_CASE("unknown characters are unknown, and a run of them is one token that join gives back") {
  for (const char* kind : kKinds) {
    const auto model = model_of(train(text_with_traps(false), {kind, 200}));
    const SubwordTokenizer tokenizer(model, false);
    const Vocabulary vocabulary = Vocabulary::from_subwords(model);
    for (const std::string& line : traps()) check_text_stays(tokenizer, vocabulary, line, normalise_text(line, false));
    const std::vector<TokenId> ids = vocabulary.ids(tokenizer.split("XYZ"));
    CHECK(std::count(ids.begin(), ids.end(), kUnknown) == 1);
    CHECK(tokenizer.join(vocabulary.tokens(ids)) == "<unk>");
  }
}

TEST_CASE("lines of nothing and lines of very much") {
  for (const char* kind : kKinds) {
    const auto model = model_of(train(text_with_traps(false), {kind, 300, true}));
    const SubwordTokenizer tokenizer(model, false);
    for (const char* line : {"", " ", "\t \xC2\xA0 \xE3\x80\x80", "\n"}) {
      CHECK(tokenizer.split(line).empty());
      CHECK(tokenizer.join(tokenizer.split(line)).empty());
    }
    std::string word, sentence, unknown;
    for (int i = 0; i < 20000; ++i) word += "kalo";
    for (int i = 0; i < 20000; ++i) sentence += i == 0 ? "kalo" : " kalo";
    for (int i = 0; i < 20000; ++i) unknown += "\u3042";
    // Words of more than 16 KiB are parted, between characters.
    std::string parted = tokenizer.normalise(word);
    CHECK(std::count(parted.begin(), parted.end(), ' ') == 4);
    CHECK(parted.find(' ') == kLongestSubwordWord);
    std::erase(parted, ' ');
    CHECK(parted == word);
    for (const std::string& token : tokenizer.split(unknown)) CHECK(token.size() < kLongestSubwordWord + 3);
    parted = tokenizer.normalise(unknown);
    CHECK(parted.find(' ') == (kLongestSubwordWord + 2) / 3 * 3);
    std::erase(parted, ' ');
    CHECK(parted == unknown);
    CHECK(tokenizer.normalise(sentence) == sentence);
    // Lines longer than SentencePiece takes are learned from all the same.
    const auto learned = model_of(train({word, sentence}, {kind, 300}));
    CHECK(SubwordTokenizer(learned, false).split("kalokalo").size() < 4);
  }
}

TEST_CASE("what SentencePiece would stumble over is replaced in a time that grows with the line, not with its square") {
  std::string line, plain;
  for (int i = 0; i < 100000; ++i) {
    line += "<s>\xE2\x96\x85";  // U+2585
    plain += "< s> ";
  }
  const SubwordOptions options{"bpe", 20};
  CHECK(train({line}, options) == train({plain}, options));
}

TEST_CASE("any tokens can be joined: specials vanish, bytes make no line breaks, spaces stay single") {
  const auto model = model_of(train(text_with_traps(false), {"bpe", 400, true}));
  const SubwordTokenizer tokenizer(model, false);
  CHECK(tokenizer.join(Strings{"<s>", "\xE2\x96\x81", "\xE2\x96\x81", "a", "</s>"}) == "a");
  CHECK(tokenizer.join(Strings{"a", "<0x0A>", "<0x0D>", "a"}) == "a a");
  CHECK(tokenizer.join(Strings{"<0xE2>", "a"}) ==
        "\xEF\xBF\xBD"
        "a");
  CHECK_FALSE(text_problem(tokenizer.join(Strings{"<0x00>", "<0xFF>"})));
  CHECK(tokenizer.join(Strings{}).empty());
}

TEST_CASE("escapes of U+2581 are undone, and what no text gives stays") {
  for (const std::string& line : traps()) {
    const std::string escaped = escape_for_subwords(line);
    CHECK_FALSE(contains(escaped, "\xE2\x96\x81"));
    CHECK(unescape_from_subwords(escaped) == line);
  }
  CHECK(unescape_from_subwords("\xEF\xBF\xAD"
                               "a\xEF\xBF\xAD") ==
        "\xEF\xBF\xAD"
        "a\xEF\xBF\xAD");
}

TEST_CASE("the same text gives the same model, on any number of threads and whatever happened before") {
  const ParallelText text = syllables(1500, 3, 3, 9);
  for (const char* kind : kKinds) {
    const SubwordOptions options{kind, 600, false};
    const std::string first = train(text.source, options);
    std::vector<std::string> holes;  // the heap of the next training looks another way
    for (std::size_t i = 0; i < 2000; ++i) holes.emplace_back(40 + i % 300, 'x');
    for (std::size_t i = 0; i < holes.size(); i += 2) holes[i] = std::string();
    for (const int count : {2, 3}) {
      set_threads(count);
      CHECK(train(text.source, options) == first);
    }
    set_threads(1);
    CHECK(train(text.target, options) != first);
  }
}

TEST_CASE("a size beyond the text gives what there is; one without room for the characters is refused") {
  for (const char* kind : kKinds) {
    const Strings lines = text_with_traps(false);
    CHECK(model_of(train(lines, {kind, 100}))->tokens().size() == 100);
    const auto all = model_of(train(lines, {kind, 32000}));
    CHECK(all->tokens().size() > 100);
    CHECK(all->tokens().size() < 32000);
    CHECK_THROWS_SAYING(train(lines, {kind, 10}), "data.max_vocabulary is 10; subwords need at least", ConfigError);
    CHECK_THROWS_SAYING(train(lines, {kind, 100, true}), "256 bytes", ConfigError);
    const std::string message = thrown_text<ConfigError>([&] { train(lines, {kind, 10}); });
    const auto at = message.find("at least ") + 9;
    const Index least = std::stoll(message.substr(at));
    CHECK(model_of(train(lines, {kind, least}))->tokens().size() == static_cast<std::size_t>(least));
    CHECK_THROWS_AS(train(lines, {kind, least - 1}), ConfigError);
    CHECK_THROWS_AS(train({}, {kind, 100}), DataError);
    CHECK_THROWS_AS(train({"", " \t"}, {kind, 100}), DataError);
    CHECK_THROWS_AS(train({"\xE2\x96\x85"}, {kind, 100}), DataError);
  }
}

TEST_CASE("very little text is no trouble") {
  for (const char* kind : kKinds) {
    for (const char* line : {"a", "aa", "ab", "abababab", "a b c d e f", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                             "\xE4\xB8\xAD", "abcabcabcabcxabcabcabc abc abc ab c"}) {
      CAPTURE(line);
      const auto model = model_of(train({line}, {kind, 50}));
      CHECK(SubwordTokenizer(model, false).normalise(line) == line);
      CHECK(Vocabulary::from_subwords(model).size() <= 50);
    }
  }
}

TEST_CASE("any text of a few characters can be learned from, or is refused, and stays as it is") {
  int learned = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const std::uint64_t letters = 1 + random.below(6);
    Strings lines(1 + random.below(12));
    for (std::string& line : lines) {
      for (std::uint64_t n = random.below(40); n > 0; --n) {
        const std::uint64_t what = random.below(16);
        line += what == 0   ? " "
                : what == 1 ? "\xE2\x96\x81"
                : what == 2 ? "<s>"
                : what == 3 ? "\xE4\xB8\xAD"
                            : std::string(1, static_cast<char>('a' + random.below(letters)));
      }
    }
    const SubwordOptions options{kKinds[random.below(2)], static_cast<Index>(5 + random.below(400)),
                                 random.below(3) == 0};
    try {
      const SubwordTokenizer tokenizer(model_of(train(lines, options)), false);
      ++learned;
      for (const std::string& line : lines) CHECK(tokenizer.normalise(line) == normalise_text(line, false));
    } catch (const ConfigError&) {  // too few pieces for the characters
    } catch (const DataError& error) {
      CHECK(contains(error.what(), "is blank"));
    }
  }
  CHECK(learned > 25);
}

TEST_CASE("the letters of symbols that a text spells out are learned") {
  const Strings lines{"hello </s> there", "a <unk> <s>b"};
  for (const char* kind : kKinds) {
    const auto model = model_of(train(lines, {kind, 60}));
    const SubwordTokenizer tokenizer(model, false);
    for (const std::string& line : lines) {
      const std::vector<TokenId> ids = Vocabulary::from_subwords(model).ids(tokenizer.split(line));
      CHECK(std::count(ids.begin(), ids.end(), kUnknown) == 0);
      CHECK(tokenizer.join(tokenizer.split(line)) == line);
    }
  }
}

TEST_CASE("character_coverage leaves out the rarest characters") {
  Strings lines(2000, "ab ba");
  lines.push_back("xyz");
  const auto whole = model_of(train(lines, {"bpe", 50})), part = model_of(train(lines, {"bpe", 50, false, 0.999}));
  const auto has = [](const SubwordModel& model, const std::string& piece) {
    return std::count(model.tokens().begin(), model.tokens().end(), piece) > 0;
  };
  CHECK(has(*whole, "x"));
  CHECK_FALSE(has(*part, "x"));
  CHECK(has(*part, "a"));
}

TEST_CASE("a model made elsewhere keeps its rule; its pieces get Weft's ids") {
  for (const char* kind : kKinds) {
    Strings lines = syllables(300, 5).source;
    for (int i = 0; i < 30; ++i) lines.push_back("fi \xC2\xBD <mask> < s > /");
    const auto model = model_of(made_elsewhere({{"model_type", kind},
                                                {"vocab_size", "300"},
                                                {"pad_id", "0"},
                                                {"eos_id", "1"},
                                                {"unk_id", "2"},
                                                {"bos_id", "-1"},
                                                {"byte_fallback", "true"},
                                                {"vocab_size", "500"},
                                                {"user_defined_symbols", "<mask>,<s>"}},
                                               lines));
    const Vocabulary vocabulary = Vocabulary::from_subwords(model);
    const SubwordTokenizer tokenizer(model, false);
    CHECK(Strings(vocabulary.tokens().begin(), vocabulary.tokens().begin() + 4) ==
          Strings{"<unk>", "<s>", "</s>", "<pad>"});
    CHECK(vocabulary.id("<mask>") > kEnd);
    CHECK(tokenizer.normalise("\xEF\xAC\x81 ka") == "fi ka");  // its rule is NFKC
    check_text_stays(tokenizer, vocabulary, "ka <s> </s> <pad> <mask> <unk>", "ka <s> </s> <pad> <mask> <unk>");
    const std::vector<TokenId> ids = vocabulary.ids(tokenizer.split("ka <pad> <mask> <s>"));
    CHECK(std::count(ids.begin(), ids.end(), vocabulary.id("<pad>")) == 0);
    CHECK(std::count(ids.begin(), ids.end(), vocabulary.id("<mask>")) == 1);
    CHECK(tokenizer.join(Strings{"\xE2\x96\x81", "<pad>", "a"}) == "a");
  }
}

TEST_CASE("pieces that no text can hold have a place and no text") {
  Strings lines = syllables(300, 5).source;
  for (int i = 0; i < 30; ++i)
    lines.push_back(
        "a\xE3\x80\x80"
        "b");  // U+3000, a space to Weft
  const auto model = model_of(
      made_elsewhere({{"model_type", "bpe"}, {"vocab_size", "300"}, {"normalization_rule_name", "identity"}}, lines));
  sentencepiece::SentencePieceProcessor reference;
  REQUIRE(reference.LoadFromSerializedProto(model->bytes()).ok());
  const int id = reference.PieceToId("\xE3\x80\x80");
  REQUIRE(id > 2);
  const Vocabulary vocabulary = Vocabulary::from_subwords(model);
  CHECK(vocabulary.size() == reference.GetPieceSize());
  CHECK(contains(vocabulary.token(id), "unused" + std::to_string(id)));
  CHECK(SubwordTokenizer(model, false).join(Strings{"a", vocabulary.token(id), "b"}) == "ab");
}

TEST_CASE("a model of words or characters is refused by its kind") {
  for (const char* kind : {"word", "char"}) {
    const std::string bytes = made_elsewhere({{"model_type", kind}, {"vocab_size", "100"}}, syllables(100, 5).source);
    CHECK_THROWS_SAYING(model_of(bytes), std::string("of the kind ") + kind, DataError);
  }
  const auto bpe = model_of(train(text_with_traps(false), {"bpe", 100}));
  CHECK_THROWS_SAYING(make_tokenizer("unigram", false, bpe), "one of the kind bpe", ConfigError);
  CHECK_THROWS_SAYING(make_tokenizer("unigram", false), "has none", ConfigError);
}

TEST_CASE("bytes that are no model are refused, or are a model that cuts text") {
  CHECK_THROWS_SAYING(model_of(""), "model: not a SentencePiece model", DataError);
  CHECK_THROWS_SAYING(model_of("Once upon a time"), "model: not a SentencePiece model", DataError);
  const Strings lines = text_with_traps(true);
  int refused = 0;
  for (const char* kind : kKinds) {
    // The second has a table of normalisation.
    for (const std::string& good :
         {train(lines, {kind, 400, true}), made_elsewhere({{"model_type", kind}, {"vocab_size", "400"}}, lines)}) {
      for (std::size_t k = 0; k < 40; ++k) {
        CHECK_THROWS_AS(model_of(good.substr(0, good.size() * k / 40)), DataError);
      }
      Random random(11);
      for (int trial = 0; trial < 300; ++trial) {
        std::string altered = good;
        for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
          altered[random.below(altered.size())] = static_cast<char>(random.below(256));
        }
        try {
          const auto model = model_of(altered);
          const SubwordTokenizer tokenizer(model, false);
          Vocabulary::from_subwords(model);
          for (const std::string& line : traps()) static_cast<void>(tokenizer.join(tokenizer.split(line)));
        } catch (const DataError&) {
          ++refused;
        }
      }
    }
  }
  CHECK(refused > 10);
}

TEST_CASE("a table of normalisation that leads outside itself is refused") {
  const std::string good = made_elsewhere({{"model_type", "bpe"}, {"vocab_size", "300"}}, syllables(100, 5).source);
  const auto name = good.find("nmt_nfkc");
  REQUIRE(name != good.npos);
  int refused = 0;
  for (std::size_t unit = 0; unit < 64; ++unit) {
    std::string altered = good;
    altered.replace(name + 20 + 4 * unit, 4, "\xFF\xFD\xFF\x7F");  // far away
    try {
      model_of(altered);
    } catch (const DataError& error) {
      refused += contains(error.what(), "table of normalisation") ? 1 : 0;
    }
  }
  CHECK(refused > 10);
}
