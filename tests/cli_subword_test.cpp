// Subwords through the real binary: train, stop, resume, inspect, evaluate, translate.
#include "cli.h"

#include <nlohmann/json.hpp>

#include "subword_text.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;
using Json = nlohmann::ordered_json;

namespace {

void write_text() {
  workplace();
  fs::create_directories("syllables");
  std::uint64_t seed = 31;
  for (const std::string split : {"train", "valid", "test"}) {
    const weft::ParallelText text = weft::syllables(split == "train" ? 300 : 15, seed++);
    put("syllables/" + split + ".src", joined(text.source));
    put("syllables/" + split + ".trg", joined(text.target));
  }
  put("subwords.json", R"({
    "data": {"train_source": "syllables/train.src", "train_target": "syllables/train.trg",
             "valid_source": "syllables/valid.src", "valid_target": "syllables/valid.trg",
             "test_source": "syllables/test.src", "test_target": "syllables/test.trg",
             "tokenizer": "bpe", "max_vocabulary": 150, "shared_vocabulary": true, "max_length": 60},
    "model": {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_feed_forward": 32,
              "tied_embeddings": "all", "max_length": 64},
    "training": {"steps": 60, "batch_tokens": 400, "validate_every": 30, "log_every": 1, "save_every": 5,
                 "validation_sentences": 3}
  })");
}

Words run_in(const std::string& folder, const Words& settings) {
  Words words{"train", "subwords.json", "--run", folder};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  return words;
}

std::size_t log_lines(const std::string& folder) {
  const std::string log = bytes_of(folder + "/log.jsonl");
  return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
}

/// Trains to the end, and again with stops and other numbers of threads; the checkpoints must be the same.
void check_run(const std::string& name, const Words& settings) {
  const Outcome straight = run_weft(run_in(name, settings) + Words{"--threads", "2"});
  CAPTURE(straight.out);
  CAPTURE(straight.err);
  REQUIRE(straight.code == 0);
  CHECK(straight.err.empty());  // SentencePiece's own messages would be there
  const std::string stopped = name + "_stopped";
  for (const std::size_t lines : {std::size_t{4}, std::size_t{17}, std::size_t{40}}) {
    const Background run(run_in(stopped, settings) + Words{"--threads", "1"});
    for (int i = 0; i < 20'000 && log_lines(stopped) < lines; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    run.send(lines == 17 ? SIGKILL : SIGTERM);
    run.wait();
  }
  REQUIRE(run_weft(run_in(stopped, settings) + Words{"--threads", "3"}).code == 0);
  CHECK(bytes_of(name + "/last.safetensors") == bytes_of(stopped + "/last.safetensors"));
  CHECK(bytes_of(name + "/best.safetensors") == bytes_of(stopped + "/best.safetensors"));
}

}  // namespace

TEST_CASE("a joint bpe model and separate unigram models, with subwords drawn anew in each epoch") {
  write_text();
  check_run("joint", {"data.subword_sampling=0.1"});
  check_run("separate", {"data.tokenizer=unigram", "data.shared_vocabulary=false", "model.tied_embeddings=none",
                         "data.subword_sampling=0.3", "data.byte_fallback=true", "data.max_vocabulary=350"});

  // Checkpoints need no other file; the text is there for evaluate alone.
  const Outcome inspected = run_weft({"inspect", "joint/best.safetensors"});
  CHECK(contains(inspected.out, "vocabulary: 150 source, 150 target tokens\nsubwords: both sides, bpe, 150 pieces, "));
  const Outcome parts = run_weft({"inspect", "separate/best.safetensors"});
  CHECK(contains(parts.out, "\nsubwords: source, unigram, "));
  CHECK(contains(parts.out, "\nsubwords: target, unigram, "));
  const Json json = Json::parse(run_weft({"inspect", "joint/best.safetensors", "--json"}).out);
  CHECK(json["subwords"]["source"]["kind"] == "bpe");
  CHECK(json["subwords"]["target"]["pieces"] == 150);
  for (const std::string run : {"joint", "separate"}) {
    CHECK(run_weft({"evaluate", run + "/best.safetensors"}).code == 0);
    const Outcome translated =
        run_weft({"translate", run + "/best.safetensors"}, "kalo mi\n\n<s> \xE2\x96\x81 </s>\nsurba kaka\n");
    CHECK(translated.code == 0);
    CHECK(lines_of(translated.out).size() == 4);
    CHECK(lines_of(translated.out)[1].empty());
    CHECK_FALSE(contains(translated.out, "\xE2\x96\x81"));
  }
}

TEST_CASE("what cannot be is said in one line, and a small text is warned of") {
  write_text();
  check_refused(run_in("none", {"data.max_vocabulary=8"}), {"data.max_vocabulary is 8; subwords need at least "});
  check_refused(run_in("none", {"data.subword_model=missing.model"}), {"missing.model"});
  put("no.model", "no model");
  check_refused(run_in("none", {"data.subword_model=no.model"}), {"no.model: not a SentencePiece model"});
  const Outcome small = run_weft(run_in("small", {"data.max_vocabulary=30000", "training.steps=1"}));
  CHECK(small.code == 0);
  CHECK(contains(small.out, "warning: the training text gives "));
  CHECK(contains(small.out, "subwords, fewer than data.max_vocabulary (30,000)"));
  CHECK(
      run_weft({"bench", "step", "subwords.json", "--rounds", "1", "--set", "bench.target_tokens=50", "--json"}).code ==
      0);
}
