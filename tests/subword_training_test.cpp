// Runs on subwords: vocabularies of a config, checkpoints that hold the models, new subwords in each epoch.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session.h"
#include "subword_text.h"
#include "temporary_folder.h"
#include "throws.h"
#include "tiny_run.h"
#include "weft/core/error.h"
#include "weft/core/safetensors.h"
#include "weft/core/threads.h"
#include "weft/data/subword_model.h"
#include "weft/train/base64.h"
#include "weft/train/epoch_encoder.h"
#include "weft/train/translate.h"

using namespace weft;
namespace fs = std::filesystem;

namespace {

Config subword_config(const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all{"data.tokenizer=bpe", "data.max_vocabulary=120", "data.max_length=40",
                               "model.max_length=41", "training.batch_tokens=300"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return tiny_config(all);
}

const ParallelText& train_text() {
  static const ParallelText text = syllables(120, 21);
  return text;
}

std::unique_ptr<TranslationModel> new_model(const Config& config) {
  Vocabularies vocabularies = build_vocabularies(config.data, train_text());
  return std::make_unique<TranslationModel>(config, std::move(vocabularies.source), std::move(vocabularies.target),
                                            standard_layers());
}

TrainingData data_of(const TranslationModel& model) {
  const ParallelText valid = syllables(10, 22);
  TrainingData data = tiny_data(model, train_text(), valid);
  if (model.config().data.subword_sampling > 0) {
    data.train_in_epoch = EpochEncoder(model, train_text(), data.train.line, model.config().data.max_length);
  }
  return data;
}

/// Trains in a folder to the end, or makes one update, as the command line does it.
Index train(const fs::path& folder, const Config& config, int stop) {
  Progress progress(stdout, true);
  Checkpoint checkpoint;
  if (fs::exists(folder / "last.safetensors")) {
    checkpoint = load_checkpoint(folder / "last.safetensors", standard_layers());
  } else {
    checkpoint.model = new_model(config);
  }
  Trainer trainer(*checkpoint.model, checkpoint.state, data_of(*checkpoint.model), folder, progress);
  trainer.run(stop);
  return trainer.state().epoch;
}

bool equal(const Corpus& a, const Corpus& b) { return content_hash(a) == content_hash(b) && a.line == b.line; }

/// A checkpoint with one text of its metadata altered.
void alter(const fs::path& from, const fs::path& to, const std::string& key, const std::string& value) {
  const SafetensorsFile file = SafetensorsFile::open(from);
  SafetensorsWriter writer;
  for (const auto& [name, text] : file.metadata()) writer.set_metadata(name, name == key ? value : text);
  std::vector<std::vector<real>> values;
  for (const SafetensorsEntry& entry : file.entries()) {
    values.emplace_back(static_cast<std::size_t>(entry.elements()));
    file.read(entry.name, values.back());
    writer.add(entry.name, entry.shape, std::span<const real>(values.back()));
  }
  writer.write(to);
}

}  // namespace

TEST_CASE("joint and separate models, trained or given") {
  const TemporaryFolder folder;
  const Vocabularies joint = build_vocabularies(subword_config({"data.shared_vocabulary=true"}).data, train_text());
  CHECK(joint.source.subwords() == joint.target.subwords());
  CHECK(joint.source.size() == 120);
  const Vocabularies separate = build_vocabularies(subword_config({"data.tokenizer=unigram"}).data, train_text());
  CHECK(separate.source.subwords()->bytes() != separate.target.subwords()->bytes());
  CHECK(separate.source.subwords()->kind() == "unigram");

  const std::string file = folder.write("joint.model", joint.source.subwords()->bytes()).string();
  const Vocabularies given = build_vocabularies(
      subword_config({"data.shared_vocabulary=true", "data.subword_model=" + file}).data, syllables(3, 1));
  CHECK(given.target.tokens() == joint.target.tokens());
  const Vocabularies half =
      build_vocabularies(subword_config({"data.source_subword_model=" + file}).data, train_text());
  CHECK(half.source.tokens() == joint.source.tokens());
  CHECK(half.target.tokens() != joint.target.tokens());

  const auto refused = [&](const std::vector<std::string>& overrides) {
    return thrown_text<Error>([&] { build_vocabularies(subword_config(overrides).data, train_text()); });
  };
  CHECK(contains(refused({"data.tokenizer=unigram", "data.source_subword_model=" + file}), "of the kind bpe"));
  const std::string missing = (folder / "missing").string();
  CHECK(contains(refused({"data.source_subword_model=" + missing}), missing));
  CHECK(contains(refused({"data.subword_model=" + file}), "set data.shared_vocabulary to true"));
  CHECK(contains(refused({"data.shared_vocabulary=true", "data.target_subword_model=" + file}),
                 "name data.subword_model"));
  CHECK(contains(refused({"data.min_count=2"}), "data.min_count is 2, but is used only with data.tokenizer"));
  CHECK(contains(refused({"data.tokenizer=word", "data.byte_fallback=true"}), "used only with data.tokenizer"));
}

TEST_CASE("a checkpoint holds the subword models and nothing that could contradict them") {
  for (const char* shared : {"data.shared_vocabulary=true", "data.shared_vocabulary=false"}) {
    const TemporaryFolder folder;
    const auto model = new_model(subword_config({shared}));
    save_checkpoint(folder / "a", *model, {}, nullptr);
    const Checkpoint loaded = load_checkpoint(folder / "a", standard_layers());
    save_checkpoint(folder / "b", *loaded.model, {}, nullptr);
    CHECK(bytes_of(folder / "a") == bytes_of(folder / "b"));
    CHECK(loaded.model->source_vocabulary().tokens() == model->source_vocabulary().tokens());
    CHECK(loaded.model->target_vocabulary().tokens() == model->target_vocabulary().tokens());
    const std::string line = train_text().target.front();
    CHECK(loaded.model->target_tokenizer().split(line) == model->target_tokenizer().split(line));
    const SafetensorsMetadata metadata = SafetensorsFile::open(folder / "a").metadata();
    CHECK(metadata.count("weft.source_vocabulary") == 0);
    CHECK(metadata.count("weft.target_subwords") == (std::string(shared).ends_with("true") ? 0 : 1));
  }
}

TEST_CASE("a checkpoint with a broken subword model is refused in one line") {
  const TemporaryFolder folder;
  const auto model = new_model(subword_config());
  save_checkpoint(folder / "a", *model, {}, nullptr);
  const std::string good = model->source_vocabulary().subwords()->bytes();
  const auto error = [&](const std::string& text) {
    alter(folder / "a", folder / "b", "weft.source_subwords", text);
    return thrown_text<CheckpointError>([&] { load_checkpoint(folder / "b", standard_layers()); });
  };
  const std::string place = (folder / "b").string() + ": weft.source_subwords: ";
  CHECK(contains(error("!"), place + "not base64"));
  CHECK(contains(error(""), place + "not a SentencePiece model"));
  CHECK(contains(error(to_base64("nonsense")), place + "not a SentencePiece model"));
  CHECK(contains(error(to_base64(good.substr(0, good.size() / 2))), place));
  const auto other = build_vocabularies(subword_config({"data.tokenizer=unigram"}).data, train_text());
  alter(folder / "a", folder / "b", "weft.source_subwords", to_base64(other.source.subwords()->bytes()));
  CHECK_THROWS_SAYING(load_checkpoint(folder / "b", standard_layers()), "one of the kind unigram", ConfigError);
}

TEST_CASE("base64 is that of RFC 4648, and nothing else is read") {
  CHECK(to_base64("") == "");
  CHECK(to_base64("f") == "Zg==");
  CHECK(to_base64("fo") == "Zm8=");
  CHECK(to_base64("foobar") == "Zm9vYmFy");
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (std::size_t n = 0; n < 256; ++n) CHECK(from_base64(to_base64(bytes.substr(n))) == bytes.substr(n));
  for (const char* text : {"Zg", "Zg=", "Zh==", "Z===", "====", "Zg==Zg==", "Zm9 ", "Zm-v", "Z=g="}) {
    CHECK_FALSE(from_base64(text).has_value());
  }
}

TEST_CASE("each epoch has other subwords of the same text, the same on any number of threads") {
  for (const char* kind : {"bpe", "unigram"}) {
    const Config config = subword_config({std::string("data.tokenizer=") + kind, "data.subword_sampling=0.2"});
    const auto model = new_model(config);
    const Corpus plain = encode_text(*model, train_text(), 40, "text").corpus;
    const EpochEncoder encode(*model, train_text(), plain.line, 40);
    const Corpus first = encode(0), second = encode(1);
    CHECK(first.line == plain.line);
    CHECK_FALSE(equal(first, plain));
    CHECK_FALSE(equal(first, second));
    CHECK(first.source.tokens.size() > plain.source.tokens.size());
    for (Index i = 0; i < second.size(); ++i) {
      const auto line = static_cast<std::size_t>(second.line[static_cast<std::size_t>(i)]);
      CHECK(model->target_tokenizer().join(model->target_vocabulary().tokens(second.target[i])) ==
            train_text().target[line]);
    }
    for (const int count : {2, 3}) {
      set_threads(count);
      CHECK(equal(encode(0), first));
    }
    set_threads(1);
    // A pair's subwords do not depend on which other pairs there are.
    const std::vector<Index> some{plain.line[3], plain.line[50]};
    const Corpus part = EpochEncoder(*model, train_text(), some, 40)(0);
    CHECK(std::ranges::equal(part.source[1], first.source[50]));
    // Where sampling makes a side too long, it stays as it is without.
    const Index longest = *std::max_element(plain.line.begin(), plain.line.end(), [&](Index a, Index b) {
      return plain.source.length(a) < plain.source.length(b);
    });
    const Index limit = plain.source.length(longest);
    const Corpus limited = EpochEncoder(*model, train_text(), {longest}, limit)(1);
    CHECK(limited.source.length(0) <= limit);
  }
}

TEST_CASE("a run that draws subwords ends with the same bytes, stopped at each update or never") {
  for (const auto& [kind, accumulate] :
       {std::pair("bpe", "training.accumulate=3"), {"unigram", "training.accumulate=1"}}) {
    // With all else that a state consists of: dropout, an average, patience, several checkpoints kept, a warm-up of 10.
    const Config config = subword_config(
        {std::string("data.tokenizer=") + kind, "data.subword_sampling=0.2", "training.steps=20", accumulate,
         "training.validate_every=3", "training.log_every=2", "training.ema_decay=0.8", "training.patience=6",
         "training.keep_best=2", "training.keep_last=2", "training.best_metric=token_accuracy"});
    const TemporaryFolder straight, stopped;
    CHECK(train(straight.path(), config, 0) >= 2);  // some epochs
    for (int i = 0; i < 20; ++i) {
      set_threads(1 + i % 3);
      train(stopped.path(), config, 1);
    }
    set_threads(1);
    CHECK_FALSE(bytes_of(straight / "last.safetensors").empty());
    CHECK(bytes_of(straight / "last.safetensors") == bytes_of(stopped / "last.safetensors"));
    CHECK(bytes_of(straight / "best.safetensors") == bytes_of(stopped / "best.safetensors"));
    CHECK(log_without_times(stopped.path()) == log_without_times(straight.path()));
    int kept = 0;
    for (const auto& entry : fs::directory_iterator(straight.path())) {
      const std::string name = entry.path().filename().string();
      CAPTURE(name);
      CHECK(fs::exists(stopped / name));
      if (!name.starts_with("step-")) continue;
      CHECK(bytes_of(stopped / name) == bytes_of(entry.path()));
      ++kept;
    }
    CHECK(kept >= 2);
    Config without = config;
    without.data.subword_sampling = 0;
    const TemporaryFolder plain;
    train(plain.path(), without, 0);
    CHECK(bytes_of(plain / "last.safetensors") != bytes_of(straight / "last.safetensors"));
  }
}

TEST_CASE("of the spellings of one text, the n best translations hold the best alone") {
  const auto model = new_model(subword_config());
  const std::vector<std::string> line{train_text().source.front()};
  TranslateOptions options;
  options.search.beam = options.search.n_best = 1000;
  options.search.max_length = 3;

  const EncodedText source = [&] {
    EncodedText text;
    std::vector<TokenId> ids = model->source_vocabulary().ids(model->source_tokenizer().split(line.front()));
    ids.push_back(kEnd);
    text.append(ids);
    return text;
  }();
  const Transformer* const networks[] = {&model->transformer()};
  const auto found = search(networks, source.tokens, source.rows, options.search).front();
  std::vector<std::string> expected;
  for (const Hypothesis& hypothesis : found) {
    std::string text = model->target_tokenizer().join(model->target_vocabulary().tokens(hypothesis.tokens));
    if (std::find(expected.begin(), expected.end(), text) == expected.end()) expected.push_back(std::move(text));
  }
  REQUIRE(expected.size() > 20);
  REQUIRE(expected.size() < found.size());

  std::vector<std::string> texts;
  const TranslationModel* const models[] = {model.get()};
  const TranslatedLine result = translate(models, line, options).front();
  for (const Translation& translation : result.translations) texts.push_back(translation.text);
  CHECK(texts == expected);
}
