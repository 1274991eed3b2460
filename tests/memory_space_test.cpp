// What the pool keeps and gives back, also where the address space is limited (ulimit -v).
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "sanitizers.h"
#include "throws.h"
#include "tiny_run.h"
#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/memory.h"
#include "weft/core/out_of_memory.h"
#include "weft/core/random.h"
#include "weft/core/threads.h"
#include "weft/train/cli.h"
#include "weft/train/memory_refusal.h"

#ifndef WEFT_SANITIZED
using namespace weft;

namespace {

/// For as long as it lives, this process may take that much more address space than it has.
class LimitedSpace {
 public:
  explicit LimitedSpace(Index more) {
    REQUIRE(::getrlimit(RLIMIT_AS, &before_) == 0);
    rlimit lower = before_;
    lower.rlim_cur = std::stoull(read_file("/proc/self/statm")) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) +
                     static_cast<rlim_t>(more);
    REQUIRE(::setrlimit(RLIMIT_AS, &lower) == 0);
  }
  LimitedSpace(const LimitedSpace&) = delete;
  LimitedSpace& operator=(const LimitedSpace&) = delete;
  ~LimitedSpace() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("where operator new finds no memory, it gets what the pool keeps, and only then fails") {
  const std::new_handler before = std::get_new_handler();
  const std::terminate_handler terminate = std::get_terminate();
  const char* const words[] = {"weft", "--version"};
  REQUIRE(run(2, words, standard_layers()) == 0);  // which sets its handler
  release_unused_memory();
  constexpr std::size_t kBytes = 64 << 20, kSmall = 20'000;
  pool_free(pool_allocate(kBytes));
  CHECK(release_unused_memory() >= static_cast<Index>(kBytes));
  CHECK(release_unused_memory() == 0);
  std::vector<void*> blocks(1000);
  pool_free(pool_allocate(kBytes));
  std::optional<LimitedSpace> limit(std::in_place, 4 << 20);
  std::size_t got = 0, taken = 0;
  bool out = false;
  try {
    got = std::vector<char>(kBytes / 2).size();
    while (taken < blocks.size()) blocks[taken] = pool_allocate(kBytes / 64), ++taken;
  } catch (const OutOfMemory&) {
    out = true;
  }
  const std::size_t large = taken;
  try {  // blocks that the pool takes from operator new: it does not wait for itself
    while (taken < blocks.size()) blocks[taken] = pool_allocate(kSmall), ++taken;
  } catch (const OutOfMemory&) {
  }
  limit.reset();
  std::set_new_handler(before);
  std::set_terminate(terminate);
  while (taken > 0) pool_free(blocks[--taken]);
  release_unused_memory();
  CHECK(got == kBytes / 2);
  CHECK(out);
  CHECK(large > 20);
}

TEST_CASE("small blocks of the pool go back to the system, though what others have of the heap stays") {
  constexpr std::size_t kBlocks = 20'000, kBytes = 2000;
  const Index before = settled_memory().now;
  std::vector<void*> blocks;
  std::vector<std::vector<char>> others;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::memset(pool_allocate(kBytes), 1, kBytes));
    others.emplace_back(200);
  }
  CHECK(resident_memory().now - before > static_cast<Index>(kBlocks * kBytes));
  for (void* const block : blocks) pool_free(block);
  release_unused_memory();
  CHECK(resident_memory().now - before < static_cast<Index>(kBlocks * kBytes / 3));
}

TEST_CASE("blocks of all sizes are apart from each other, whichever are given back when") {
  struct Block {
    unsigned char* bytes;
    std::size_t size;
    unsigned char mark;
  };
  Random random(1, random_site("blocks"));
  std::vector<Block> blocks;
  const auto give_back = [&](std::size_t i) {
    std::swap(blocks[i], blocks.back());
    const Block block = blocks.back();
    CHECK(std::all_of(block.bytes, block.bytes + block.size, [&](unsigned char byte) { return byte == block.mark; }));
    pool_free(block.bytes);
    blocks.pop_back();
  };
  for (Index turn = 0; turn < 20'000; ++turn) {
    const auto size = static_cast<std::size_t>(1 + random.below(std::uint64_t{1} << (3 + random.below(14))));
    auto* const bytes = static_cast<unsigned char*>(pool_allocate(size));
    CHECK(reinterpret_cast<std::uintptr_t>(bytes) % 64 == 0);
    blocks.push_back({bytes, size, static_cast<unsigned char>(turn % 251)});
    std::memset(bytes, blocks.back().mark, size);
    const bool falls = turn / 2500 % 2 == 1;
    for (int i = 0; i < (falls ? 2 : 1) && !blocks.empty() && random.below(3) > 0; ++i) {
      give_back(static_cast<std::size_t>(random.below(blocks.size())));
    }
    if (turn % 500 == 0) release_unused_memory();
  }
  while (!blocks.empty()) give_back(0);
  release_unused_memory();
  CHECK(memory_statistics().reserved_bytes == memory_statistics().current_bytes);
}

TEST_CASE("an optimizer that a limited address space has no room for is a run that does not fit") {
  // Of a size for which the pool takes nearly a fifth more.
  const Config config = tiny_config({"model.d_model=660", "model.heads=1", "training.batch_tokens=10"});
  const auto model = tiny_model(config);
  const TrainingData data = tiny_data(*model, letters(60, 5), letters(10, 6));
  const Index buffer = model->parameters().values().size() * static_cast<Index>(sizeof(real));
  start_threads();  // whose stacks would take of the space
  const LimitedSpace limit(2 * buffer + buffer / 4);
  const MemoryRoom room = memory_room();
  const MemoryForecast forecast = forecast_memory(*model, data.train, data.valid, data.valid_text, room);
  CHECK(forecast.state > 4 * buffer);
  CHECK_THROWS_SAYING(require_room(forecast, config, room), "(ulimit -v); lower model.d_model from 660 to ",
                      ConfigError);
}
#endif
