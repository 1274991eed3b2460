// Any bytes as the cache of an encoded corpus, with the right key and checksum.
#include <zlib.h>

#include <cstring>

#include "targets.h"
#include "weft/data/corpus_cache.h"

namespace weft {
namespace {

constexpr std::uint64_t kKey = 0x0807060504030201u;
constexpr std::size_t kKeyPlace = 14, kNumber = 8;

/// Puts the key and the checksum where they belong.
std::string mended(std::string bytes) {
  if (bytes.size() < kKeyPlace + 2 * kNumber) return bytes;
  std::memcpy(&bytes[kKeyPlace], &kKey, kNumber);
  const std::size_t end = bytes.size() - kNumber;
  const std::uint64_t sum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), end);
  std::memcpy(&bytes[end], &sum, kNumber);
  return bytes;
}

void check(const EncodedText& text) {
  fuzz_require(text.rows.rows() == static_cast<Index>(text.tokens.size()), "sentences have the tokens that there are");
  for (Index i = 0; i < text.sentences(); ++i) fuzz_require(text.length(i) >= 0, "no length is negative");
  for (const TokenId id : text.tokens) fuzz_require(id >= 0, "no token is negative");
}

void run(const std::string& bytes) {
  const MemoryFile file(mended(bytes));
  const LoadedCorpus loaded = load_corpus(file.path(), kKey);
  fuzz_require(loaded.corpus.has_value() != !loaded.problem.empty(), "there is a corpus or a problem");
  if (!loaded.corpus) return;
  check(loaded.corpus->corpus.source);
  check(loaded.corpus->corpus.target);
}

std::vector<std::string> seeds() {
  const auto numbers = [](std::initializer_list<std::uint64_t> values) {
    std::string bytes;
    for (const std::uint64_t value : values) {
      for (std::size_t b = 0; b < kNumber; ++b) bytes += static_cast<char>(value >> (8 * b));
    }
    return bytes;
  };
  const auto four = [](char value) { return std::string(1, value) + std::string(3, '\0'); };
  // Two pairs: of 1 and 2 tokens in two bytes each, and of 2 and 0 tokens in four bytes each.
  const std::string source = numbers({2, 3, 2}) + four(1) + four(2) + std::string("\3\0\4\0\5\0", 6);
  const std::string target = numbers({2, 2, 4}) + four(2) + four(0) + four(3) + four(7);
  const std::string begin = "weft corpus 1\n" + numbers({kKey, 3, 2, 1, 0, 3, 2, 0, 0, 1, 5}) + "t.tsv";
  const std::string more = numbers({2, 3, 2}) + four(1) + four(9) + std::string("\3\0\4\0\5\0", 6);  // than tokens
  return {"", begin + source + target + numbers({0, 2, 0}), begin + more + target + numbers({0, 2, 0}),
          begin + numbers({0, 0, 2, 0, 0, 4, 0})};
}

}  // namespace

FuzzTarget fuzz_cache() { return {"cache", 1024, run, seeds}; }

}  // namespace weft
