// The targets of the fuzzers on their seeds and on changes of them that are the same in every run. What ends a target here
// is a crash, a sanitizer's report, or an error that is not the answer to bad bytes; scripts/fuzz looks for more.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sanitizers.h"
#include "targets.h"
#include "weft/core/random.h"

using namespace weft;

namespace {

/// Bytes that readers are known to stumble over.
const std::vector<std::string>& troubles() {
  static const std::vector<std::string> all{std::string(8, '\xFF'),
                                            std::string(8, '\0'),
                                            "[[[[[[[[",
                                            "{\"a\":",
                                            "\"",
                                            "\\u0000",
                                            "1e999",
                                            "-1",
                                            "18446744073709551616",
                                            "\xC0\x80",
                                            "\x1F",
                                            "\xEF\xBB\xBF",
                                            "\n",
                                            "\x7F",
                                            "\x80",
                                            ",",
                                            "1000000000",
                                            "null"};
  return all;
}

/// One small change, as fuzzers make them.
void change(std::string& bytes, const std::string& other, Random& random) {
  const std::size_t at = bytes.empty() ? 0 : random.below(bytes.size());
  const std::size_t length = bytes.empty() ? 0 : 1 + random.below(std::min<std::size_t>(bytes.size() - at, 16));
  switch (random.below(7)) {
    case 0:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 1:
      if (!bytes.empty()) bytes[at] = static_cast<char>(random.below(256));
      break;
    case 2:
      bytes.erase(at, length);
      break;
    case 3:
      bytes.insert(at, bytes.substr(at, length));
      break;
    case 4:
      bytes.insert(at, troubles()[random.below(troubles().size())]);
      break;
    case 5: {
      const std::string& trouble = troubles()[random.below(troubles().size())];
      bytes.replace(at, std::min(trouble.size(), bytes.size() - at), trouble);
      break;
    }
    default:  // the end of another seed
      bytes = bytes.substr(0, at) + other.substr(other.empty() ? 0 : random.below(other.size()));
  }
}

#ifdef WEFT_SANITIZED
constexpr int kChanges = 150;  // of each seed
#else
constexpr int kChanges = 1000;
#endif

}  // namespace

TEST_CASE(
    "every reader of untrusted bytes ends in a result or in its own error, also for thousands of damaged inputs") {
  int inputs = 0;
  for (const FuzzTarget& target : fuzz_targets()) {
    const std::string name = target.name;
    CAPTURE(name);
    const std::vector<std::string> seeds = target.seeds();
    Random random(7, random_site(target.name));
    for (std::size_t s = 0; s < seeds.size(); ++s) {
      CAPTURE(s);
      CHECK(seeds[s].size() <= target.most_bytes);
      CHECK_NOTHROW(target.run(seeds[s]));
      for (int i = 0; i < kChanges; ++i) {
        std::string bytes = seeds[s];
        for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
          change(bytes, seeds[random.below(seeds.size())], random);
        if (bytes.size() > target.most_bytes) bytes.resize(target.most_bytes);
        CAPTURE(i);
        CHECK_NOTHROW(target.run(bytes));
        ++inputs;
      }
    }
  }
  CHECK(inputs > 5000);
}

TEST_CASE("the targets do read: a broken promise ends them, and the seeds reach what they are for") {
  CHECK_THROWS(fuzz_require(false, "a promise"));
  CHECK(fuzz_parts("a\x1F\x1F"
                   "b") == std::vector<std::string>{"a", "", "b"});
  std::string bytes = R"(x"weft.crc32":"zzzzzzzz")";
  mend_checksum(bytes);
  CHECK(bytes.find("zzzzzzzz") == bytes.npos);
}
