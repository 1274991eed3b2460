// An encoded corpus in a file: it comes back as it was, or not at all.
#include "weft/data/corpus_cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "temporary_folder.h"
#include "throws.h"
#include "tiny_run.h"
#include "weft/core/error.h"
#include "weft/train/epoch_encoder.h"
#include "weft/train/training_text.h"

using namespace weft;

namespace {

EncodedCorpus small(TokenId largest) {
  EncodedCorpus result;
  for (Index i = 0; i < 70; ++i) {
    std::vector<TokenId> source(static_cast<std::size_t>(1 + i % 5), static_cast<TokenId>(i)), target{largest, 3};
    result.corpus.source.append(source);
    result.corpus.target.append(target);
    result.corpus.line.push_back(3 * i + (Index{1} << 40));
  }
  result.report = {210, 70, 100, 40, 208, 140, 1, 2, {5, "caf\xC3\xA9.tsv:7"}};
  return result;
}

void check_equal(const EncodedCorpus& a, const EncodedCorpus& b) {
  CHECK(a.corpus.source.tokens == b.corpus.source.tokens);
  CHECK(a.corpus.target.tokens == b.corpus.target.tokens);
  CHECK(a.corpus.source.rows == b.corpus.source.rows);
  CHECK(a.corpus.target.rows == b.corpus.target.rows);
  CHECK(a.corpus.line == b.corpus.line);
  CHECK(a.report.summary() == b.report.summary());
  CHECK(a.report.short_lines.count == b.report.short_lines.count);
}

}  // namespace

TEST_CASE("what is saved is loaded, with small and large ids") {
  const TemporaryFolder folder;
  for (const TokenId largest : {3, 65535, 65536, 2000000000}) {
    const EncodedCorpus corpus = small(largest);
    save_corpus(folder / "a", 7, corpus);
    const LoadedCorpus loaded = load_corpus(folder / "a", 7);
    REQUIRE(loaded.corpus.has_value());
    check_equal(*loaded.corpus, corpus);
  }
  save_corpus(folder / "small", 7, small(65535));
  save_corpus(folder / "large", 7, small(65536));
  CHECK(std::filesystem::file_size(folder / "large") == std::filesystem::file_size(folder / "small") + 2 * 140);
}

TEST_CASE("a corpus that was moved away is not saved") {
  const TemporaryFolder folder;
  EncodedCorpus corpus = small(3);
  const Corpus taken = std::move(corpus.corpus);
  corpus.corpus = {};
  CHECK_THROWS_SAYING(save_corpus(folder / "a", 7, corpus), "not the one of its report", Error);
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
}

TEST_CASE("keeping a text removes what killed processes left of other caches, and other caches if it is alone there") {
  const TemporaryFolder folder;
  const std::string key = "0123456789abcdef", other = "fedcba9876543210";
  const std::string left[] = {key + ".corpus.12.tmp", other + ".corpus.345.tmp"};
  const std::string kept[] = {other + ".corpus",       other + ".corpus.tmp",
                              other + ".other.12.tmp", other.substr(1) + ".corpus.12.tmp",
                              "a.corpus.12.tmp",       other + ".corpus.77.tmp"};
  for (const auto& name : left) put(folder / name, name);
  for (const auto& name : kept) put(folder / name, name);
  const int living = ::open((folder / kept[5]).c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(::flock(living, LOCK_EX) == 0);  // as the process that writes it does
  TrainingText text;
  text.encoded = small(3);
  text.cache = folder / (key + ".corpus");
  text.key = 7;
  keep_training_text(text, false);
  CHECK(load_corpus(text.cache, 7).corpus.has_value());
  for (const auto& name : left) CHECK_MESSAGE(!std::filesystem::exists(folder / name), name);
  for (const auto& name : kept) CHECK_MESSAGE(bytes_of(folder / name) == name, name);
  put(folder / "a.corpus", "no cache");
  std::filesystem::create_directory_symlink(folder / ".", folder / "cache");  // of several runs
  text.cache = folder / "cache" / (key + ".corpus");
  keep_training_text(text, true);
  CHECK(std::filesystem::exists(folder / kept[0]));
  text.cache = folder / (key + ".corpus");
  keep_training_text(text, true);
  CHECK(load_corpus(text.cache, 7).corpus.has_value());
  CHECK_FALSE(std::filesystem::exists(folder / kept[0]));
  CHECK(std::filesystem::exists(folder / "a.corpus"));
  ::close(living);
}

TEST_CASE("a file that is missing is no problem; one that is cut, altered or another is, in words") {
  const TemporaryFolder folder;
  CHECK_FALSE(load_corpus(folder / "none", 7).corpus.has_value());
  CHECK(load_corpus(folder / "none", 7).problem.empty());
  save_corpus(folder / "a", 7, small(3));
  CHECK(contains(load_corpus(folder / "a", 8).problem, "another text"));
  const std::string good = bytes_of(folder / "a");
  const auto problem = [&](const std::string& bytes) {
    const LoadedCorpus loaded = load_corpus(folder.write("b", bytes), 7);
    CHECK_FALSE(loaded.corpus.has_value());
    return loaded.problem;
  };
  for (std::size_t size = 0; size < good.size(); size += 1 + good.size() / 97)
    CHECK_FALSE(problem(good.substr(0, size)).empty());
  CHECK_FALSE(problem(good + "x").empty());
  for (std::size_t at = 0; at < good.size(); ++at) {  // a damaged count must not allocate much either
    std::string altered = good;
    altered[at] = static_cast<char>(altered[at] ^ 0x80);
    CHECK_FALSE(problem(altered).empty());
  }
  CHECK_FALSE(load_corpus(folder.path(), 7).problem.empty());
}

TEST_CASE("a training text that changes while it is read is refused") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 5'000; ++i) lines += "a b c d e f\n";
  folder.write("text.a", lines);
  folder.write("text.b", lines);
  const std::string path = folder.path().string();
  const Config config = parse_config(
      R"({"data": {"train_source": ")" + path + R"(/text.a", "train_target": ")" + path + R"(/text.b"}})", "changing");
  const auto model = tiny_model(tiny_config());
  const RunText text(config.data);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    std::fstream file(path + "/text.a", std::ios::in | std::ios::out);
    for (char letter = 'a'; !done; letter = letter == 'a' ? 'b' : 'a') file.seekp(0).put(letter).flush();
  });
  // Between two of the writer's turns it may be the same again.
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    try {
      encode_training_text(*model, text, 9, folder / "cache");
    } catch (const DataError& error) {
      CHECK(contains(error.what(), "changed while it was read"));
      ++refused;
    }
  }
  done = true;
  writer.join();
  CHECK(refused > 0);
  const TrainingText whole = encode_training_text(*model, text, 9, folder / "cache");
  CHECK_FALSE(whole.cache.empty());
}

TEST_CASE("a text read from a cache of several runs is reported with its own name") {
  const TemporaryFolder folder;
  for (const char* name : {"one.tsv", "two.tsv"}) folder.write(name, "a b\tb a\nno columns\n");
  for (const char* name : {"one.tsv", "two.tsv", "two.tsv"}) {
    const std::string path = (folder / name).string();
    const Config config = parse_config(R"({"data": {"train": [{"tsv": ")" + path + R"("}]}})", "tsv");
    const RunText text(config.data);
    const auto model = tiny_model(config);
    const TrainingText training = encode_training_text(*model, text, 9, folder / "cache");
    CHECK(training.encoded.report.short_lines.first == path + ":2");
    if (!training.cached) keep_training_text(training, false);
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "cache"), {}) == 2);
}

TEST_CASE("a cache that is whole but holds what no text gives is made anew") {
  const TemporaryFolder folder;
  folder.write("text.a", "a b c\n\nb\nc d z\na b c d e f a b c d\nd\n");
  folder.write("text.b", "a b\nx\nb c\nc\na\nd\n");
  const std::string path = folder.path().string();
  const Config config = parse_config(
      R"({"data": {"train_source": ")" + path + R"(/text.a", "train_target": ")" + path + R"(/text.b"}})", "hostile");
  const auto model = tiny_model(tiny_config());
  const RunText text(config.data);
  const TrainingText good = encode_training_text(*model, text, 9, folder / "cache");
  CHECK(good.encoded.corpus.line == std::vector<Index>{0, 2, 3, 5});
  keep_training_text(good, false);
  CHECK(encode_training_text(*model, text, 9, folder / "cache").cached);

  const auto check_remade = [&](auto change) {
    EncodedCorpus all = good.encoded;
    change(all);
    save_corpus(good.cache, good.key, all);
    const TrainingText again = encode_training_text(*model, text, 9, folder / "cache");
    CHECK_FALSE(again.cached);
    CHECK(contains(again.problem, "does not fit the text"));
    check_equal(again.encoded, good.encoded);
  };
  const auto unknown = static_cast<TokenId>(model->target_vocabulary().size());
  check_remade([&](EncodedCorpus& all) { all.corpus.source.tokens[1] = 60000; });
  check_remade([&](EncodedCorpus& all) { all.corpus.target.tokens.back() = unknown; });
  check_remade([&](EncodedCorpus& all) { all.corpus.source.tokens[0] = kUnknown; });
  check_remade([&](EncodedCorpus& all) { all.corpus.line[0] = Index{1} << 40; });
  check_remade([&](EncodedCorpus& all) { all.corpus.line[0] = -1000; });
  check_remade([&](EncodedCorpus& all) { all.corpus.line[1] = 0; });
  check_remade([&](EncodedCorpus& all) { all.corpus.line[3] = 6; });
  check_remade([&](EncodedCorpus& all) { all.corpus = {}, all.report = {}; });
  const auto set_lengths = [](EncodedCorpus& all, std::vector<Index> lengths) {
    EncodedText& side = all.corpus.source;
    side.rows = Ragged::of_lengths(lengths);
    side.tokens.resize(static_cast<std::size_t>(side.rows.rows()), 3);
    all.report.source_tokens = side.rows.rows();
  };
  check_remade([&](EncodedCorpus& all) { set_lengths(all, {10, 1, 3, 1}); });
  check_remade([&](EncodedCorpus& all) { set_lengths(all, {3, 0, 4, 1}); });
  for (const auto count :
       {&CorpusReport::pairs, &CorpusReport::blank, &CorpusReport::too_long, &CorpusReport::source_tokens,
        &CorpusReport::target_tokens, &CorpusReport::source_unknown, &CorpusReport::target_unknown}) {
    for (const Index value : {Index{-5}, Index{3}, Index{1} << 60}) {
      check_remade([&](EncodedCorpus& all) { all.report.*count = value; });
    }
  }
  check_remade([&](EncodedCorpus& all) { all.report.short_lines.count = -1; });
}

TEST_CASE("an epoch is made of lines that rise and are in the text") {
  const auto model = tiny_model(tiny_config());
  const ParallelText text = letters(10, 1);
  const auto error = [&](std::vector<Index> lines) {
    return thrown_text<DataError>([&] { const EpochEncoder encoder(*model, text, std::move(lines), 9); });
  };
  CHECK(error({0, 3, 9}) == "(nothing was thrown)");
  CHECK(error({}) == "(nothing was thrown)");
  for (const auto& lines : {std::vector<Index>{Index{1} << 40, 3}, {-1000, 3}, {3, 3}, {3, 2}}) {
    CHECK(contains(error(lines), "not in order"));
  }
  CHECK(contains(error({0, 10}), "shorter than when it was encoded"));
}
