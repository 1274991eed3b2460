#include "weft/train/evaluate.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "throws.h"
#include "tiny_run.h"
#include "weft/core/error.h"
#include "weft/train/translate.h"

using namespace weft;
using Strings = std::vector<std::string>;

// The bytes that this program has from the heap are counted; those of tensors are not, as they are aligned.
namespace {
std::atomic<Index> held{0}, most_held{0};
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const place = std::malloc(size);
  if (place == nullptr) throw std::bad_alloc();
  const Index now = held += static_cast<Index>(malloc_usable_size(place));
  Index most = most_held;
  while (now > most && !most_held.compare_exchange_weak(most, now)) {
  }
  return place;
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return operator new(size);  // throws only where all is lost
}
[[gnu::noinline]] void operator delete(void* place) noexcept {
  held -= static_cast<Index>(malloc_usable_size(place));
  std::free(place);
}
[[gnu::noinline]] void operator delete(void* place, std::size_t) noexcept { operator delete(place); }

TEST_CASE("lines are translated a part at a time: the same as all at once, and in the memory that was foreseen") {
  const Index count = 2 * static_cast<Index>(kLinesAtOnce) + 50;
  const auto model = tiny_model(tiny_config({"model.max_length=10", "model.d_model=8"}));
  model->parameters().allocate();
  ParallelText text = letters(count, 3, 1, 9);
  text.source[5] = text.source[1500] = "a b c d e f a b c d e f";  // longer than the model holds
  text.source[7] = text.source[1700] = " ";
  SearchOptions options = search_options(model->config().decoding);
  options.beam = 1;
  options.min_length = options.max_length = 9;
  const Metrics metrics = make_metrics(kUsualMetrics);
  const std::span<const Strings> references(&text.target, 1);
  const Corpus corpus = encode_text(*model, text, 9, "text").corpus;

  const Index before = held;
  const TranslationResult result = evaluate_translations(*model, text.source, references, metrics, options, 300);
  const auto kept = static_cast<double>(held - before);
  const TranslationBytes foreseen = translation_bytes(*model, corpus, corpus.size(), metrics, options);
  CHECK(static_cast<double>(foreseen.kept) > 0.85 * kept);
  CHECK(static_cast<double>(foreseen.kept) < 1.15 * kept);

  const Index without = most_held = held.load();  // without metrics, whose counts come after the last translation
  evaluate_translations(*model, text.source, references, {}, options, 300);
  const auto most = static_cast<double>(most_held - without);
  const TranslationBytes texts = translation_bytes(*model, corpus, corpus.size(), {}, options);
  CHECK(static_cast<double>(texts.bytes()) > 0.85 * most);
  CHECK(static_cast<double>(texts.bytes()) < 1.3 * most);  // another heap, as that of a sanitizer, takes less for each text

  Strings all;
  for (const TranslatedLine& line : translate(*model, text.source, options, 4096)) {
    all.push_back(line.translations.front().text);
  }
  CHECK(result.translations == all);
  CHECK(result.cut_lines == 2);
  CHECK(result.exact == exact_matches(all, references));
  REQUIRE(result.counts.size() == metrics.size());
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    CHECK(result.counts[m] == count_lines(*metrics[m], all, references));
  }
}

TEST_CASE("an exact match is a line equal to one of its references") {
  const Strings hypotheses = {"a b", "", "c", "d "};
  const std::vector<Strings> one = {{"a b", "", "x", "d"}}, two = {{"a b", "", "x", "d"}, {"y", "y", "c", "d"}};
  CHECK(exact_matches(hypotheses, one) == std::vector<bool>{true, true, false, false});
  CHECK(exact_matches(hypotheses, two) == std::vector<bool>{true, true, true, false});
  CHECK(share_of(exact_matches(hypotheses, one)) == 0.5);
  CHECK(share_of({}) == 0.0);
  const std::vector<std::size_t> lines = {1, 2, 3};
  CHECK(share_of(exact_matches(hypotheses, two), lines) == 2.0 / 3);
  CHECK(share_of({}, std::vector<std::size_t>()) == 0.0);
  CHECK_THROWS_SAYING(exact_matches(Strings{"a"}, one), "1 hypotheses but 4 references", DataError);
}

TEST_CASE("lines are put into buckets by length, each into one, without empty buckets") {
  const std::vector<Index> lengths = {5, 0, 1, 51, 6, 10, 11, 20, 30, 31, 50, 400};
  std::vector<std::pair<std::string, std::vector<std::size_t>>> found;
  for (const LengthBucket& bucket : buckets_by_length(lengths)) found.emplace_back(bucket.name, bucket.lines);
  CHECK(found == std::vector<std::pair<std::string, std::vector<std::size_t>>>{{"0", {1}},
                                                                               {"1-5", {0, 2}},
                                                                               {"6-10", {4, 5}},
                                                                               {"11-20", {6, 7}},
                                                                               {"21-30", {8}},
                                                                               {"31-50", {9, 10}},
                                                                               {"51+", {3, 11}}});
  CHECK(buckets_by_length(std::vector<Index>{12, 13}).size() == 1);
  CHECK(buckets_by_length({}).empty());
}
