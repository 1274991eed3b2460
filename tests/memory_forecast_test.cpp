// The forecast of what a run takes, against what it takes, and the values that refusals of runs that do not fit name.
#include "weft/train/memory_forecast.h"
#include "weft/train/memory_refusal.h"

#include "cli.h"
#include "memory_peak.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/memory.h"
#include "weft/train/memory_budget.h"
#include "weft/train/translate.h"

using namespace weft;
using namespace weft::cli;

namespace {

const Index kMega = 1 << 20;

/// A model of that configuration with its text.
struct Subject {
  explicit Subject(const std::vector<std::string>& overrides)
      : model(tiny_model(tiny_config(overrides))),
        lines(letters(300, 6, 1, 20)),
        data(tiny_data(*model, letters(2000, 5, 1, 20), lines)) {}

  std::unique_ptr<TranslationModel> model;
  ParallelText lines;
  TrainingData data;
};

/// The value to which a refusal says to lower a key.
Index value_in(const std::string& text, const std::string& key) {
  const std::size_t at = text.find("lower " + key + " from ");
  REQUIRE(at != text.npos);
  return std::stoll(text.substr(text.find(" to ", at) + 4));
}

}  // namespace

TEST_CASE("the memory of an update, from a part of its batch, is within 15 % of what the pool hands out") {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"training.batch_tokens=4000"},
        {"training.batch_tokens=3001", "model.d_model=48", "model.heads=3"},
        {"training.batch_tokens=2000", "model.norm_first=true", "model.encoder_layers=3", "training.ema_decay=0.9"},
        {"training.batch_tokens=1500", "model.activation=gelu", "model.tied_embeddings=decoder",
         "model.d_feed_forward=200", "optimizer.name=sgd"},
        {"training.batch_tokens=6000", "model.self_attention=multi_head", "model.positions=learned"}}) {
    CAPTURE(overrides);
    std::vector<std::string> all{"model.max_length=40", "data.max_length=30"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    Subject subject(all);
    TrainingStep step(*subject.model);
    const auto batches = BatchPlan(subject.data.train, subject.model->config().training.batch_tokens, 1).epoch(0);
    const BatchSize largest = largest_batch(
        *subject.model, step,
        training_batches(*subject.model, subject.data.train, subject.model->config().training.batch_tokens));
    CHECK(largest.rows() <= subject.model->config().training.batch_tokens);
    const Index before = memory_statistics().current_bytes;
    const double taken = static_cast<double>(peak_memory(*subject.model, step, subject.data.train, batches) - before);
    const double forecast = forecast_update(*subject.model, step, largest).at(largest.rows());
    CHECK(forecast > 0.85 * taken);
    CHECK(forecast < 1.15 * taken);
  }
}

TEST_CASE("the memory of a validation's translations is what the pool hands out, or up to a quarter more") {
  for (const std::string tokens :
       {"decoding.batch_tokens=4000", "decoding.batch_tokens=500", "decoding.batch_tokens=30"}) {
    CAPTURE(tokens);
    Subject subject({"model.max_length=40", "data.max_length=30", tokens, "model.d_model=32"});
    subject.model->parameters().allocate();
    const auto forecast = static_cast<double>(forecast_decoding(*subject.model, subject.data.valid.source).bytes);
    SearchOptions greedy = search_options(subject.model->config().decoding);
    greedy.beam = 1;
    greedy.min_length = 1000;  // as the forecast supposes: no sentence ends by itself
    const Index before = memory_statistics().current_bytes;
    reset_peak_memory();
    translate(*subject.model, subject.lines.source, greedy, subject.model->config().decoding.batch_tokens);
    const double taken = static_cast<double>(memory_statistics().peak_bytes - before);
    CHECK(forecast > 0.85 * taken);
    CHECK(forecast < 1.25 * taken);
  }
}

TEST_CASE("the state of a model is known before it is allocated") {
  for (const char* optimizer : {"optimizer.name=adam", "optimizer.name=sgd"}) {
    for (const char* decay : {"training.ema_decay=0", "training.ema_decay=0.9"}) {
      Subject subject({"model.max_length=40", "data.max_length=30", "model.d_model=64", optimizer, decay});
      const Index before = memory_statistics().current_bytes;
      CHECK_THROWS_SAYING(require_room_for_model(*subject.model, standard_layers(), {1000, "left"}), "1000 B left",
                          ConfigError);
      CHECK(memory_statistics().current_bytes == before);
      const Index buffer = subject.model->parameters().values().size() * static_cast<Index>(sizeof(real));
      const Config& config = subject.model->config();
      const Index buffers =
          2 + (std::string(optimizer) == "optimizer.name=adam" ? 2 : 0) + (config.training.ema_decay > 0);
      CHECK(
          forecast_memory(*subject.model, subject.data.train, subject.data.valid, subject.lines, {1 << 30, ""}).state ==
          buffers * buffer);
    }
  }
}

TEST_CASE("what there is already is the program and the training text's ids") {
  Subject subject({"model.max_length=40", "data.max_length=30"});
  const Corpus& train = subject.data.train;
  const auto tokens = static_cast<Index>(train.source.tokens.size() + train.target.tokens.size());
  CHECK(held_text_bytes(*subject.model, train) == corpus_bytes(train));  // no lines to draw subwords from
  CHECK(corpus_bytes(train) == 4 * tokens + 24 * train.size());
  CHECK(forecast_memory(*subject.model, train, subject.data.valid, subject.lines, {1000, ""}).process ==
        kProgramBytes + corpus_bytes(train));
}

TEST_CASE("a state that leaves no room at all is refused, though no update was measured") {
  Subject subject({"model.max_length=40", "data.max_length=30"});
  const MemoryRoom room{1000, "left"};
  const MemoryForecast forecast =
      forecast_memory(*subject.model, subject.data.train, subject.data.valid, subject.lines, room);
  CHECK(forecast.work() == 0);
  MemoryForecast large = forecast;
  large.state = Index{1} << 30;
  CHECK_THROWS_SAYING(require_room(large, subject.model->config(), room), "1000 B left", ConfigError);
}

TEST_CASE("a forecast changes nothing that follows") {
  const auto trained_values = [](bool forecast) {
    Subject subject({"model.max_length=40", "data.max_length=30", "training.batch_tokens=500"});
    if (forecast) forecast_memory(*subject.model, subject.data.train, subject.data.valid, subject.lines, {1 << 30, ""});
    TrainingStep step(*subject.model);
    const auto batches = BatchPlan(subject.data.train, 500, 1).epoch(0);
    const auto corpus = std::make_shared<const Corpus>(subject.data.train);
    for (Index i = 0; i < 3; ++i) {
      const BatchSentences sentences[] = {{corpus, batches[static_cast<std::size_t>(i)]}};
      step.run(i, sentences);
    }
    const Tensor values = subject.model->parameters().values();
    return std::vector<real>(values.values().begin(), values.values().end());
  };
  CHECK(trained_values(true) == trained_values(false));
}

TEST_CASE("what does not fit is refused with a value that does") {
  const auto refusal = [](Subject& subject, Index room) -> std::string {
    const MemoryRoom limit{room, "free on this machine"};
    try {
      require_room_for_model(*subject.model, standard_layers(), limit);
      subject.model->parameters().allocate();
      const Index held = 2 * subject.model->parameters().values().size() * static_cast<Index>(sizeof(real));
      const MemoryRoom rest{room - held, limit.limit};
      require_room(forecast_memory(*subject.model, subject.data.train, subject.data.valid, subject.lines, rest),
                   subject.model->config(), rest);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const std::vector<std::string> lengths{"model.max_length=40", "data.max_length=30"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = lengths;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  {
    Subject subject(with({"training.batch_tokens=20000"}));
    CHECK(refusal(subject, 1000 * kMega) == "");
    const std::string text = refusal(subject, 14 * kMega);
    CAPTURE(text);
    CHECK(contains(text, " MiB free on this machine"));
    const auto tokens = value_in(text, "training.batch_tokens");
    CHECK(tokens < 20000);
    CHECK(tokens > 1000);
    Subject smaller(with({"training.batch_tokens=" + std::to_string(tokens)}));
    CHECK(refusal(smaller, 14 * kMega) == "");
    Subject larger(with({"training.batch_tokens=" + std::to_string(2 * tokens)}));
    CHECK(refusal(larger, 14 * kMega) != "");
  }
  {
    Subject subject(with({"model.d_model=512", "training.batch_tokens=10"}));
    const std::string text = refusal(subject, 20 * kMega);
    CAPTURE(text);
    CHECK_FALSE(subject.model->parameters().entries().empty());
    const auto d_model = value_in(text, "model.d_model");
    CHECK(d_model < 512);
    CHECK(d_model >= 64);
    Subject smaller(
        with({"model.d_model=" + std::to_string(d_model), "training.batch_tokens=10", "decoding.batch_tokens=10"}));
    CHECK(refusal(smaller, 20 * kMega) == "");
  }
  {
    Subject subject(with({"training.batch_tokens=50", "decoding.batch_tokens=100000", "model.d_model=64"}));
    const std::string text = refusal(subject, 12 * kMega);
    CAPTURE(text);
    const auto tokens = value_in(text, "decoding.batch_tokens");
    Subject smaller(
        with({"training.batch_tokens=50", "model.d_model=64", "decoding.batch_tokens=" + std::to_string(tokens)}));
    CHECK(refusal(smaller, 12 * kMega) == "");
  }
}

TEST_CASE("what validations keep of their lines is counted, and refused with a number of lines that fit") {
  const auto forecast_of = [](const std::string& lines) {
    Subject subject({"model.max_length=40", "data.max_length=30", "training.validation_sentences=" + lines});
    subject.model->parameters().allocate();
    return forecast_memory(*subject.model, subject.data.train, subject.data.valid, subject.lines, {1 << 30, ""});
  };
  const MemoryForecast few = forecast_of("10"), all = forecast_of("0");
  CHECK(few.validation_lines == 10);
  CHECK(all.validation_lines == 300);
  CHECK(all.validation.kept > 20 * few.validation.kept);
  CHECK(all.validation.block > 20 * few.validation.block);
  CHECK(expected_peak(all, {}) - expected_peak(few, {}) >= all.validation.bytes() - few.validation.bytes());

  MemoryForecast many = all;
  many.validation_lines = 100'000;
  many.validation.kept = 30 * kMega;
  const Index needed = expected_peak(many, {});
  require_room(many, tiny_config(), {needed, "left"});
  for (const Index less : {5 * kMega, 29 * kMega, 30 * kMega}) {
    const MemoryRoom room{needed - less, "left"};
    std::string text;
    try {
      require_room(many, tiny_config(), room);
    } catch (const ConfigError& error) {
      text = error.what();
    }
    CAPTURE(text);
    MemoryForecast fewer = many;
    fewer.validation_lines = value_in(text, "training.validation_sentences");
    CHECK(fewer.validation_lines < 100'000);
    fewer.validation.kept = 30 * kMega * fewer.validation_lines / 100'000;
    fewer.validation.block = many.validation.block * std::min<Index>(fewer.validation_lines, 1024) / 1024;
    require_room(fewer, tiny_config(), room);
  }
}

TEST_CASE("a line of 100,000 words ends no training, translation, evaluation or scoring, nor takes their memory") {
  const std::string best = trained();
  std::string monster;
  for (int i = 0; i < 100'000; ++i) monster += i % 3 == 0 ? "a " : "b ";
  const auto with_monster = [&](const std::string& name) {
    const Words lines = lines_of(bytes_of(name));
    put("long." + name, lines[0] + "\n" + monster + "\n" + joined({lines.begin() + 1, lines.end()}));
  };
  for (const char* name : {"train.src", "train.trg", "valid.src", "valid.trg", "test.src", "test.trg"})
    with_monster(name);
  const Outcome train =
      run_weft({"train", "tiny.json", "--run", "long", "--set", "training.steps=10", "--set", "training.ema_decay=0.9",
                "--set", "data.train_source=long.train.src", "--set", "data.train_target=long.train.trg", "--set",
                "data.valid_source=long.valid.src", "--set", "data.valid_target=long.valid.trg"});
  CAPTURE(train.err);
  CHECK(train.code == 0);
  CHECK(contains(train.out, "1 as too long"));
  CHECK(train.err.empty());
  const Outcome translated = run_weft({"translate", best}, bytes_of("long.test.src"));
  CHECK(translated.code == 0);
  CHECK(lines_of(translated.out).size() == 21);
  CHECK(translated.err ==
        "weft: warning: standard input:2: the model holds 9 tokens; the last 99991 of this line were left out\n");
  const Outcome scored = run_weft({"score", best, "--source", "long.test.src", "--target", "long.test.trg"});
  CHECK(scored.code == 0);
  CHECK(lines_of(scored.out).at(1) == "nan\t0\tnan");
  CHECK(contains(scored.err, "line 2: the source has 100000 tokens; the model holds 9; the pair has no score"));
  const Outcome evaluated = run_weft({"evaluate", best, "--source", "long.test.src", "--reference", "long.test.trg"});
  CHECK(evaluated.code == 0);
  CHECK(contains(evaluated.out, " 21 "));
  CHECK(evaluated.err ==
        "weft: warning: tiny/best.safetensors: 1 line of more than the 9 tokens that the model holds; cut for its "
        "translation, left out of the loss\n");
}

TEST_CASE("a text of nothing but lines that are too long is translated in part, and has no loss") {
  const std::string best = trained();
  put("only.txt", joined({"a b a b a b a b a b a b", "b a b a b a b a b a b a"}));
  const Outcome evaluated = run_weft({"evaluate", best, "--source", "only.txt", "--reference", "only.txt"});
  CHECK(evaluated.code == 0);
  CHECK(contains(evaluated.out, "  nan "));
  CHECK(contains(evaluated.err, "2 lines of more than the 9 tokens"));
  put("blank.txt", "\n\n");
  check_refused({"evaluate", best, "--source", "blank.txt", "--reference", "blank.txt"}, {"no pair is left"});
}

TEST_CASE("attention of a long sentence takes memory in proportion to its length, not to its square") {
  const auto taken = [](Index length) {
    const auto model =
        tiny_model(tiny_config({"model.max_length=" + std::to_string(length + 2), "model.dropout=0", "model.heads=1"}));
    ParallelText text;
    for (Index i = 0; i < length; ++i) (text.source.empty() ? text.source.emplace_back() : text.source[0]) += "a ";
    text.target = text.source;
    const Corpus corpus = encode_text(*model, text, length, "long").corpus;
    TrainingStep step(*model);
    return static_cast<double>(peak_memory(*model, step, corpus, {{0}}) - memory_statistics().current_bytes);
  };
  const double short_one = taken(1000), long_one = taken(4000);
  CHECK(long_one < 5.5 * short_one);
  CHECK(long_one < 4000.0 * 4000 * sizeof(real));  // of one head alone
}
