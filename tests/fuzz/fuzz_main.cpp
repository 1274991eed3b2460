// libFuzzer's entry: `WEFT_FUZZ_TARGET=NAME fuzz [option]... CORPUS` runs the target of that name. See scripts/fuzz.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "targets.h"
#include "weft/core/threads.h"

namespace {

const weft::FuzzTarget& chosen() {
  const char* name = std::getenv("WEFT_FUZZ_TARGET");
  for (const weft::FuzzTarget& target : weft::fuzz_targets()) {
    if (name != nullptr && std::string_view(name) == target.name) return target;
  }
  std::fputs("fuzz: set WEFT_FUZZ_TARGET to a name that fuzz_seeds prints\n", stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weft::FuzzTarget& target = [&]() -> const weft::FuzzTarget& {
    weft::set_threads(1);  // inputs are small, and runs the same each time
    return chosen();
  }();
  target.run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
