#include "weft/core/safetensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"

using namespace weft;
namespace fs = std::filesystem;

namespace {

/// The text of the CheckpointError that an action throws.
std::string error_of(FunctionRef<void()> action) { return thrown_text<CheckpointError>(action); }

std::string with_length(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

const std::vector<float> kMatrix{1.5f, -2.0f, 3.25f, 0.0f, -0.0f, 1e-30f};
const std::vector<double> kDouble{1.0 / 3.0, -1e300, 2.5};
const std::vector<float> kScalar{7.0f};

void write_sample(const fs::path& path) {
  SafetensorsWriter writer;
  writer.add("z.weight", {2, 3}, kMatrix);
  writer.add("second empty", {0}, std::span<const float>());
  writer.add("a empty", {4, 0}, std::span<const float>());
  writer.add("a \"double\"\n", {3}, kDouble);
  writer.add("scalar", {}, kScalar);
  writer.set_metadata("step", "12");
  writer.set_metadata("caf\u00e9", "\"weft.crc32\":\"00000000\"");
  writer.write(path);
}

const SafetensorsOptions kStrict{.require_checksum = true};

}  // namespace

TEST_CASE("tensors and metadata come back as they were, also in the other float type") {
  const TemporaryFolder folder;
  write_sample(folder / "a");
  const auto file = SafetensorsFile::open(folder / "a", kStrict);
  CHECK(file.metadata() == SafetensorsMetadata{{"step", "12"}, {"caf\u00e9", "\"weft.crc32\":\"00000000\""}});
  CHECK(file.entries().size() == 5);
  CHECK(file.entries()[0].name == "a \"double\"\n");  // F64 first
  CHECK(file.entries()[1].name == "z.weight");
  CHECK(file.shape("z.weight") == std::vector<Index>{2, 3});
  CHECK(file.shape("scalar").empty());
  CHECK(file.find("a empty")->elements() == 0);
  CHECK(file.find("none") == nullptr);

  std::vector<float> matrix(6);
  file.read("z.weight", std::span(matrix));
  CHECK(std::memcmp(matrix.data(), kMatrix.data(), 24) == 0);
  std::vector<double> wide(6);
  file.read("z.weight", std::span(wide));
  CHECK(wide == std::vector<double>(kMatrix.begin(), kMatrix.end()));
  std::vector<double> doubles(3);
  file.read("a \"double\"\n", std::span(doubles));
  CHECK(doubles == kDouble);
  std::vector<float> narrow(3);
  file.read("a \"double\"\n", std::span(narrow));
  CHECK(narrow[0] == 1.0f / 3.0f);
  CHECK(std::isinf(narrow[1]));
}

TEST_CASE("a conversion longer than one chunk is right to the end") {
  const TemporaryFolder folder;
  std::vector<float> values(400001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.5f;
  SafetensorsWriter writer;
  writer.add("x", {400001}, values);
  writer.write(folder / "a");
  std::vector<double> wide(values.size());
  SafetensorsFile::open(folder / "a", kStrict).read("x", std::span(wide));
  CHECK(wide == std::vector<double>(values.begin(), values.end()));
}

TEST_CASE("saving what was loaded gives the same bytes, with data at a multiple of 8") {
  const TemporaryFolder folder;
  write_sample(folder / "a");
  const auto file = SafetensorsFile::open(folder / "a", kStrict);
  SafetensorsWriter writer;
  std::vector<std::vector<float>> floats(file.entries().size());
  std::vector<std::vector<double>> doubles(file.entries().size());
  for (std::size_t i = 0; i < file.entries().size(); ++i) {
    const SafetensorsEntry& entry = file.entries()[i];
    const auto count = static_cast<std::size_t>(entry.elements());
    if (entry.dtype == "F64") {
      doubles[i].resize(count);
      file.read(entry.name, std::span(doubles[i]));
      writer.add(entry.name, entry.shape, doubles[i]);
    } else {
      floats[i].resize(count);
      file.read(entry.name, std::span(floats[i]));
      writer.add(entry.name, entry.shape, floats[i]);
    }
  }
  for (const auto& [key, value] : file.metadata()) writer.set_metadata(key, value);
  writer.write(folder / "b");
  const std::string bytes = read_file(folder / "a");
  CHECK(bytes == read_file(folder / "b"));
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  CHECK(header_bytes % 8 == 0);
}

TEST_CASE("the checksum is the CRC-32 of the file with zeros in its place") {
  const TemporaryFolder folder;
  write_sample(folder / "a");
  std::string bytes = read_file(folder / "a");
  const std::size_t at = bytes.find("\"weft.crc32\":\"") + 14;
  const std::string stored = bytes.substr(at, 8);
  bytes.replace(at, 8, "00000000");
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  CHECK(std::stoul(stored, nullptr, 16) == (crc ^ 0xffffffff));
}

TEST_CASE("every changed byte is found") {
  const TemporaryFolder folder;
  write_sample(folder / "a");
  const std::string bytes = read_file(folder / "a");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      put(folder / "b", changed);
      CAPTURE(at);
      CAPTURE(flip);
      CHECK_THROWS_AS(SafetensorsFile::open(folder / "b", kStrict), CheckpointError);
    }
  }
  std::string changed = bytes;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  put(folder / "b", changed);
  CHECK(contains(error_of([&] { SafetensorsFile::open(folder / "b"); }), "is damaged (checksum "));
}

TEST_CASE("every cut and every addition is found") {
  const TemporaryFolder folder;
  write_sample(folder / "a");
  const std::string bytes = read_file(folder / "a");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    put(folder / "b", bytes.substr(0, size));
    CAPTURE(size);
    const std::string error = error_of([&] { SafetensorsFile::open(folder / "b"); });
    CHECK(contains(error, (folder / "b").string() + ": "));
    if (size > 9) CHECK(contains(error, "is cut: " + std::to_string(size) + " bytes of "));
  }
  put(folder / "b", bytes + "x");
  CHECK(contains(error_of([&] { SafetensorsFile::open(folder / "b"); }), "is damaged: "));
  std::vector<float> many(1000);
  SafetensorsWriter writer;
  writer.add("x", {1000}, many);
  writer.write(folder / "b");
  fs::resize_file(folder / "b", 4000);
  CHECK(contains(error_of([&] { SafetensorsFile::open(folder / "b"); }), "is cut: 4,000 bytes of 4,1"));
}

TEST_CASE("hostile headers are refused") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& bytes) {
    put(folder / "b", bytes);
    return error_of([&] { SafetensorsFile::open(folder / "b"); });
  };
  const auto tensor = [](const std::string& fields) { return with_length("{\"t\":{" + fields + "}}", "12345678"); };
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  put(folder / "b", tensor(good));
  CHECK(SafetensorsFile::open(folder / "b").entries().size() == 1);
  put(folder / "b", with_length("{}"));
  CHECK(SafetensorsFile::open(folder / "b").entries().empty());
  CHECK(contains(error_of([&] { SafetensorsFile::open(folder / "b", kStrict); }), "no weft.crc32"));

  CHECK(contains(error("{\"model\": \"an ordinary JSON file\"}"), "is not a safetensors file"));
  CHECK(contains(error(std::string(8, '\xff') + "{}"), "is not a safetensors file"));
  CHECK(contains(error(std::string("\xff\xff\xff\x05\0\0\0\0{}", 10)), "is not a safetensors file"));
  CHECK(contains(error(std::string("\xff\xff\x0f\0\0\0\0\0{}", 10)), "is cut: 10 bytes of 1,048,583"));
  CHECK(contains(error(with_length("[1,2]")), "does not begin as one"));
  CHECK(contains(error(with_length("{\"t\":")), "not JSON (byte "));
  CHECK(contains(error(with_length("{} {}")), "not JSON"));
  CHECK(contains(error(with_length("{\"\xff\":1}")), "not JSON"));
  CHECK(contains(error(with_length("{\"t\":1e999}")), "is not"));
  CHECK(contains(error(with_length("{\"t\":3}")), "tensor \"t\" is not described by"));
  CHECK(contains(error(with_length("{\"t\":null}")), "tensor \"t\" is not described by"));
  CHECK(contains(error(with_length("{\"t\":" + std::string(1000000, '['))), "tensor \"t\" is not described by"));
  CHECK(contains(error(with_length("{\"t\":{\"shape\":" + std::string(1000000, '['))), "nested too deeply"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"shape\":";
  CHECK(contains(error(with_length(objects)), "nested too deeply"));
  CHECK(contains(error(with_length("{\"t\":{\"shape\":[[1]]}}")), "nested too deeply"));
  CHECK(contains(error(with_length("{\"t\":{\"shape\":{\"a\":1}}}")), "nested too deeply"));
  CHECK(contains(error(with_length("{\"__metadata__\":{\"a\":1}}")), "metadata \"a\" is not a text"));
  CHECK(contains(error(with_length("{\"__metadata__\":[]}")), "metadata are not an object"));
  CHECK(contains(error(with_length("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}")), "has \"a\" twice"));
  CHECK(contains(error(with_length("{\"t\":{" + good + "},\"t\":{" + good + "}}", "12345678")), "has \"t\" twice"));
  CHECK(contains(error(tensor(good + ",\"dtype\":\"F32\"")), "has \"dtype\" twice"));
  CHECK(contains(error(tensor(good + ",\"more\":1")), "is not described by"));
  CHECK(contains(error(tensor(R"("dtype":"F32","shape":[2])")), "is not described by"));
  CHECK(contains(error(tensor(R"("dtype":[],"shape":[2],"data_offsets":[0,8])")), "has a dtype that is not"));
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  CHECK(contains(error(tensor(R"("dtype":"I64","data_offsets":[0,8],"shape":[)" + ones + "]")),
                 "has shape with more than 64 numbers"));
  CHECK(contains(error(tensor(R"("dtype":32,"shape":[2],"data_offsets":[0,8])")), "has a dtype that is not"));
  for (const char* shape : {"2", "[-2]", "[2.0]", "[\"2\"]", "[9223372036854775808]", "[99999999999999999999]"}) {
    CAPTURE(shape);
    CHECK(contains(error(tensor(std::string(R"("dtype":"F32","data_offsets":[0,8],"shape":)") + shape)),
                   "has a shape that is not a list of sizes"));
  }
  for (const char* offsets : {"8", "[8]", "[0,8,8]", "[8,0]", "[-1,7]", "[0,18446744073709551615]"}) {
    CAPTURE(offsets);
    CHECK(contains(error(tensor(std::string(R"("dtype":"F32","shape":[2],"data_offsets":)") + offsets)),
                   "has data_offsets that are not a begin and an end"));
  }
  CHECK(contains(error(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])")), "too large"));
  CHECK(contains(error(tensor(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])")), "does not fit"));
  CHECK(contains(error(tensor(R"("dtype":"F64","shape":[2],"data_offsets":[0,8])")), "does not fit"));
  CHECK(contains(error(tensor(R"("dtype":"I16","shape":[3],"data_offsets":[0,8])")), "does not fit"));
  CHECK(contains(error(tensor(R"("dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4611686018427387904])")),
                 "is cut: "));
  CHECK(contains(error(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])")), "do not begin where"));
  const std::string half = R"("dtype":"F32","shape":[1],"data_offsets":)";
  const auto two = [&](const char* first, const char* second) {
    return with_length("{\"a\":{" + half + first + "},\"b\":{" + half + second + "}}", "12345678");
  };
  CHECK(error(two("[0,4]", "[4,8]")) == "(nothing was thrown)");
  CHECK(error(two("[4,8]", "[0,4]")) == "(nothing was thrown)");
  CHECK(contains(error(two("[0,4]", "[0,4]")), "do not begin where"));
  CHECK(contains(error(two("[0,4]", "[2,6]")), "do not begin where"));
  CHECK(contains(error(two("[0,4]", "[5,9]")), "do not begin where"));
  for (const char* sum : {"0000000", "000000000", "0000000g", "\\u0030000000"}) {
    CAPTURE(sum);
    CHECK(
        contains(error(with_length(std::string("{\"__metadata__\":{\"weft.crc32\":\"") + sum + "\"}}")), "is damaged"));
  }
}

TEST_CASE("wrong uses are refused with the names in the text") {
  const TemporaryFolder folder;
  write_sample(folder / "a");
  const auto file = SafetensorsFile::open(folder / "a");
  std::vector<float> five(5);
  CHECK(contains(error_of([&] { file.read("none", std::span(five)); }), "has no tensor \"none\""));
  CHECK(contains(error_of([&] { file.read("z.weight", std::span(five)); }), "shape [2, 3], but 5 values"));
  CHECK(contains(error_of([&] { SafetensorsFile::open(folder / "none"); }), "No such file"));

  SafetensorsWriter writer;
  CHECK_THROWS_AS(writer.add("t", {2, 3}, five), ShapeError);
  CHECK_THROWS_AS(writer.add("t", {-1, -5}, five), ShapeError);
  CHECK_THROWS_AS(writer.add("__metadata__", {5}, five), CheckpointError);
  writer.add("t", {5}, five);
  CHECK_THROWS_AS(writer.add("t", {5}, five), CheckpointError);
  writer.set_metadata("note", "\xff");
  CHECK(contains(error_of([&] { writer.write(folder / "b"); }), "not UTF-8"));
  CHECK_FALSE(fs::exists(folder / "b"));
}

TEST_CASE("a file by the reference implementation is read") {  // scripts/make_safetensors_fixture.py
  const auto file = SafetensorsFile::open(WEFT_SOURCE_DIR "/tests/fixtures/python.safetensors");
  CHECK(file.metadata() == SafetensorsMetadata{{"note", "two\nlines"}});
  CHECK(file.entries().size() == 7);
  std::vector<float> matrix(6);
  file.read("matrix", std::span(matrix));
  CHECK(matrix == std::vector<float>{0.5f, -1.25f, 3.0f, 1e-8f, 65504.0f, -0.0f});
  CHECK(file.shape("matrix") == std::vector<Index>{2, 3});
  std::vector<double> doubles(2);
  file.read("double", std::span(doubles));
  CHECK(doubles == std::vector<double>{1.0 / 3.0, -2.0});
  std::vector<float> scalar(1);
  file.read("scalar", std::span(scalar));
  CHECK(scalar[0] == 7.5f);
  CHECK(file.shape("empty") == std::vector<Index>{0, 4});
  CHECK(file.find("half")->dtype == "F16");
  CHECK(file.find("caf\u00e9 \"quoted\"")->dtype == "BOOL");
  std::vector<double> counts(3);
  CHECK(contains(error_of([&] { file.read("counts", std::span(counts)); }), "tensor \"counts\" is of type \"I64\""));
}
