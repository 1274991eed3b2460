// Files that were made, or damaged, to do harm: each is refused by a named error, before memory or time is spent on what it
// claims. tests/fuzz_test.cpp throws dice at the same readers.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <thread>
#include <unordered_set>

#include "cli.h"
#include "gzip.h"
#include "sanitizers.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/memory.h"
#include "weft/core/safetensors.h"
#include "weft/data/subword_model.h"
#include "weft/data/subword_tokenizer.h"
#include "weft/data/text_file.h"
#include "weft/train/checkpoint.h"
#include "weft/train/config_reader.h"
#include "weft/train/line_input.h"
#include "weft/train/memory_refusal.h"
#include "weft/train/score_tokenizers.h"

using namespace weft;
using weft::cli::check_refused;

namespace {

#ifdef WEFT_SANITIZED
constexpr std::size_t kStride = 7;  // every byte would take too long
#else
constexpr std::size_t kStride = 1;
#endif

/// A checkpoint of some 10 kB.
void save_small(const std::filesystem::path& path) {
  const auto model = tiny_model(tiny_config({"model.d_model=4", "model.heads=1", "model.d_feed_forward=4"}));
  save_checkpoint(path, *model, {.step = 3, .validations = {}}, nullptr);
}

/// Writes a checkpoint anew with other metadata.
void change(const std::filesystem::path& from, const std::filesystem::path& to, const std::string& key,
            const std::string& value) {
  const SafetensorsFile file = SafetensorsFile::open(from);
  SafetensorsWriter writer;
  for (const auto& [name, text] : file.metadata()) writer.set_metadata(name, name == key ? value : text);
  std::map<std::string, std::vector<real>> values;
  for (const SafetensorsEntry& entry : file.entries()) {
    std::vector<real>& tensor = values[entry.name];
    tensor.resize(static_cast<std::size_t>(entry.elements()));
    file.read(entry.name, std::span(tensor));
    writer.add(entry.name, entry.shape, std::span<const real>(tensor));
  }
  writer.write(to);
}

/// The error of any class of ours.
std::string error_of(const std::function<void()>& action) { return thrown_text<Error>(action); }

std::string load_error(const std::filesystem::path& path) {
  return error_of([&] { load_checkpoint(path, standard_layers()); });
}

std::string config_error(const std::string& json) {
  return thrown_text<ConfigError>([&] { parse_config(json, "c.json"); });
}

std::string field(int number, const std::string& body) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  std::size_t length = body.size();
  for (; length >= 0x80; length >>= 7) bytes += static_cast<char>((length & 0x7F) | 0x80);
  return bytes + static_cast<char>(length) + body;
}

std::string score(float value) {
  std::string bytes(5, '\x15');
  std::memcpy(&bytes[1], &value, sizeof value);
  return bytes;
}

std::string piece(const std::string& text, char type, const std::string& more) {
  return field(1, field(1, text) + more + '\x18' + type);
}

/// A normaliser (3) or denormaliser (5) with this trie and the text that its values 0 stand for.
std::string normaliser(int number, const std::vector<std::uint32_t>& units, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(units.size() * 4);
  std::string table(4, '\0');
  std::memcpy(table.data(), &size, 4);
  table.append(reinterpret_cast<const char*>(units.data()), size);
  return field(number, field(2, table + text + '\0'));
}

/// A subword model of these extra pieces and fields, and what is wrong with it.
std::string subword_bytes(const std::string& more) {
  return piece("<unk>", 2, "") + piece("<s>", 3, "") + piece("</s>", 3, "") + piece("a", 1, score(-1)) + more;
}
std::string subword_error(const std::string& more) {
  return thrown_text<DataError>([&] { SubwordModel::load(subword_bytes(more), "m"); });
}

}  // namespace

TEST_CASE("a change of any byte of a checkpoint is found") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  save_small(path);
  const std::string good = bytes_of(path);
  const Registry registry = standard_layers();
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  for (std::size_t at = 0; at < good.size(); at += kStride) {
    const char flipped = static_cast<char>(good[at] ^ (1 << at % 8));
    REQUIRE(::pwrite(file, &flipped, 1, static_cast<off_t>(at)) == 1);
    CAPTURE(at);
    CHECK_THROWS_AS(load_checkpoint(path, registry), CheckpointError);
    REQUIRE(::pwrite(file, &good[at], 1, static_cast<off_t>(at)) == 1);
  }
  ::close(file);
  CHECK_NOTHROW(load_checkpoint(path, registry));
}

TEST_CASE("a checkpoint whose configuration claims more than its tensors is refused before memory is taken") {
  const TemporaryFolder folder;
  save_small(folder / "a");
  const auto claim = [&](const std::string& model) {
    change(folder / "a", folder / "b", "weft.config", "{\"model\": {" + model + "}}");
    release_unused_memory();
    reset_peak_memory();
    const Index before = memory_statistics().peak_bytes;
    const std::string error = load_error(folder / "b");
    CHECK(memory_statistics().peak_bytes - before < 1 << 20);
    CHECK(contains(error, (folder / "b").string() + ": "));
    CHECK_FALSE(contains(error, "\n"));
    return error;
  };
  const std::string small = R"("d_model": 4, "heads": 1, "d_feed_forward": 4, "max_length": 300, )";
  CHECK(contains(claim(R"("d_model": 1000000000, "heads": 1)"), "model.d_model is 1000000000; must be"));
  CHECK(contains(claim(R"("d_model": 32768, "heads": 1, "max_length": 300, "encoder_layers": 1000)"),
                 "target_embedding.weight of shape [9, 32768]"));
  CHECK(contains(claim(R"("d_model": 4, "heads": 1, "d_feed_forward": 1048576)"), "shape [1048576, 4]"));
  CHECK(contains(claim(R"("d_model": 4, "heads": 3)"), "must be a multiple of model.heads (3)"));
  CHECK(contains(claim(R"("d_model": 4, "heads": 1, "max_length": 1000001)"), "model.max_length is 1000001; must be"));
  CHECK(contains(claim(R"("d_model": 4, "heads": 1, "max_length": 1000000, "positions": "learned")"), "1000000, 4]"));
  CHECK(contains(claim(small + R"("encoder_layers": 1000, "decoder_layers": 1000)"), "no tensor encoder.layers.1."));
  CHECK(contains(claim(small + R"("decoder_layers": 1001)"), "model.decoder_layers is 1001; must be"));

  change(folder / "a", folder / "b", "weft.source_vocabulary", std::string(1 << 20, '['));
  CHECK(contains(load_error(folder / "b"), "weft.source_vocabulary: its metadata are not those of a checkpoint"));
  std::string tokens = "[";  // each takes many times its length
  for (int i = 0; i < 100'000; ++i) tokens += "\"\",";
  change(folder / "a", folder / "b", "weft.source_vocabulary", tokens + "\"\"]");
  CHECK(contains(load_error(folder / "b"), "not a list of tokens, each with a row of a tensor"));
  change(folder / "a", folder / "b", "weft.training", std::string(1 << 20, '['));
  CHECK(contains(load_error(folder / "b"), "weft.training is nested too deeply"));
  for (const std::string value : {"0,", "[],", "{},"}) {  // each takes many times its length
    std::string values;
    for (int i = 0; i < 100'000; ++i) values += value;
    change(folder / "a", folder / "b", "weft.training", R"({"x\"[":[)" + values + "0]}");
    CHECK(contains(load_error(folder / "b"), "weft.training has too many values"));
  }
  std::string many = "{\"a\":0";
  for (int i = 0; i < 100000; ++i) many += ",\"" + std::to_string(i) + "\":0";  // no time that grows with the square
  change(folder / "a", folder / "b", "weft.training", many + "}");
  CHECK(contains(load_error(folder / "b"), "not those of a checkpoint"));
}

TEST_CASE("sizes beyond any machine are named in a configuration, and a model beyond this one before it is made") {
  CHECK(
      contains(config_error(R"({"model": {"d_model": 1000000000, "heads": 1}})"), "model.d_model is 1000000000; must"));
  CHECK(contains(config_error(R"({"model": {"d_feed_forward": 1e9}})"), "model.d_feed_forward is 1e9; must be"));
  CHECK(contains(config_error(R"({"model": {"max_length": 1e18}})"), "model.max_length is 1e18; must be"));
  CHECK(contains(config_error(R"({"data": {"max_vocabulary": 1e9}})"), "data.max_vocabulary is 1e9; must be"));
  CHECK(contains(config_error(R"({"model": {"d_model": 1024, "heads": 1, "max_length": 16385}})"),
                 "model.max_length (16385) times model.d_model (1024) must be at most 16777216"));
  CHECK(contains(config_error(R"({"data": {"cache": "a\u0000b"}})"), "c.json:1:29: a control character in a text"));
  CHECK(contains(config_error(R"({"data": {"cache": "a\nb"}})"), "c.json:1:25: a control character in a text"));
  const std::vector<std::string> overrides{"data.cache=a\nb"};
  CHECK_THROWS_WITH_AS(parse_config("{}", "c.json", overrides),
                       R"(--set data.cache=a\nb: data.cache is "a\nb"; must be without control characters)",
                       ConfigError);
  const Config huge = parse_config(
      R"({"model": {"d_model": 65536, "heads": 1, "d_feed_forward": 1048576, "encoder_layers": 100,
          "decoder_layers": 100, "max_length": 256, "positions": "learned"}, "data": {"max_length": 8}})",
      "huge");
  const Vocabulary vocabulary = Vocabulary::from_tokens({"<unk>", "<s>", "</s>", "a"});
  TranslationModel model(huge, vocabulary, vocabulary, standard_layers());  // takes no memory for its parameters
  CHECK_THROWS_SAYING(require_room_for_model(model, standard_layers(), {Index{1} << 40, "free"}), "a model of",
                      ConfigError);
}

TEST_CASE("a configuration has limits of length, depth and number, and errors stay short") {
  CHECK(contains(config_error(std::string(kMostConfigBytes + 1, ' ')), "longer than the 8388608 bytes"));
  CHECK(contains(config_error(std::string(kMostConfigBytes, '[')), "c.json:1:17: nested more than 16 deep"));
  std::string deep = "{\"model\": ";
  for (int i = 0; i < 100; ++i) deep += "{\"a\":";
  CHECK(contains(config_error(deep), "nested more than 16 deep"));
  std::string values = "{\"data\": {\"train\": [0";
  for (std::size_t i = 0; i < kMostConfigValues; ++i) values += ",0";
  CHECK(contains(config_error(values + "]}}"), "more than 200000 values"));
  std::string texts = "{\"data\": {\"train\": [{\"tsv\":\"a\"}";
  for (int i = 1; i < 10000; ++i) texts += ",{\"tsv\":\"a\"}";
  const Config most = parse_config(texts + "]}}", "most");
  CHECK(most.data.train.size() == 10000);
  CHECK(config_differences(parse_config(config_json(most), "again"), most).empty());
  CHECK(contains(config_error(texts + ",{}]}}"), "data.train has 10001 texts; must be at most 10000"));
  for (const std::string& text : {"{\"" + std::string(1000000, 'k') + "\": 1}",
                                  "{\"model\": {\"d_model\": \"" + std::string(1000000, 'v') + "\"}}",
                                  "{\"model\": {\"d_model\": 1" + std::string(1000000, '0') + "}}",
                                  "{\"model\": {\"d_model\": " + std::string(1000000, 'x') + "}}"}) {
    const std::string error = config_error(text);
    CHECK(error.starts_with("c.json:1"));
    CHECK(error.size() < 1000);
  }
  std::string keys = "{\"model\": {\"x\": 0";
  for (int i = 0; i < 15000; ++i) keys += ",\"d_modle" + std::to_string(i) + "\": 0";
  const std::string error = config_error(keys + "}}");
  CHECK(contains(error, "perhaps more; mend these first"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 50);
  CHECK(contains(config_error(std::string("{\"model\":\0 {}}", 14)), "c.json:1:10: a zero byte"));
  CHECK(contains(config_error("{\"model\": {\"norm\": \"\xC3\x28\"}}"), "c.json:1:"));
  CHECK(contains(config_error(R"({"model": {"heads": 2, "heads": 4}})"), "is given twice"));
}

TEST_CASE("no input is waited for in vain: pipes without a writer, devices, folders") {
  const TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string(), live = (folder / "live").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  REQUIRE(::mkfifo(live.c_str(), 0600) == 0);
  const auto later = [](std::function<void()> action) {
    return std::async(std::launch::async, [action] { return error_of(action); });
  };
  auto text = later([&] { read_lines(pipe); }), config = later([&] { load_config(pipe); }),
       stream = later([&] { const LineInput input(pipe); });
  std::thread writer([&] {  // is there at once, and silent for longer than a writer is waited for
    const int file = ::open(live.c_str(), O_WRONLY | O_CLOEXEC);
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    [[maybe_unused]] const auto written = ::write(file, "One.\nTwo.", 9);
    ::close(file);
  });
  CHECK(read_lines(live) == std::vector<std::string>{"One.", "Two."});
  writer.join();
  for (auto* error : {&text, &config, &stream})
    CHECK(contains(error->get(), pipe + ": is a pipe that nobody writes to"));
  CHECK(contains(load_error(pipe), pipe + ": is not a regular file"));
  CHECK(contains(error_of([&] { SubwordModel::load_file(pipe); }), pipe + ": is not a regular file"));

  CHECK(contains(error_of([] { read_lines("/dev/zero"); }), "/dev/zero:1: a line of more than 4 MiB"));
  CHECK(contains(error_of([] { load_config("/dev/zero"); }), "/dev/zero: is longer than the 1048576 bytes"));
  CHECK(contains(load_error("/dev/zero"), "/dev/zero: is not a regular file"));
  CHECK(contains(error_of([] { SubwordModel::load_file("/dev/zero"); }), "/dev/zero: is not a regular file"));
  CHECK(read_lines("/dev/null").empty());
  for (const std::string& error :
       {error_of([&] { read_lines(folder.path()); }), error_of([&] { load_config(folder.path()); }),
        load_error(folder.path()), error_of([&] { SubwordModel::load_file(folder.path()); }),
        error_of([&] { const LineInput input(folder.path().string()); })}) {
    CHECK(contains(error, folder.path().string() + ": "));
    CHECK(contains(error, "irectory"));
  }
}

TEST_CASE("the program refuses devices, pipes and folders in one line") {
  cli::workplace();
  put("text", "a b\n");
  REQUIRE((::mkfifo("pipe", 0600) == 0));
  check_refused({"config", "show", "pipe"}, {"pipe: is a pipe that nobody writes to"});
  for (const std::string name : {"/dev/zero", "pipe", "/"}) {
    check_refused({"inspect", name}, {name + ": "});
    check_refused({"translate", name}, {name + ": "});
    if (name != "/") check_refused({"plot", name}, {name + ": "});
    if (name == "pipe") continue;
    check_refused({"config", "show", name}, {name + ": "});
    check_refused({"score-text", "--hypothesis", "text", "--reference", name}, {name});
  }
}

TEST_CASE("a line has a limit, which text that unpacks to a thousand times its size meets too") {
  const TemporaryFolder folder;
  const auto exact = folder.write("exact", std::string(kMostLineBytes, 'a') + "\nb");
  CHECK(read_lines(exact).at(0).size() == kMostLineBytes);
  CHECK(read_lines(exact).at(1) == "b");
  const auto longer = folder.write("longer", "b\n" + std::string(kMostLineBytes + 1, 'a') + "\n");
  CHECK_THROWS_SAYING(read_lines(longer), longer.string() + ":2: a line of more than 4 MiB", DataError);
  const std::string bomb = gzipped(std::string(16 << 20, 'a'));
  CHECK(bomb.size() < 20000);
  const auto packed = folder.write("bomb.gz", bomb);
  CHECK_THROWS_SAYING(read_lines(packed), packed.string() + ":1: a line of more than 4 MiB", DataError);
  for (const std::size_t length : {4094u, 4095u, 4096u, 8190u}) {  // about the ends of what is read at a time
    const std::string line(length, 'x');
    const auto path = folder.write("lines", line + "\n\n" + line);
    CHECK(read_lines(path) == std::vector<std::string>{line, "", line});
  }
}

TEST_CASE("a subword model is checked before SentencePiece sees it") {
  CHECK(subword_error("") == "(nothing was thrown)");
  CHECK(contains(subword_error(piece("b", 1, score(-1) + std::string("\x10\x01", 2))), "a field of the wrong form"));
  CHECK(contains(subword_error(piece(std::string("b\0c", 3), 1, "")), "a piece with a NUL"));
  CHECK(contains(subword_error(piece("\xC3", 1, "")), "not UTF-8"));
  CHECK(contains(subword_error(piece(std::string(257, 'b'), 1, "")), "a piece of more than 256 bytes"));
  for (const float value :
       {1e10F, -1e10F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(contains(subword_error(piece("b", 1, score(value))), "a score that is not a number, or too large"));
  }
  CHECK(contains(subword_error(std::string("\x0A\xFF\xFF\xFF\xFF\x0F", 6)), "it ends too early"));
  CHECK(contains(subword_error(std::string("\x80\x80\x80\x80\x80\x01\x00", 7)), "a field of no possible number"));
  CHECK(contains(subword_error(field(2, std::string("\xE2\x02\x81\x02", 4) + std::string(257, 'u'))),
                 "a long text for unknown tokens"));
  CHECK(contains(thrown_text<DataError>([] { SubwordModel::load(std::string(kMostSubwordBytes + 1, 'a'), "m"); }),
                 "longer than any"));
  // Its name for what is unknown is that of another piece: the piece of that type counts.
  const auto odd = SubwordModel::load(subword_bytes(field(2, std::string("\xEA\x02\x01", 3) + "a")), "m");
  CHECK(odd->tokens() == std::vector<std::string>{"<unk>", "<s>", "</s>", "a"});
  const std::vector<std::string> unknown{"a", "<unk>"};
  CHECK_NOTHROW(odd->join(unknown));
  // A rule that makes many letters of each "x", so that a line would grow to many times its length.
  std::vector<std::uint32_t> units(512);
  units[0] = 256u << 10;
  units[256 ^ 'x'] = ((256u ^ 'x' ^ 1u) << 10) | 0x100u | 'x';
  units[1] = 0x80000000u;
  const auto rule = [&](std::size_t letters) { return normaliser(3, units, std::string(letters, 'a')); };
  CHECK(subword_error(rule(32)) == "(nothing was thrown)");
  CHECK(contains(subword_error(rule(33)), "makes more than 32 times as much as it matches"));
  CHECK(contains(subword_error(rule(257)), "makes a long text of one match"));
  // A test that a model brings along is not run on loading, and stays in its bytes.
  const std::string test = field(4, field(1, field(1, "a") + field(2, "b"))), tested = subword_bytes(test + test);
  CHECK(SubwordModel::load(tested, "m")->bytes() == tested);
}

TEST_CASE("a table of normalisation is followed from its root, and is neither deep, round nor dense") {
  // The root looks like a value, and leads far away.
  std::vector<std::uint32_t> units(1024);
  units[0] = 0xFFFFFC00u | 0x200u;
  CHECK(contains(subword_error(normaliser(3, units, "")), "leads outside itself"));
  CHECK(contains(subword_error(normaliser(5, units, "")), "leads outside itself"));
  // The child "a" of the root has the root's children, with and without a value.
  for (const std::uint32_t value : {0x100u, 0u}) {
    units.assign(1024, 0);
    units[0] = 256u << 10;
    units[256 ^ 'a'] = ('a' << 10) | value | 'a';
    units[256] = value == 0 ? 0 : 0x80000000u;
    CHECK(contains(subword_error(normaliser(3, units, "x")), "with a match of more than 256 bytes"));
    CHECK(contains(subword_error(normaliser(5, units, "x")), "with a match of more than 256 bytes"));
  }
  // The same for a NUL, which bytes that a model writes may make.
  units.assign(1024, 0);
  units[0] = 256u << 10;
  units[256] = 0x100u;
  CHECK(contains(subword_error(normaliser(5, units, std::string(300, 'x'))), "with a match of more than 256 bytes"));
  // "a", "aa", "aaa" and so on, of which the first `values` are rules and all have two parents.
  const auto chain = [](std::size_t length, std::size_t values) {
    std::vector<std::uint32_t> made(256 * (length + 2));
    made[0] = 256u << 10;
    for (std::size_t k = 1; k <= length; ++k) {
      for (const unsigned letter : {'a', 'b'}) {
        const auto here = static_cast<std::uint32_t>(256 * k ^ letter),
                   next = static_cast<std::uint32_t>(256 * (k + 1));
        made[here] = (here ^ next) << 10 | (k <= values ? 0x100u : 0u) | letter;
      }
      made[256 * (k + 1)] = k <= values ? 0x80000000u : 0;
    }
    return normaliser(3, made, "x");
  };
  CHECK(subword_error(chain(256, 32)) == "(nothing was thrown)");
  CHECK(contains(subword_error(chain(257, 32)), "with a match of more than 256 bytes"));
  CHECK(contains(subword_error(chain(256, 33)), "with more than 32 matches at one place"));
  const auto model = SubwordModel::load(subword_bytes(chain(256, 32)), "m");
  const std::vector<std::string> tokens{"\xE2\x96\x81" + std::string(63, 'x')};  // unknown; 62 times 32 letters, and 16
  CHECK(model->split(std::string(2000, 'a')) == tokens);
}

TEST_CASE("at most 64 user-defined pieces begin one another") {
  const auto nested = [](std::size_t count) {
    std::string pieces = piece("Qb", 4, "") + piece("R", 4, "");
    for (std::size_t k = 1; k <= count; ++k) pieces += piece(std::string(k, 'Q'), 4, "");
    return pieces;
  };
  CHECK(contains(subword_error(nested(65)), "more than 64 user-defined pieces"));
  for (const char* kind : {"\x18\x01", "\x18\x02"}) {
    const auto model = SubwordModel::load(subword_bytes(nested(64) + field(2, kind)), "m");
    CHECK(contains(model->join(model->split(std::string(70, 'Q'))), std::string(70, 'Q')));
  }
}

TEST_CASE("a model whose pieces fall into one place of a map is refused") {
  std::unordered_set<std::string> map;
  for (int i = 0; i < 101; ++i) map.insert(std::to_string(i));
  std::string same, others;
  int count = 0;
  for (int i = 0; count < 100; ++i) {
    const std::string text = "w" + std::to_string(i);
    if (std::hash<std::string>()(text) % map.bucket_count() != 0) continue;
    same += piece(text, 1, score(-1));
    others += piece("w" + std::to_string(count++), 1, score(-1));
  }
  CHECK(contains(subword_error(same), "more than 64 pieces of one hash"));
  CHECK(subword_error(others) == "(nothing was thrown)");
}

TEST_CASE("no run of unknown characters is long, whatever a model makes of a text and of its spaces") {
  std::vector<std::uint32_t> units(768);
  units[0] = 256u << 10;
  const std::string tripled = "\xE3\x81\x82\xE3\x81\x82\xE3\x81\x82";
  const auto rule = [&](char match) {  // makes `tripled` of it
    std::vector<std::uint32_t> made = units;
    const auto byte = static_cast<unsigned char>(match);
    made[256u ^ byte] = ((256u ^ byte ^ 1u) << 10) | 0x100u | byte;
    made[1] = 0x80000000u;
    return normaliser(3, made, tripled);
  };
  const std::string space = piece("\xE2\x96\x81", 1, score(-2)), no_escape = field(3, std::string("\x28\x00", 2));
  std::string words = "bb";
  for (int i = 0; i < 15000; ++i) words += " bb";
  for (const std::string& kind : {field(2, "\x18\x01"), field(2, "\x18\x02")}) {
    const auto longest = [&](const std::string& more, const std::string& line) {
      const auto tokens = SubwordTokenizer(SubwordModel::load(subword_bytes(kind + more), "m"), false).split(line);
      std::size_t most = 0;
      for (const std::string& token : tokens) most = std::max(most, token.size());
      return most;
    };
    CHECK(longest(space + rule('x'), std::string(40000, 'x')) < kLongestSubwordWord + 20);
    CHECK(longest(space + rule('x'), std::string(10000, 'x')) < kLongestSubwordWord + 20);
    CHECK(longest(space + rule('x'), words) < 10);
    for (const std::string& more : {std::string(), space + rule(' '), space + no_escape}) {
      CHECK(longest(more, words) < 2 * kLongestSubwordWord);
    }
  }
}

TEST_CASE("the time of a score grows with the line, not with its square") {
  std::string line;
  for (int i = 0; i < 400000; ++i) line += "&amp;";
  CHECK(bleu_tokenize(line, BleuTokenizer::k13a).size() == 400000);
}
