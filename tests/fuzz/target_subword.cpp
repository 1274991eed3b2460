// Any bytes as a SentencePiece model, then text through it; the part after the last kFuzzPart is text too.
#include <cstring>

#include "targets.h"
#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/data/subword_model.h"
#include "weft/data/subword_tokenizer.h"
#include "weft/data/subword_trainer.h"
#include "weft/data/text_file.h"

namespace weft {
namespace {

void use(const SubwordModel& model, const SubwordTokenizer& tokenizer, const std::string& line) {
  std::vector<std::string> tokens;
  try {
    tokens = tokenizer.split(line);
  } catch (const DataError&) {  // of SentencePiece, which gives up on some odd models only where they are used
    return;
  }
  for (const std::string& token : tokens) {
    fuzz_require(!token.empty(), "no token is empty");
    fuzz_require(token != "<s>" && token != "</s>" && token != "<unk>", "no token of text is a special");
  }
  const std::string joined = tokenizer.join(tokens);
  fuzz_require(!text_problem(joined) && joined.find('\n') == joined.npos, "what is joined is a line of text");
  tokenizer.join(model.tokens());
  Random random(1);
  tokenizer.join(tokenizer.sample(line, 0.5, random));
}

void run(const std::string& bytes) {
  std::shared_ptr<const SubwordModel> model;
  const std::size_t cut = std::min(bytes.rfind(kFuzzPart), bytes.size());
  try {
    model = SubwordModel::load(bytes.substr(0, cut), "fuzz");
  } catch (const DataError&) {
    return;
  }
  try {
    Vocabulary::from_subwords(model);
  } catch (const DataError&) {  // of pieces that stand for the same entry
    return;
  }
  const SubwordTokenizer tokenizer(model, false);
  for (const char* line :
       {"", "a ab abc", "kalo mi <s> </s> <unk> <0x41>", "xx\xC3\xA9x \xE2\x96\x81 \xF0\x9F\x98\x80 \xEF\xBF\xAD"}) {
    use(*model, tokenizer, line);
  }
  if (cut < bytes.size()) use(*model, tokenizer, bytes.substr(cut + 1));
}

std::string field(int number, const std::string& body) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  std::size_t length = body.size();
  for (; length >= 0x80; length >>= 7) bytes += static_cast<char>((length & 0x7F) | 0x80);
  return bytes + static_cast<char>(length) + body;
}

std::string piece(const std::string& text, char type, float score) {
  std::string body = field(1, text) + '\x15' + std::string(4, '\0') + '\x18' + type;
  std::memcpy(&body[body.size() - 6], &score, sizeof score);
  return field(1, body);
}

/// A table that makes some "y" of "x": the root, whose children stand from unit 256 on, the child "x" with a value, and
/// the value, 0, as unit 1.
std::string character_table(std::size_t made) {
  std::vector<std::uint32_t> units(512);
  units[0] = 256u << 10;
  units[256 ^ 'x'] = ((256u ^ 'x' ^ 1u) << 10) | 0x100u | 'x';
  units[1] = 0x80000000u;
  std::string table(4, '\0');
  const auto size = static_cast<std::uint32_t>(units.size() * 4);
  std::memcpy(table.data(), &size, 4);
  table.append(reinterpret_cast<const char*>(units.data()), size);
  return table + std::string(made, 'y') + '\0';
}

std::vector<std::string> seeds() {
  const std::string specials = piece("<unk>", 2, 0) + piece("<s>", 3, 0) + piece("</s>", 3, 0);
  const std::string letters =
      piece("\xE2\x96\x81", 1, -2) + piece("a", 1, -1) + piece("b", 1, -2) + piece("ab", 1, -1.5F) + piece("yy", 1, -3);
  const std::string unigram = field(2, "\x18\x01"), bpe = field(2, "\x18\x02");
  const std::vector<std::string> lines{"kalo mi ten", "kalo kalo mi", "sur ka lo ba", "mi mi ten a b c"};
  const std::span<const std::string> texts[] = {lines};
  std::string bytes_too, nested;
  for (int byte = 0; byte < 256; ++byte) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    bytes_too += piece(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 6, 0);
  }
  for (std::size_t k = 1; k <= 64; ++k) nested += piece(std::string(k, 'x'), 4, 0);
  std::vector<std::string> seeds{specials + letters + unigram,
                                 specials + letters + bpe,
                                 specials + letters + unigram + field(3, field(2, character_table(2))),
                                 specials + letters + unigram + field(5, field(2, character_table(2))),
                                 specials + letters + unigram + nested,
                                 specials + letters + unigram + field(4, field(1, field(1, "ab a") + field(2, "ab a"))),
                                 specials + letters + piece("ba", 4, 0) + piece("aba", 5, -1) + bpe,
                                 specials + letters + field(2, "\x18\x01\x98\x02\x01") + bytes_too,
                                 train_subwords(texts, {"unigram", 24}),
                                 train_subwords(texts, {"bpe", 24})};
  for (std::string& seed : seeds) seed += kFuzzPart + std::string("abab ba ") + std::string(80, 'x');
  seeds.push_back(specials + letters + bpe + field(3, field(2, character_table(32))) + kFuzzPart +
                  std::string(600, 'x'));  // a word that is parted
  seeds.emplace_back();
  return seeds;
}

}  // namespace

FuzzTarget fuzz_subword() { return {"subword", 8192, run, seeds}; }

}  // namespace weft
