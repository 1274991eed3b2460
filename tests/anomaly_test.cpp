// Numbers that are not finite are found where they come up first, named with step, op, parameter and lines of the corpus, and
// kept out of every file.
#include "weft/autograd/anomaly.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <utility>

#include "faulty_run.h"
#include "gzip.h"
#include "small_model.h"
#include "weft/core/out_of_memory.h"
#include "weft/train/run_files.h"

using namespace weft;
namespace fs = std::filesystem;

TEST_CASE("a detector names the first bad op, in which direction, and the place of the number") {
  AnomalyDetector detector;
  Tape tape;
  tape.set_detector(&detector);
  const auto run = [&](std::initializer_list<real> values) {
    detector.reset();
    const Var x = tape.variable(Tensor::of({2, 3}, values));
    tape.backward(sum(mul(log(add(x, x)), x)));
    return detector.found();
  };
  CHECK_FALSE(run({1, 2, 3, 4, 5, 6}));
  std::optional<Anomaly> found = run({1, 2, 3, 4, -5, 6});
  REQUIRE(found);
  CHECK(found->op == "log");
  CHECK_FALSE(found->backward);
  CHECK(found->number == 2);
  CHECK(element_index(found->shape, found->element) == "[1, 1]");
  CHECK(std::isnan(found->value));
  CHECK(found->leaf == nullptr);

  // The square root of 0 is fine; its slope is not.
  detector.reset();
  const Var x = tape.variable(Tensor::of({2, 2}, {4, 0, 1, 9}));
  tape.backward(sum(sqrt(add(x, x))));
  found = detector.found();
  REQUIRE(found);
  CHECK(found->op == "sqrt");
  CHECK(found->backward);
  CHECK(found->number == 2);
  CHECK(element_index(found->shape, found->element) == "[0, 1]");
  CHECK(found->value == static_cast<double>(kInfinity));

  Leaf leaf{Tensor::of({2}, {1, -kInfinity}), Tensor({2}), false};
  detector.reset();
  tape.watch(leaf);
  found = detector.found();
  REQUIRE(found);
  CHECK(found->op.empty());
  CHECK(found->leaf == &leaf);
  CHECK(found->element == 1);

  tape.set_detector(nullptr);
  detector.reset();
  run({1, 2, 3, 4, -5, 6});
  CHECK_FALSE(detector.found());
}

TEST_CASE("the first number that is not finite is found wherever it stands") {
  for (const std::size_t size : {1u, 7u, 4096u, 4097u, 10000u}) {
    std::vector<real> values(size, std::numeric_limits<real>::max());
    values[0] = std::numeric_limits<real>::denorm_min();
    CHECK(first_not_finite(values) == -1);
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      std::vector<real> bad = values;
      bad[place] = place % 2 == 0 ? -kInfinity : std::nan("");
      bad.back() = kInfinity;
      CHECK(first_not_finite(bad) == static_cast<Index>(place));
    }
  }
}

TEST_CASE("a run stops at a bad number and names step, op, element, parameter and sentence") {
  struct Case {
    Fault::Kind kind;
    std::string headline, cause;
  };
  for (const Case& c : {Case{Fault::Kind::kResult, "the loss is nan",
                             "nan at [4, 2] of the result [R, 16] of op faulty (forward, number N), near parameter "
                             "encoder.layers.0.feed_forward.shift"},
                        {Fault::Kind::kGradient, "the gradient's norm is nan",
                         "nan at [4, 3] of an argument [R, 16] in the gradient, from op faulty (backward, number N, "
                         "result [R, 16]), near parameter encoder.layers.0.feed_forward.shift"},
                        {Fault::Kind::kParameterGradient, "the gradient's norm is nan",
                         "nan at [5] of parameter encoder.layers.0.feed_forward.shift [16] in the gradient, from op "
                         "faulty (backward, number N, result [R, 16])"}}) {
    for (const std::string detect : {"training.detect_anomaly=false", "training.detect_anomaly=true"}) {
      for (const std::string accumulate : {"training.accumulate=1", "training.accumulate=3"}) {
        CAPTURE(c.cause);
        CAPTURE(detect);
        CAPTURE(accumulate);
        const bool one = accumulate.ends_with('1');
        Index rows = 0;
        // Batch 10 of the run: of update 11, or of update 4 its second.
        const Faulty faulty(
            c.kind,
            [&](std::uint64_t step, const Var& x) {
              if (step == 10) rows = x.rows();
              return step == 10;
            },
            std::nan(""), 4);
        const TemporaryFolder folder;
        Session session(folder.path(), faulty_config({detect, accumulate, "training.save_every=2"}), faulty_layers());
        const std::string text = error_of(session);
        CAPTURE(text);
        CHECK(text.starts_with((one ? "step 11: " : "step 4: ") + c.headline + "\n"));
        // Numbers of operations are those of a Transformer and may change; that there is one may not.
        std::string cause = c.cause;
        const std::string shape = std::to_string(rows);
        for (std::size_t r; (r = cause.find("[R")) != cause.npos;) cause.replace(r + 1, 1, shape);
        const std::size_t number = cause.find("number N");
        CHECK(contains(text, "first bad number: " + cause.substr(0, number)));
        CHECK(contains(text, cause.substr(number + 8)));
        CHECK(contains(text, "\n  batch of "));
        CHECK(contains(text, "of the training text"));
        if (c.kind != Fault::Kind::kParameterGradient) CHECK(contains(text, "; the number is in pair "));
        CHECK(contains(text, "Lower optimizer.learning_rate (0.01)"));
        check_all_finite(folder.path());
        const Checkpoint last = load_checkpoint(folder / "last.safetensors", faulty_layers());
        CHECK(last.state.step == (one ? 10 : 2));
        REQUIRE(events(folder.path()).size() == 1);
        CHECK(events(folder.path())[0].event == "stopped");
        CHECK(events(folder.path())[0].text == text);
        CHECK(events(folder.path())[0].step == (one ? 11 : 4));
      }
    }
  }
}

TEST_CASE("the sentence that is named is the one whose row went bad") {
  Index row = 0;
  std::vector<std::string> named;
  const ParallelText text = letters(12, 3, 2, 6);
  for (row = 0; row < 40; row += 13) {
    const Faulty faulty(Fault::Kind::kResult, at(0), std::nan(""), row);
    const TemporaryFolder folder;
    // One batch of all pairs in the order of the batch; rows of a source are its letters and an end.
    const Config config = faulty_config({"training.batch_tokens=1000"});
    const auto model = tiny_model(config, faulty_layers());
    TrainingData data = tiny_data(*model, text, text);
    const auto batch = BatchPlan(data.train, 1000, 1).epoch(0).at(0);
    Index begin = 0, expected = -1;
    for (const Index sentence : batch) {
      const Index rows = make_batch(data.train, std::vector<Index>{sentence}).source_rows.rows();
      if (row >= begin && row < begin + rows) expected = sentence;
      begin += rows;
    }
    REQUIRE(expected >= 0);
    data.places = [](std::span<const Index> pairs) {
      std::vector<std::string> places;
      for (const Index pair : pairs) places.push_back("letters.txt:" + std::to_string(pair + 1));
      return places;
    };
    Progress progress(stdout, true);
    Trainer trainer(*model, {}, std::move(data), folder.path(), progress);
    const std::string error = thrown_text<Error>([&] { trainer.run(kNoStop); });
    CAPTURE(error);
    CHECK(contains(error, "batch of 12 pairs: letters.txt:" + std::to_string(expected + 1) + ", letters.txt:"));
    CHECK(contains(error, " and 9 more; the number is in letters.txt:" + std::to_string(expected + 1) + "\n"));
  }
}

TEST_CASE("advice names what this configuration can change") {
  CHECK(contains(divergence_advice(tiny_config({"optimizer.clip_norm=0.5"})), "lower optimizer.clip_norm (0.5)"));
  CHECK(
      contains(divergence_advice(tiny_config({"optimizer.clip_norm=0"})), "limit gradients with optimizer.clip_norm"));
  CHECK(contains(divergence_advice(tiny_config()), "schedule.warmup_steps (10)"));
}

TEST_CASE("with detect_anomaly a bad number that never reaches the loss counts, and nothing else changes") {
  const TemporaryFolder plain, detecting;
  Session(plain.path(), faulty_config(), faulty_layers()).finish();
  Session(detecting.path(), faulty_config({"training.detect_anomaly=true"}), faulty_layers()).finish();
  CHECK(log_without_times(plain.path()) == log_without_times(detecting.path()));

  const Faulty faulty(Fault::Kind::kUnused, at(3), -kInfinity);
  const TemporaryFolder unnoticed, noticed;
  Session quiet(unnoticed.path(), faulty_config(), faulty_layers());
  CHECK(quiet.finish() == TrainingEnd::kDone);
  Session session(noticed.path(), faulty_config({"training.detect_anomaly=true"}), faulty_layers());
  const std::string text = error_of(session);
  CHECK(text.starts_with("step 4: a number is not finite"));
  CHECK(contains(text, "-inf at [0, 2] of the result"));
}

TEST_CASE("a parameter, an optimizer's state and an average that are not finite reach no checkpoint") {
  const TemporaryFolder folder;
  const auto model = tiny_model(tiny_config());
  Tensor values = model->parameters().values();
  const auto optimizer = make_optimizer({}, values.size());
  std::vector<real> average(static_cast<std::size_t>(values.size()), 1);
  const auto save = [&] { save_checkpoint(folder / "a", *model, TrainingState{}, optimizer.get(), average); };
  save();
  const std::string good = bytes_of(folder / "a");
  const auto refused = [&](real& number, const char* name) {
    for (const real bad : {kInfinity, -kInfinity, std::numeric_limits<real>::quiet_NaN()}) {
      const real before = std::exchange(number, bad);
      CHECK_THROWS_SAYING(save(), std::string(name) + " holds a number that is not finite", Error);
      number = before;
      CHECK(bytes_of(folder / "a") == good);
    }
  };
  refused(values.values().back(), model->parameters().entries().back().name.c_str());
  refused(average[3], "average.values");
  refused(optimizer->state()[1].second[2], "optimizer.second_moment");
  save();
}

TEST_CASE("an optimizer's state that overflows is no thing to go on with, though loss and gradients are finite") {
  if (sizeof(real) == sizeof(double)) return;
  // The square of a gradient of 1e25 is over what a float holds.
  const Faulty faulty(Fault::Kind::kParameterGradient, at(9), static_cast<real>(1e25));
  for (const std::string policy : {"stop", "skip"}) {
    const TemporaryFolder folder;
    Session session(folder.path(), with_policy(policy, {"optimizer.clip_norm=0"}), faulty_layers());
    const std::string text = error_of(session);
    CHECK(text.starts_with("step 16: the optimizer's second_moment has a number that is inf\n"));
    CHECK(contains(text, "[5] of parameter encoder.layers.0.feed_forward.shift [16]"));
    check_all_finite(folder.path());
    CHECK(load_checkpoint(folder / "last.safetensors", faulty_layers()).state.step == 8);
    CHECK(load_checkpoint(folder / "best.safetensors", faulty_layers()).state.step == 8);
  }
  const TemporaryFolder folder;
  Session session(folder.path(), with_policy("rollback", {"optimizer.clip_norm=0"}), faulty_layers());
  CHECK(contains(error_of(session), "went back 5 times"));
  check_all_finite(folder.path());
}

TEST_CASE("parameters that an update made infinite are named, and leaving out the next update does not help") {
  const TemporaryFolder folder;
  Session session(folder.path(), with_policy("skip"), faulty_layers());
  session.one_update();
  const auto& all = session.model().parameters().entries();
  const auto& entry = *std::find_if(all.begin(), all.end(), [](const ParameterEntry& e) {
    return e.name == "encoder.layers.0.feed_forward.inner.weight";
  });
  session.model().parameters().value(entry).values()[entry.shape.cols() + 1] = kInfinity;
  const std::string text = error_of(session);
  CAPTURE(text);
  CHECK(text.starts_with("step 2: "));
  CHECK(contains(text, "inf at [1, 1] of parameter " + entry.name));
  CHECK(contains(text, "before this update began"));
  CHECK(contains(text, "without this update it would be no better"));
}

TEST_CASE("a bad number in a parameter that no loss depends on, or in the average alone, is seen before it is saved") {
  for (const bool in_average : {false, true}) {
    CAPTURE(in_average);
    ParameterSet* parameters = nullptr;
    // The embedding of a token that never comes is no number after update 4, for good or until update 6.
    const Faulty faulty(Fault::Kind::kResult, [&](std::uint64_t step, const Var&) {
      real& unused = parameters->value(parameters->entries().front()).data()[kUnknown * 16 + 1];
      if (step == 3) unused = kInfinity;
      if (step == 5 && in_average) unused = 0;
      return false;
    });
    const TemporaryFolder folder;
    Session session(folder.path(), faulty_config({"optimizer.name=sgd"}), faulty_layers());
    parameters = &session.model().parameters();
    REQUIRE(parameters->entries().front().name == "source_embedding.weight");
    const std::string text = error_of(session);
    CAPTURE(text);
    CHECK(text.starts_with(in_average ? "step 8: the moving average has a number that is nan\n"
                                      : "step 8: a parameter has a number that is nan\n"));
    CHECK(contains(text, "first bad number: [0, 1] of parameter source_embedding.weight"));
    CHECK_FALSE(fs::exists(folder / "last.safetensors"));
    CHECK_FALSE(fs::exists(folder / "best.safetensors"));
  }
}

TEST_CASE("a validation loss that is not finite stops the run and names the op; leaving out an update does not help") {
  const Faulty faulty(Fault::Kind::kValidation, [](std::uint64_t, const Var&) { return true; });
  for (const std::string policy : {"stop", "skip"}) {
    const TemporaryFolder folder;
    Session session(folder.path(), with_policy(policy, {"training.save_every=5"}), faulty_layers());
    const std::string text = error_of(session);
    CAPTURE(text);
    CHECK(text.starts_with("step 8: the validation loss is nan\n  first bad number: nan at [0, 2] of the result ["));
    CHECK(contains(text, "op faulty (forward"));
    CHECK_FALSE(contains(text, "batch of"));
    check_all_finite(folder.path());
    CHECK_FALSE(fs::exists(folder / "best.safetensors"));
    CHECK(load_checkpoint(folder / "last.safetensors", faulty_layers()).state.step == 5);
  }
}

TEST_CASE("a run rolls back though memory is out for the look at what made its validation loss no number") {
  const Config config = with_policy("rollback");
  const auto valid = tiny_data(*tiny_model(config, faulty_layers()), letters(60, 5), letters(10, 6)).valid;
  const std::size_t batches = batches_by_length(valid, config.training.batch_tokens).size();  // of the loss
  for (const bool in_pool : {false, true}) {
    const TemporaryFolder folder;
    std::size_t calls = 0;
    const Faulty faulty(Fault::Kind::kValidation, [&](std::uint64_t, const Var&) {
      if (++calls == batches + 1) {  // the first that keeps all results
        if (in_pool) throw OutOfMemory("out of memory");
        throw std::bad_alloc();
      }
      return calls == 1;
    });
    Session session(folder.path(), config, faulty_layers());
    CHECK(session.finish() == TrainingEnd::kDone);
    REQUIRE(events(folder.path()).size() == 1);
    const std::string text = events(folder.path())[0].text;
    CHECK(contains(text, "step 8: the validation loss is nan\n  first bad number: not looked for, as memory is out"));
    CHECK(contains(text, "back to step 0"));
  }
}

TEST_CASE("translations of the validation text that are not of numbers are a divergence, though its loss is finite") {
  const TemporaryFolder folder;
  const Config config = with_policy("rollback");
  const auto valid = tiny_data(*tiny_model(config, faulty_layers()), letters(60, 5), letters(10, 6)).valid;
  const std::size_t batches = batches_by_length(valid, config.training.batch_tokens).size();  // of the loss
  std::size_t calls = 0;
  const Faulty faulty(Fault::Kind::kValidation, [&](std::uint64_t, const Var&) { return ++calls == batches + 1; });
  Session session(folder.path(), config, faulty_layers());
  CHECK(session.finish() == TrainingEnd::kDone);
  REQUIRE(events(folder.path()).size() == 1);
  CHECK(contains(events(folder.path())[0].text, "step 8: the model's output for a validation line is not a number"));
  CHECK(contains(events(folder.path())[0].text, "back to step 0"));
}

TEST_CASE("a loss whose perplexity overflows does not end a run; its log stays valid") {
  const TemporaryFolder folder;
  Session(folder.path(), tiny_config({"training.save_every=1"})).one_update();
  Checkpoint checkpoint = load_checkpoint(folder / "last.safetensors", standard_layers());
  for (const ParameterEntry& entry : checkpoint.model->parameters().entries()) {
    if (entry.name != "output.bias") continue;
    // Sure of a token that is never right.
    checkpoint.model->parameters().value(entry).values()[static_cast<std::size_t>(kBegin)] = 5000;
  }
  save_checkpoint(folder / "last.safetensors", *checkpoint.model, checkpoint.state,
                  make_optimizer({}, checkpoint.model->parameters().values().size()).get());
  Session session(folder.path(), tiny_config());
  CHECK(session.finish() == TrainingEnd::kDone);
  check_all_finite(folder.path());
  const auto log = read_run_log((folder / "log.jsonl").string());
  REQUIRE(log.validations.size() == 3);
  CHECK(log.validations[0].loss > 710);
  CHECK_FALSE(std::isfinite(log.validations[0].perplexity));
  CHECK(contains(bytes_of(folder / "log.jsonl"), "\"perplexity\":null"));
}

TEST_CASE("an empty source beside a long one gives a finite loss and finite gradients") {
  for (const TransformerOptions& options : {small_options(), pre_norm(small_options())}) {
    ParameterSet parameters(4);
    const Transformer model(parameters, options, standard_layers());
    perturb(parameters);
    const SmallBatch batch(options, {0, 12, 0}, {3, 9, 1});
    AnomalyDetector detector;
    Tape tape;
    tape.set_detector(&detector);
    const Context context{&tape, true, {3, 1}, nullptr, nullptr};
    const Var loss = model.loss(context, batch.batch(), {0, 1, nullptr});
    CHECK(std::isfinite(loss.value().item()));
    CHECK(loss.value().item() > 1);
    tape.backward(loss);
    CHECK_FALSE(detector.found());
    parameters.complete_gradients();
    const Tensor gradients = parameters.gradients();
    CHECK(first_not_finite(gradients.values()) == -1);
  }
}

TEST_CASE("places of training pairs are the lines of the user's files, whatever the files are and what is held out") {
  const TemporaryFolder folder;
  // Every sentence says where it stands.
  const auto sentences = [](const std::string& name, int count, const std::string& end) {
    std::string text;
    for (int i = 1; i <= count; ++i) text += name + " " + std::to_string(i) + end + "\n";
    return text;
  };
  folder.write("one.a.gz", gzipped(sentences("one", 40, "")));
  folder.write("one.b.gz", gzipped(sentences("eins", 20, "") + "\n\n" + sentences("ein", 18, "") + "\n"));
  folder.write("two.tsv", "\xEF\xBB\xBF" + sentences("two", 10, "\tzwei") + "too few columns\n\n" +
                              sentences("and", 5, "\tund\tmore"));
  folder.write("three.a", sentences("three", 7, ""));
  folder.write("three.b", sentences("drei", 7, ""));
  const std::string path = folder.path().string();
  for (const std::string held : {"0", "6"}) {
    CAPTURE(held);
    const Config config = parse_config(R"({"data": {"train": [{"source": ")" + path + R"(/one.a.gz", "target": ")" +
                                           path + R"(/one.b.gz"},
            {"tsv": ")" + path + R"(/two.tsv"},
            {"source": ")" + path + R"(/three.a", "target": ")" +
                                           path + R"(/three.b"}], "hold_out_valid": )" + held +
                                           R"(, "hold_out_test": )" + held + "}}",
                                       "places");
    const std::vector<std::uint64_t> hashes = run_file_hashes(config.data);
    const RunText text(config.data);
    std::vector<std::string> source;
    text.read_train(
        [&](const ParallelText& block) { source.insert(source.end(), block.source.begin(), block.source.end()); });
    REQUIRE(source.size() == (held == "0" ? 62 : 50));
    std::vector<Index> pairs;
    for (std::size_t i = 0; i < source.size(); ++i) pairs.push_back(static_cast<Index>(source.size() - 1 - i));
    const std::vector<std::string> places = text.train_places(pairs, "", hashes);
    REQUIRE(places.size() == pairs.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::string& line = source[static_cast<std::size_t>(pairs[i])];
      const int number = std::stoi(line.substr(line.find(' ') + 1));
      const std::string expected = line.starts_with("one")   ? "/one.a.gz:" + std::to_string(number)
                                   : line.starts_with("two") ? "/two.tsv:" + std::to_string(number)
                                   : line.starts_with("and") ? "/two.tsv:" + std::to_string(number + 12)
                                                             : "/three.a:" + std::to_string(number);
      CHECK(places[i] == path + expected);
    }
    // Of a text that is another by now they would be those of other pairs.
    const std::string before = bytes_of(folder / "three.a");
    folder.write("three.a", "new\n" + before);
    CHECK_THROWS_SAYING(text.train_places(pairs, "", hashes), "three.a: changed while it was read", DataError);
    folder.write("three.a", before);
    CHECK_THROWS_SAYING(text.train_places(std::vector<Index>{1000}, "", {}), "has shrunk", DataError);
  }
  const RunText task(parse_config(R"({"data": {"task": "copy", "pairs": 20}})", "task").data);
  CHECK(task.train_places(std::vector<Index>{4}, "run", {}) == std::vector<std::string>{"run/data/train.src:5"});
}
