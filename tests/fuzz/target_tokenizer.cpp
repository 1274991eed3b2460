// Any bytes as lines for the tokenizers that need no model; the first byte chooses one.
#include <algorithm>

#include "targets.h"
#include "weft/data/tokenizer.h"
#include "weft/data/vocabulary.h"

namespace weft {
namespace {

void run(const std::string& bytes) {
  if (bytes.empty()) return;
  constexpr const char* kNames[] = {"word", "whitespace", "character"};
  const auto choice = static_cast<unsigned char>(bytes[0]);
  const auto tokenizer = make_tokenizer(kNames[choice % 3], (choice & 0x80) != 0);
  const std::string line = bytes.substr(1);
  const std::vector<std::string> tokens = tokenizer->split(line);
  for (const std::string& token : tokens) {
    fuzz_require(!token.empty(), "no token is empty");
    fuzz_require(std::find(kSpecialTokens.begin(), kSpecialTokens.end(), token) == kSpecialTokens.end(),
                 "no token of text is a special");
  }
  fuzz_require(tokenizer->join(tokens) == tokenizer->normalise(line), "what was split is joined again");
  // Tokens that no text gives, as a model may write them: the pieces of the line.
  tokenizer->join(fuzz_parts(line));
  TokenCounter counter;
  counter.add(tokens);
  fuzz_require(counter.sorted().size() <= tokens.size(), "no more tokens are counted than there are");
}

std::vector<std::string> seeds() {
  const std::string line =
      "It's \xC2\xA1Hola! (l'\xC3\xA9t\xC3\xA9 2.5\xC2\xA0%), \"<s>\" </s> e\xCC\x81 \xE2\x96\x81\xEF\xBF\xAD x-y\x1F_";
  const std::string odd =
      "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 \xC0\xAF \xE4\xB8\xAD\xE6\x96\x87 \xC4\xB0\xCE\xA3";
  std::vector<std::string> seeds;
  for (const char choice : {'\x00', '\x01', '\x02', '\x81', '\x82', '\x83'}) {
    seeds.push_back(choice + line);
    seeds.push_back(choice + odd);
  }
  return seeds;
}

}  // namespace

FuzzTarget fuzz_tokenizer() { return {"tokenizer", 512, run, seeds}; }

}  // namespace weft
