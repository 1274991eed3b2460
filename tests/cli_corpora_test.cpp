// Training text from several files of several kinds, pairs held out of it, and the cache of its tokens, through the real
// program.
#include <nlohmann/json.hpp>

#include "cli.h"
#include "gzip.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::gzipped;
using weft::put;
using Json = nlohmann::ordered_json;

namespace {

/// The words that train the tiny model for a few steps with changes.
Words train_with(const std::string& run, const Words& changes) {
  trained();
  Words words{"train", "tiny.json", "--run", run, "--set", "training.steps=4", "--set", "training.log_every=1"};
  for (const std::string& change : changes) words = words + Words{"--set", change};
  return words;
}

Outcome must_run(const Words& words) {
  const Outcome outcome = run_weft(words);
  CAPTURE(outcome.out);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

/// The losses that a run logged, validations too.
std::string losses(const std::string& run) {
  std::string text;
  for (const std::string& line : lines_of(bytes_of(run + "/log.jsonl"))) {
    const Json entry = Json::parse(line);
    text += (entry.contains("loss") ? entry["loss"] : entry["validation"]["loss"]).dump() + "\n";
  }
  return text;
}

Words caches(const fs::path& folder) {
  Words names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().string());
  return names;
}

std::string joined_part(const Words& lines, std::size_t begin, std::size_t end) {
  return joined(
      Words(lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.begin() + static_cast<std::ptrdiff_t>(end)));
}

const Words kNoFiles{"data.train_source=", "data.train_target="};
const Words kNoOthers{"data.valid_source=", "data.valid_target=", "data.test_source=", "data.test_target="};

}  // namespace

TEST_CASE("a list of plain, gzipped and TSV files trains as the same pairs in two files do") {
  trained();
  const Words source = lines_of(bytes_of("train.src")), target = lines_of(bytes_of("train.trg"));
  put("one.src", joined_part(source, 0, 100));
  put("one.trg.gz", gzipped(joined_part(target, 0, 60)) + gzipped(joined_part(target, 60, 100)));
  std::string tsv;
  for (std::size_t i = 100; i < source.size(); ++i) {
    tsv += target[i] + "\t" + source[i] + (i % 3 == 0 ? "\tsurplus" : "") + "\n";
    if (i == 150) tsv += "too few\n\n";
  }
  put("two.tsv.gz", gzipped(tsv));
  put("test.tsv", "a b\ta b\nc\tc\n");
  must_run(train_with("plain", {}));
  const Outcome outcome =
      must_run(train_with("listed", kNoFiles + Words{R"(data.train=[{"source": "one.src", "target": "one.trg.gz"},
                                 {"tsv": "two.tsv.gz", "source_column": 2, "target_column": 1}])",
                                                     R"(data.valid=[{"source": "valid.src", "target": "valid.trg"}])",
                                                     "data.valid_source=", "data.valid_target=", "data.test_source=",
                                                     "data.test_target=", R"(data.test=[{"tsv": "test.tsv"}])"}));
  CHECK(contains(outcome.out, "2 lines with too few columns skipped, the first is two.tsv.gz:52;"));
  CHECK_FALSE(losses("plain").empty());
  CHECK(losses("listed") == losses("plain"));
  const Json scores = Json::parse(must_run({"evaluate", "listed/last.safetensors", "--json"}).out);
  CHECK(scores[0]["sentences"] == 2);
  const Json config = Json::parse(bytes_of("listed/config.json"))["data"];
  CHECK(config["train"][1] == Json{{"tsv", "two.tsv.gz"}, {"source_column", 2}, {"target_column", 1}});

  const std::string packed = bytes_of("two.tsv.gz");
  put("two.tsv.gz", packed.substr(0, packed.size() / 2));
  check_refused(train_with("refused", kNoFiles + Words{R"(data.train=[{"tsv": "two.tsv.gz"}])"}),
                {"two.tsv.gz: damaged gzip data (ends too early)"});
  put("few.tsv", "a\nb\n");
  check_refused(train_with("refused", kNoFiles + Words{R"(data.train=[{"tsv": "few.tsv"}])"}),
                {"few.tsv: no line has 2 columns"});
}

TEST_CASE("pairs held out of the training text are the same for training and for evaluate") {
  const Outcome outcome =
      must_run(train_with("held", kNoOthers + Words{"data.hold_out_valid=30", "data.hold_out_test=20"}));
  CHECK(contains(outcome.out, "training text    350 of 350 pairs kept"));
  CHECK(contains(outcome.out, "validation text  30 of 30 pairs kept"));
  const Json valid = Json::parse(must_run({"evaluate", "held/last.safetensors", "--split", "valid", "--json"}).out)[0];
  const Json test = Json::parse(must_run({"evaluate", "held/last.safetensors", "--json"}).out)[0];
  CHECK(valid["sentences"] == 30);
  CHECK(test["sentences"] == 20);
  CHECK(valid["loss"] != test["loss"]);
  const Json history = Json::parse(must_run({"inspect", "held/last.safetensors", "--json"}).out)["validations"];
  CHECK(history.back()["loss"] == valid["loss"]);
  // As files for others to score, which replace none of the configuration's own.
  const Outcome split = must_run({"data", "split", "held/config.json", "--output", "split"});
  CHECK(contains(split.out, "split/valid.src, .trg: 30 pairs\nsplit/test.src, .trg: 20 pairs\n"));
  const Json files = Json::parse(must_run({"evaluate", "held/last.safetensors", "--source", "split/test.src",
                                           "--reference", "split/test.trg", "--json"})
                                     .out)[0];
  CHECK(files["loss"] == test["loss"]);
  CHECK(files["sentences"] == 20);
  check_refused({"data", "split", "tiny.json", "--output", "."}, {"would be replaced"});
  const std::string own = Json::parse(bytes_of("held/config.json"), nullptr, true, true)["data"]["train_target"];
  check_refused({"translate", "held/last.safetensors", "--output", own}, {own + ": would replace what is read"}, "a\n");
  must_run(train_with("other", kNoOthers + Words{"data.hold_out_valid=30", "data.hold_out_test=20", "data.seed=2"}));
  CHECK(losses("other") != losses("held"));
  check_refused(train_with("refused", kNoOthers + Words{"data.hold_out_valid=400"}), {"ask for 400 pairs", "has 400"});
  check_refused(train_with("refused", {"data.hold_out_valid=4"}), {"data.hold_out_valid is 4", "leave out one"});
}

TEST_CASE("another training text, of which other pairs would be held out, is not scored as if it were the same") {
  const auto text = weft::letters(60, 77);
  put("grows.src", joined(text.source));
  put("grows.trg", joined(text.target));
  must_run({"train", "tiny.json",
            "--run", "grown",
            "--set", "training.steps=2",
            "--set", "data.train_source=grows.src",
            "--set", "data.train_target=grows.trg",
            "--set", "data.valid_source=",
            "--set", "data.valid_target=",
            "--set", "data.test_source=",
            "--set", "data.test_target=",
            "--set", "data.hold_out_valid=5",
            "--set", "data.hold_out_test=5"});
  must_run({"evaluate", "grown/last.safetensors"});
  const auto half = [](const weft::cli::Words& lines) { return joined({lines.begin(), lines.begin() + 30}); };
  put("grows.src", half(text.source));
  put("grows.trg", half(text.target));
  check_refused({"evaluate", "grown/last.safetensors"}, {"the training text is not that of this run"});
  must_run({"evaluate", "grown/last.safetensors", "--source", "valid.src", "--reference", "valid.trg"});
}

TEST_CASE("the tokens of the training text are kept, and made anew when they are damaged or the text is another") {
  const Words words = train_with("cached", {});
  CHECK_FALSE(contains(must_run(words).out, "anew"));
  REQUIRE(caches("cached/cache").size() == 1);
  const std::string cache = caches("cached/cache")[0], good = bytes_of(cache),
                    model = bytes_of("cached/last.safetensors");
  const auto time = fs::last_write_time(cache);
  CHECK_FALSE(contains(must_run(words + Words{"--fresh"}).out, "anew"));
  CHECK(fs::last_write_time(cache) == time);
  CHECK(bytes_of("cached/last.safetensors") == model);

  put(cache, good.substr(0, good.size() - 1));
  const Outcome damaged = must_run(words + Words{"--fresh"});
  CHECK(contains(damaged.out, cache + " cannot be used (it is cut or damaged); made anew\n"));
  CHECK(bytes_of(cache) == good);
  CHECK(bytes_of("cached/last.safetensors") == model);

  must_run(words + Words{"--fresh", "--set", "data.max_length=5"});
  REQUIRE(caches("cached/cache").size() == 1);  // the old one is gone
  CHECK(caches("cached/cache")[0] != cache);
}

TEST_CASE("a folder for caches serves several runs; without one, or where it cannot be, training goes on") {
  must_run(train_with("first", {"data.cache=shared"}));
  REQUIRE(caches("shared").size() == 1);
  const auto time = fs::last_write_time(caches("shared")[0]);
  must_run(train_with("second", {"data.cache=shared", "training.seed=5"}));
  CHECK(caches("shared").size() == 1);
  CHECK(fs::last_write_time(caches("shared")[0]) == time);
  must_run(train_with("second", {"data.cache=elsewhere", "training.seed=5"}));  // no other configuration
  must_run(train_with("third", {"data.cache=shared", "data.lowercase=true"}));
  CHECK(caches("shared").size() == 2);
  CHECK_FALSE(fs::exists("first/cache"));
  must_run(train_with("without", {"data.cache=none"}));
  CHECK_FALSE(fs::exists("without/cache"));
  CHECK_FALSE(fs::exists("none"));
  const Outcome outcome = must_run(train_with("nowhere", {"data.cache=tiny.json/folder"}));
  CHECK(contains(outcome.out, "going on without a cache of the training text: tiny.json/folder/"));
}
