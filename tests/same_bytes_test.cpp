// The same bytes: what is trained, translated and scored depends on the configuration, the text and the seed, not on
// threads, batches, the order of lines, the environment or the locale of the program.
#include <sys/types.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <fstream>
#include <locale>
#include <tuple>

#include "cli.h"
#include "session.h"
#include "subword_text.h"
#include "weft/core/gemm_rows.h"
#include "weft/core/omp_threads.h"
#include "weft/data/subword_model.h"
#include "weft/train/epoch_encoder.h"
#include "weft/train/score.h"
#include "weft/train/translate.h"

using namespace weft;
using namespace weft::cli;

namespace {

// Elsewhere OpenBLAS may round a row in another way among other rows.
constexpr bool kExact = kRowsAreFast;
#ifdef WEFT_VECTOR_GEMM
constexpr double kMeanError = 1e-12;
#else
constexpr double kMeanError = 1e-6;
#endif

/// A configuration with everything that could go another way.
Config everything_on(const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all{"data.tokenizer=unigram",
                               "data.subword_sampling=0.2",
                               "data.max_vocabulary=120",
                               "data.max_length=40",
                               "model.max_length=41",
                               "model.d_model=32",
                               "model.embedding_dropout=0.2",
                               "model.norm_first=true",
                               "optimizer.clip_norm=0.5",
                               "optimizer.name=adamw",
                               "optimizer.weight_decay=0.01",
                               "schedule.name=plateau",
                               "schedule.patience=1",
                               "training.label_smoothing=0.1",
                               "training.accumulate=2",
                               "training.batch_tokens=700",
                               "training.ema_decay=0.9",
                               "training.best_metric=chrf",
                               "training.patience=50",
                               "training.keep_best=2",
                               "training.keep_last=1",
                               "training.validate_every=5",
                               "training.steps=10"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return tiny_config(all);
}

/// The numbers of a log but for times, bit for bit.
std::string numbers_of_log(const fs::path& folder) {
  const RunLogEntries entries = read_run_log((folder / "log.jsonl").string());
  std::string bytes;
  const auto add = [&](std::initializer_list<double> numbers) {
    for (const double number : numbers) bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (const StepEntry& e : entries.steps) add({e.loss, e.learning_rate, e.grad_norm});
  for (const ValidationEntry& e : entries.validations) add({e.loss, e.token_accuracy, e.exact_match, e.bleu, e.chrf});
  REQUIRE_FALSE(bytes.empty());
  return bytes;
}

/// Trains as that says; the bytes of all checkpoints, by name, and what the log says but for times.
std::vector<std::string> files_of_run(const Config& config) {
  const TemporaryFolder folder;
  const ParallelText text = syllables(300, 21), valid_text = syllables(20, 22);
  Vocabularies vocabularies = build_vocabularies(config.data, text);
  TranslationModel model(config, std::move(vocabularies.source), std::move(vocabularies.target), standard_layers());
  TrainingData data = tiny_data(model, text, valid_text);
  data.train_in_epoch = EpochEncoder(model, text, data.train.line, config.data.max_length);
  Progress progress(stdout, true);
  Trainer trainer(model, {}, std::move(data), folder.path(), progress);
  trainer.run(kNoStop);
  std::vector<std::string> names, files{numbers_of_log(folder.path())};
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.ends_with(".safetensors")) files.push_back(name + bytes_of(folder / name));
  }
  REQUIRE(files.size() >= 4);  // the log, last, best, and those of some steps
  return files;
}

/// Two models that have learned nothing, but not the same.
struct Models {
  Models() {
    for (const char* seed : {"training.seed=3", "training.seed=4"}) {
      models.push_back(
          tiny_model(tiny_config({seed, "model.max_length=30", "model.d_model=64", "model.norm_first=true"})));
      pointers.push_back(models.back().get());
    }
  }
  ModelSpan one() const { return {pointers.data(), 1}; }
  ModelSpan both() const { return pointers; }

  std::vector<std::unique_ptr<TranslationModel>> models;
  std::vector<const TranslationModel*> pointers;
};

void check_same(double a, double b) {
  if (kExact) {
    CHECK(a == b);
  } else {
    CHECK(a == doctest::Approx(b).epsilon(1e-5));
  }
}

void check_same(const TranslatedLine& a, const TranslatedLine& b) {
  REQUIRE(a.translations.size() == b.translations.size());
  CHECK(a.source == b.source);
  for (std::size_t i = 0; i < a.translations.size(); ++i) {
    CHECK(a.translations[i].text == b.translations[i].text);
    CHECK(a.translations[i].tokens == b.translations[i].tokens);
    check_same(a.translations[i].score, b.translations[i].score);
    if (kExact) CHECK(pharaoh(a.translations[i].alignment) == pharaoh(b.translations[i].alignment));
  }
}

template <class T>
std::vector<T> reversed(std::vector<T> items) {
  std::reverse(items.begin(), items.end());
  return items;
}

/// Decimal commas and digits in groups of one, for all streams of C++.
class French : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\1"; }
};

/// Gives the program a locale of C, and that of C++ above, for as long as it lives, as a host program might. That of C
/// is made with localedef, as machines seldom have it; without localedef it stays.
class HostLocale {
 public:
  HostLocale(const std::string& name, const std::string& letters) {
    const std::string path = (folder_ / name).string();
    const std::string command = "localedef -i " + name + " -f " + letters + " '" + path + "' >/dev/null 2>&1";
    const bool made = std::system(command.c_str()) == 0;
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    in_c_ = made && std::setlocale(LC_ALL, name.c_str()) != nullptr;
    ::unsetenv("LOCPATH");
    before_ = std::locale::global(std::locale(std::locale::classic(), new French));
  }
  ~HostLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }
  bool in_c() const { return in_c_; }

 private:
  TemporaryFolder folder_;
  std::locale before_;
  bool in_c_ = false;
};

/// The most threads that a program had while it ran.
long most_threads(const Words& words, const Words& variables) {
  put("in", joined(letters(60, 9, 5, 9).source));
  long most = 0;
  const Descriptor in("in", O_RDONLY), nowhere("/dev/null", O_WRONLY);
  const pid_t child = start(words, in, nowhere, nowhere, variables);
  const std::string path = "/proc/" + std::to_string(child) + "/status";
  for (siginfo_t info{}; info.si_pid == 0;) {
    std::ifstream status(path);
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Threads:")) most = std::max(most, std::strtol(line.c_str() + 8, nullptr, 10));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0);
  }
  CHECK(wait_for(child) == 0);
  return most;
}

}  // namespace

TEST_CASE("training with everything on gives the same bytes with 1, 2, 3, 4 and 8 threads") {
  set_threads(1);
  const auto one = files_of_run(everything_on());
  for (const int count : {2, 3, 4, 8}) {
    CAPTURE(count);
    set_threads(count);
    CHECK((files_of_run(everything_on()) == one));
  }
  set_threads(1);
  CHECK((files_of_run(everything_on({"training.seed=2"})) != one));  // so they can differ
}

TEST_CASE("translations and scores are the same in batches of any size, in any order, with any number of threads") {
  const Models models;
  std::vector<std::string> lines = letters(40, 8, 1, 12).source;
  lines[7] = "";
  const auto check = [&](ModelSpan span, TranslateOptions options, bool any_order) {
    set_threads(1);
    options.batch_tokens = 4096;
    const auto expected = translate(span, lines, options);
    for (const auto& [tokens, count] : {std::pair(Index{1}, 1), {150, 3}, {4096, 4}}) {
      set_threads(count);
      options.batch_tokens = tokens;
      const auto found = translate(span, lines, options);
      for (std::size_t i = 0; i < lines.size(); ++i) check_same(found[i], expected[i]);
    }
    if (!any_order) return;
    const auto backwards = translate(span, reversed(lines), options);
    for (std::size_t i = 0; i < lines.size(); ++i) check_same(backwards[lines.size() - 1 - i], expected[i]);
  };
  const SearchOptions beam{.beam = 4, .n_best = 3}, greedy{.beam = 1};
  check(models.one(), {.search = greedy}, true);
  check(models.one(), {.search = beam, .alignments = true}, true);
  check(models.both(), {.search = beam}, true);
  // A sample belongs to the number of its line.
  check(models.one(), {.search = beam, .sampling = SamplingOptions{.temperature = 0.9, .top_p = 0.9, .seed = 5}},
        false);
  check(models.both(), {.search = beam, .sampling = SamplingOptions{.top_k = 4}}, false);
  set_threads(1);
}

TEST_CASE("log-probabilities of given pairs are the same in batches of any size and order; their mean to 1e-12") {
  const Models models;
  const ParallelText text = letters(40, 8, 1, 9);
  const ParallelText backwards{reversed(text.source), reversed(text.target)};
  for (const ModelSpan span : {models.one(), models.both()}) {
    set_threads(1);
    const auto expected = score(span, text);
    for (const auto& [tokens, count] : {std::pair(Index{1}, 1), {150, 3}, {4096, 4}}) {
      set_threads(count);
      const auto found = score(span, text, {.batch_tokens = tokens}),
                 last = score(span, backwards, {.batch_tokens = tokens});
      for (std::size_t i = 0; i < found.size(); ++i) {
        check_same(found[i].log_probability, expected[i].log_probability);
        check_same(last[found.size() - 1 - i].log_probability, expected[i].log_probability);
      }
    }
  }
  // The mean over a text adds up its batches in another order: the same for any number of threads, not for any batch.
  const TranslationModel& model = *models.models[0];
  const Corpus corpus = tiny_data(model, text, text).valid;
  set_threads(1);
  const double expected = evaluate_loss(model, corpus, 4096).loss;
  for (const int count : {2, 3, 8}) {
    set_threads(count);
    CHECK(evaluate_loss(model, corpus, 4096).loss == expected);
  }
  for (const Index tokens : {1, 70, 300}) {
    CHECK(evaluate_loss(model, corpus, tokens).loss == doctest::Approx(expected).epsilon(kMeanError));
  }
  set_threads(1);
}

TEST_CASE("a host program's locale changes nothing") {
  set_threads(2);
  const auto work = [] {
    std::vector<std::string> results = files_of_run(everything_on({"training.steps=5"}));
    for (const char* kind : {"bpe", "unigram"}) {
      const Config config = everything_on({std::string("data.tokenizer=") + kind, "data.character_coverage=0.9995"});
      results.push_back(config_json(config));
      results.push_back(build_vocabularies(config.data, syllables(200, 3)).source.subwords()->bytes());
    }
    const TrainingState state{.loss_sum = 0.75, .validations = {}};
    results.push_back(training_json(parse_training_state(training_json(state), "here")));
    const Models models;
    for (const auto& line : translate(models.one(), letters(5, 4).source, {})) {
      results.push_back(line.translations[0].text + " " + std::to_string(line.translations[0].score == 0));
    }
    return results;
  };
  const auto expected = work();
  const std::vector<std::string> before{std::locale().name(), std::setlocale(LC_ALL, nullptr)};
  // A decimal comma, and an "i" whose capital is not "I"; a decimal point of two bytes.
  for (const auto& [name, letters, point] :
       {std::tuple("tr_TR", "ISO-8859-9", ","), std::tuple("ps_AF", "UTF-8", "\xD9\xAB")}) {
    const std::string tried = name;
    CAPTURE(tried);
    const HostLocale locale(name, letters);
    const std::string in_cpp = std::locale().name(), in_c = std::setlocale(LC_ALL, nullptr);
    if (!locale.in_c()) MESSAGE("no localedef: tried with a locale of C++ alone");
    CHECK((locale.in_c() == (std::string(std::localeconv()->decimal_point) == point)));
    const auto found = work();
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      CHECK((found[i] == expected[i]));
    }
    CHECK(std::locale().name() == in_cpp);
    CHECK(std::setlocale(LC_ALL, nullptr) == in_c);
  }
  CHECK(before == std::vector<std::string>{std::locale().name(), std::setlocale(LC_ALL, nullptr)});
  set_threads(1);
}

TEST_CASE("OMP_NUM_THREADS: a whole number or a list of them is obeyed, anything else is named and ignored") {
  CHECK(parse_omp_threads("3") == 3);
  CHECK(parse_omp_threads(" 4 ,2") == 4);
  CHECK(parse_omp_threads("99999999999") > 1000);
  for (const char* text : {"", "0", "-1", "abc", "2x", "1.5", ",2", "-99999999999", " ", "+2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_omp_threads(text));
  }
  const Words words{"translate", trained()};
  const std::string input = joined(letters(20, 9).source), expected = run_weft(words, input).out;
  REQUIRE(lines_of(expected).size() == 20);
  for (const std::string value : {"1", "2", "64", "0", "-1", "abc", ""}) {
    CAPTURE(value);
    const Outcome outcome = run_weft(words, input, {"OMP_NUM_THREADS=" + value});
    CHECK(outcome.code == 0);
    CHECK(outcome.out == expected);
    const bool wrong = value == "0" || value == "-1" || value == "abc";
    const std::string warning =
        "weft: warning: OMP_NUM_THREADS is \"" + value + "\", not a whole number of at least 1; it is not obeyed\n";
    const bool said = outcome.err.find("weft: ") != outcome.err.npos;  // OpenBLAS's OpenMP may speak as well
    CHECK((wrong ? outcome.err.ends_with(warning) : !said));
  }
  for (const char* value : {"-1", "abc", "", "1.5", "1025"}) {
    check_refused(words + Words{"--threads", value}, {"--threads is ", value});
  }
}

TEST_CASE("a program never has more threads than it was asked for, whatever the environment says") {
  const std::string best = trained();
  for (const long count : {1, 3}) {
    CAPTURE(count);
    const Words threads{"--threads", std::to_string(count)};
    for (const Words& variables :
         {Words{}, Words{"OMP_NUM_THREADS=7", "OPENBLAS_NUM_THREADS=5", "GOTO_NUM_THREADS=5"}}) {
      const Words train{"train", "tiny.json", "--fresh", "--run", "threads", "--set", "training.steps=20", "--set"};
      CHECK(most_threads(train + Words{"data.tokenizer=word"} + threads, variables) <= count);
      // SentencePiece learns subwords in a thread of its own, for which ours waits.
      const Words subwords{"data.tokenizer=unigram", "--set", "data.max_vocabulary=20"};
      CHECK(most_threads(train + subwords + threads, variables) <= std::max(count, 2L));
      CHECK(most_threads(Words{"translate", best} + threads, variables) <= count);
      CHECK(most_threads(Words{"evaluate", best} + threads, variables) <= count);
      CHECK(most_threads(Words{"score", best, "--source", "test.src", "--target", "test.trg"} + threads, variables) <=
            count);
    }
  }
}
