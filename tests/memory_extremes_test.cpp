// The forecast of memory where lengths differ much: long sources beside short targets, long lines of a validation, and
// subwords that are drawn.
#include <doctest/doctest.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "memory_peak.h"
#include "subword_text.h"
#include "tiny_run.h"
#include "weft/core/random.h"
#include "weft/train/epoch_encoder.h"
#include "weft/train/memory_forecast.h"
#include "weft/train/translate.h"

using namespace weft;

namespace {

/// Lines of so many times "a", in turn.
std::vector<std::string> lines_of_lengths(Index count, const std::vector<Index>& lengths) {
  std::vector<std::string> lines;
  for (Index i = 0; i < count; ++i) {
    lines.emplace_back();
    for (Index n = lengths[static_cast<std::size_t>(i) % lengths.size()]; n > 0; --n) lines.back() += "a ";
  }
  return lines;
}

}  // namespace

TEST_CASE("of sizes of batches the outermost are few, and one of them takes most, whatever rows take") {
  Random random(5, random_site("sizes"));
  std::vector<BatchSize> sizes;
  for (Index i = 0; i < 1000; ++i) {  // as batches are: nearly full, or the last of an epoch
    const Index rows = 3900 + random.below(100), source = random.below(rows);
    sizes.push_back({1, source, rows - source});
  }
  sizes.push_back({1, 10, 10});
  const std::vector<BatchSize> corners = outermost(sizes);
  CHECK(corners.size() > 2);
  CHECK(corners.size() < 20);
  for (Index trial = 0; trial < 200; ++trial) {
    double rates[3][2];
    for (auto& moment : rates) moment[0] = random.uniform(), moment[1] = random.uniform();
    const auto taken = [&](const BatchSize& size) {
      double most = 0;
      for (const auto& moment : rates) {
        most = std::max(most, moment[0] * static_cast<double>(size.source_rows) +
                                  moment[1] * static_cast<double>(size.target_rows));
      }
      return most;
    };
    const auto most_of = [&](const std::vector<BatchSize>& some) {
      double most = 0;
      for (const BatchSize& size : some) most = std::max(most, taken(size));
      return most;
    };
    CHECK(most_of(corners) == doctest::Approx(most_of(sizes)));
  }
  // One that has neither the most rows nor the most of a side.
  CHECK(outermost({{1, 1000, 10}, {1, 800, 150}, {1, 10, 200}, {1, 500, 160}, {1, 10, 100}}) ==
        std::vector<BatchSize>{{1, 1000, 10}, {1, 800, 150}, {1, 10, 200}});
  CHECK(outermost({}).empty());
}

TEST_CASE("what a batch takes is found from parts of it, of which none is tried that would not fit") {
  const BatchSize whole{512, 50'000, 50'000};
  const auto part = [&](Index divisor) -> BatchSize {
    return {whole.sentences / divisor, whole.source_rows / divisor, whole.target_rows / divisor};
  };
  const double fixed = 2e6, row = 3e3, all = fixed + row * static_cast<double>(whole.rows());
  double most = 0, memory = 1e18;
  const auto peak = [&](const BatchSize& size) {
    const double bytes = fixed + row * static_cast<double>(size.rows());
    most = std::max(most, bytes);
    return peak_of([&] {
      if (bytes > memory) throw std::bad_alloc();
      const auto block = pool_array(static_cast<Index>(bytes / sizeof(real)));
    });
  };
  const MemoryLine exact = line_of(part, 4, kAnyRoom, peak);
  CHECK(exact.at(whole.rows()) == doctest::Approx(all).epsilon(0.3));
  CHECK(most < 0.3 * all);
  for (const double room : {3e6, 7e6, 3e7, 6e7}) {
    CAPTURE(room);
    most = 0;
    CHECK(line_of(part, 4, room, peak).at(whole.rows()) > room);
    CHECK(most < 1.3 * room);
  }
  // Memory that is out, though the room seemed to be there, is a batch that does not fit.
  for (const double left : {1e6, 4e6, 5e7}) {
    CAPTURE(left);
    memory = left;
    const MemoryLine line = line_of(part, 4, 2e8, peak);
    CHECK(line.at(whole.rows()) > 2e8);
  }
}

TEST_CASE("the batch that takes most is found though logits take most of a part of another") {
  Random random(5, random_site("words"));
  const auto line = [&](Index words) {
    std::string text;
    for (; words > 0; --words) text += "w" + std::to_string(random.below(1000)) + " ";
    return text;
  };
  ParallelText text;
  for (Index i = 0; i < 600; ++i) {
    text.source.push_back(line(1 + static_cast<Index>(random.below(200))));
    text.target.push_back(line(100));
  }
  const Config config = tiny_config({"model.max_length=210", "data.max_length=205", "training.batch_tokens=20000",
                                     "model.encoder_layers=6", "model.decoder_layers=1", "model.d_model=8"});
  Vocabularies vocabularies = build_vocabularies(config.data, text);
  TranslationModel model(config, std::move(vocabularies.source), std::move(vocabularies.target), standard_layers());
  const Corpus train = encode_text(model, text, 205, "text").corpus;
  TrainingStep step(model);
  const BatchSize largest = largest_batch(model, step, training_batches(model, train, 20000), 1 << 30);
  const Index before = memory_statistics().current_bytes;
  const auto batches = BatchPlan(train, 20000, 1).epoch(0);
  const double taken = static_cast<double>(peak_memory(model, step, train, batches) - before);
  CHECK(update_peak(model, step, largest) > 0.9 * taken);
}

TEST_CASE("the batch that takes most is found where sources and targets are of different lengths") {
  for (const std::vector<std::string>& layers :
       {std::vector<std::string>{"model.encoder_layers=1", "model.decoder_layers=6"},
        {"model.encoder_layers=6", "model.decoder_layers=1"}}) {
    for (const Index uneven : {1, 30}) {
      CAPTURE(layers);
      CAPTURE(uneven);
      std::vector<std::string> all{"model.max_length=64", "data.max_length=60", "training.batch_tokens=2000"};
      all.insert(all.end(), layers.begin(), layers.end());
      const auto model = tiny_model(tiny_config(all));
      const ParallelText text{lines_of_lengths(400, {50, 1, 20}), lines_of_lengths(400, {uneven, 49, 20})};
      const Corpus train = tiny_data(*model, text, text).train;
      TrainingStep step(*model);
      const auto batches = BatchPlan(train, 2000, 1).epoch(0);
      const BatchSize largest = largest_batch(*model, step, training_batches(*model, train, 2000));
      const Index before = memory_statistics().current_bytes;
      const double taken = static_cast<double>(peak_memory(*model, step, train, batches) - before);
      const double forecast = forecast_update(*model, step, largest).at(largest.rows());
      CHECK(forecast > 0.85 * taken);
      CHECK(forecast < 1.15 * taken);
    }
  }
}

TEST_CASE("the batch that takes most is found though it is of a later epoch of the run") {
  const auto largest = [](const std::vector<BatchSize>& sizes) {
    Index rows = 0;
    for (const BatchSize& size : sizes) rows = std::max(rows, size.source_rows);
    return rows;
  };
  constexpr Index kTokens = 120, kPairs = 3000, kLong = 50;
  Index together = 0;
  for (Index at = 0; at < 8; ++at) {  // two long sources, in one batch or not
    Corpus train;
    for (Index i = 0; i < kPairs; ++i) {
      train.source.append(std::vector<TokenId>(i == 7 || i == 100 + at ? kLong : 5, kEnd));
      train.target.append(std::vector<TokenId>(i == 7 || i == 100 + at ? 1 : 5, kEnd));
      train.line.push_back(i);
    }
    const BatchPlan plan(train, kTokens, 1);
    std::vector<Index> rows;
    for (Index epoch = 0; epoch < 16; ++epoch) {
      rows.push_back(0);
      for (const auto& sentences : plan.epoch(epoch)) {
        rows.back() = std::max(rows.back(), size_of(train, sentences).source_rows);
      }
    }
    const Index most = *std::max_element(rows.begin(), rows.end());
    together += most > rows[0];
    const auto found = [&](const std::string& steps) {
      const auto model = tiny_model(tiny_config({"training.steps=" + steps, "training.seed=1"}));
      return largest(training_batches(*model, train, kTokens));
    };
    CHECK(found("10") == rows[0]);  // of one epoch
    CHECK(found("100000") == most);
  }
  CHECK(together > 0);
}

TEST_CASE(
    "long lines of a validation are in its forecast: of its loss, and where it leaves them out, of translations") {
  for (const Index longest : {500, 200}) {
    CAPTURE(longest);
    const auto model = tiny_model(
        tiny_config({"model.max_length=" + std::to_string(longest), "data.max_length=30", "training.batch_tokens=50",
                     "decoding.max_length=3", "model.d_feed_forward=256", "model.dropout=0"}));
    const ParallelText valid{lines_of_lengths(20, {400, 3, 4, 3, 2}), lines_of_lengths(20, {390, 3, 4, 3, 2})};
    const Corpus corpus = encode_text(*model, valid, longest - 1, "valid").corpus;
    const Corpus train = encode_text(*model, letters(300, 5, 1, 20), 30, "train").corpus;
    CHECK(corpus.size() == (longest == 500 ? 20 : 16));
    const auto forecast = forecast_memory(*model, train, corpus, valid, {1 << 30, ""});
    const Index before = memory_statistics().current_bytes;
    reset_peak_memory();
    evaluate_loss(*model, corpus, 50);
    const double loss = static_cast<double>(memory_statistics().peak_bytes - before);
    reset_peak_memory();
    SearchOptions greedy = search_options(model->config().decoding);
    greedy.beam = 1;
    translate(*model, valid.source, greedy, model->config().decoding.batch_tokens);
    const double translations = static_cast<double>(memory_statistics().peak_bytes - before);
    const double foreseen = static_cast<double>(std::max(forecast.loss.bytes, forecast.decoding.bytes));
    CHECK(foreseen > 0.85 * std::max(loss, translations));
    CHECK(foreseen < 1.25 * std::max(loss, translations));
    CHECK(forecast.work() >= foreseen);
  }
}

TEST_CASE("the batch of a text that is smaller than one, and of long pairs, is foreseen with subwords drawn") {
  const ParallelText text = syllables(200, 21);
  for (const std::string tokens : {"100000", "40"}) {
    CAPTURE(tokens);
    const Config config =
        tiny_config({"data.tokenizer=bpe", "data.max_vocabulary=120", "data.max_length=60", "model.max_length=61",
                     "data.subword_sampling=0.9", "training.batch_tokens=" + tokens});
    Vocabularies vocabularies = build_vocabularies(config.data, text);
    TranslationModel model(config, std::move(vocabularies.source), std::move(vocabularies.target), standard_layers());
    const Corpus plain = encode_text(model, text, 60, "text").corpus;
    const auto rows = [&](const Corpus& corpus) {
      Index most = 0;
      for (const auto& sentences : BatchPlan(corpus, config.training.batch_tokens, 1).epoch(0)) {
        most = std::max(most, size_of(corpus, sentences).rows());
      }
      return static_cast<double>(most);
    };
    const double drawn = rows(EpochEncoder(model, text, plain.line, 60)(0));
    CHECK(drawn > 1.3 * rows(plain));
    const auto foreseen = forecast_memory(model, plain, plain, text, {1 << 30, ""}).largest_rows;
    CHECK(static_cast<double>(foreseen) == doctest::Approx(drawn).epsilon(0.05));
  }
}

TEST_CASE("subwords that are drawn for an epoch are foreseen, and their room does not double as it grows") {
  const ParallelText text = syllables(6000, 21);
  const Config config = tiny_config({"data.tokenizer=bpe", "data.max_vocabulary=120", "data.max_length=60",
                                     "model.max_length=61", "data.subword_sampling=0.9"});
  Vocabularies vocabularies = build_vocabularies(config.data, syllables(200, 21));
  TranslationModel model(config, std::move(vocabularies.source), std::move(vocabularies.target), standard_layers());
  const Corpus plain = encode_text(model, text, 60, "text").corpus;
  const Corpus drawn = EpochEncoder(model, text, plain.line, 60)(0);
  const auto fixed = static_cast<double>(corpus_bytes(plain)), bytes = static_cast<double>(corpus_bytes(drawn)),
             plan = static_cast<double>(32 * plain.size());
  CHECK(bytes > 1.3 * fixed);
  const auto tokens = static_cast<double>(drawn.source.tokens.size() + drawn.target.tokens.size());
  CHECK(static_cast<double>(drawn.source.tokens.capacity() + drawn.target.tokens.capacity()) < 1.1 * tokens);
  const double once = static_cast<double>(text_bytes(model, plain, 0.9 * tokens, 1000)) - plan,
               again = static_cast<double>(text_bytes(model, plain, 1.2 * tokens, 1000)) - plan;
  CHECK(once == doctest::Approx(bytes).epsilon(0.05));
  CHECK(again == doctest::Approx(2 * bytes - fixed).epsilon(0.05));  // the text itself is gone
  // An update of seven batches, of three to an epoch, is from four epochs at most.
  TrainingConfig training = config.training;
  training.accumulate = 7;
  model.set_training(training);
  const double plan_of_update = 8 * static_cast<double>(plain.size()) * 6 / 3;
  const auto rows = static_cast<Index>(tokens) + 2 * plain.size();
  CHECK(static_cast<double>(text_bytes(model, plain, 100 * tokens, rows / 3 - 100)) - plan - plan_of_update ==
        doctest::Approx(3 * bytes + (bytes - fixed)).epsilon(0.05));
  double lines = 0;
  for (const auto* side : {&text.source, &text.target}) {
    for (const std::string& line : *side) lines += static_cast<double>(line.size() + sizeof(std::string) + 16);
  }
  CHECK(static_cast<double>(held_text_bytes(model, plain)) == doctest::Approx(fixed + lines).epsilon(0.05));
}
