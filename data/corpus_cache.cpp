// The layout: the text kMagic; then, as 64-bit little-endian numbers, the key, the fields of the report, and the length of
// `first`; `first`; for each side its sentences, its tokens, and the bytes of a token (2 or 4), followed by the lengths
// (4 bytes each) and the tokens; the line numbers (8 bytes each); the CRC-32 of all before it.
#include "weft/data/corpus_cache.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"

namespace weft {
namespace {

constexpr std::string_view kMagic = "weft corpus 1\n";
constexpr std::size_t kBlock = 1 << 16;  // numbers that are packed at a time

constexpr std::array<Index CorpusReport::*, 8> kCounts = {&CorpusReport::pairs,          &CorpusReport::kept,
                                                          &CorpusReport::blank,          &CorpusReport::too_long,
                                                          &CorpusReport::source_tokens,  &CorpusReport::target_tokens,
                                                          &CorpusReport::source_unknown, &CorpusReport::target_unknown};

/// Writes numbers in a fixed width and keeps the checksum.
class Packer {
 public:
  explicit Packer(FileWriter& file) : file_(file) {}

  void text(std::string_view bytes) {
    crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    file_.write(bytes);
  }
  void number(std::uint64_t value, std::size_t bytes = 8) {
    char packed[8];
    for (std::size_t i = 0; i < bytes; ++i) packed[i] = static_cast<char>(value >> (8 * i));
    text({packed, bytes});
  }
  /// `count` numbers, the i-th of which is get(i).
  template <class Get>
  void numbers(std::size_t count, std::size_t bytes, Get get) {
    std::string packed;
    for (std::size_t first = 0; first < count; first += kBlock) {
      packed.clear();
      for (std::size_t i = first; i < std::min(count, first + kBlock); ++i) {
        const auto value = static_cast<std::uint64_t>(get(i));
        for (std::size_t b = 0; b < bytes; ++b) packed += static_cast<char>(value >> (8 * b));
      }
      text(packed);
    }
  }
  std::uint64_t checksum() const { return crc_; }

 private:
  FileWriter& file_;
  uLong crc_ = crc32_z(0, nullptr, 0);
};

void pack(Packer& packer, const EncodedText& text) {
  const TokenId largest = text.tokens.empty() ? 0 : *std::max_element(text.tokens.begin(), text.tokens.end());
  const std::size_t width = largest <= std::numeric_limits<std::uint16_t>::max() ? 2 : 4;
  packer.number(static_cast<std::uint64_t>(text.sentences()));
  packer.number(text.tokens.size());
  packer.number(width);
  packer.numbers(static_cast<std::size_t>(text.sentences()), 4,
                 [&](std::size_t i) { return text.length(static_cast<Index>(i)); });
  packer.numbers(text.tokens.size(), width, [&](std::size_t i) { return text.tokens[i]; });
}

/// Reads what a Packer wrote. Throws DataError where the file ends too early.
class Unpacker {
 public:
  explicit Unpacker(const std::filesystem::path& path) : file_(path) {}

  std::string text(std::size_t bytes) {
    require(bytes, 1);
    std::string result(bytes, '\0');
    read(result);
    return result;
  }
  std::uint64_t number(std::size_t bytes = 8) {
    std::string packed(bytes, '\0');
    read(packed);
    return unpacked(packed, 0, bytes);
  }
  template <class Take>
  void numbers(std::size_t count, std::size_t bytes, Take take) {
    require(count, bytes);
    std::string packed;
    for (std::size_t first = 0; first < count; first += kBlock) {
      const std::size_t size = std::min(kBlock, count - first);
      packed.resize(size * bytes);
      read(packed);
      for (std::size_t i = 0; i < size; ++i) take(unpacked(packed, i * bytes, bytes));
    }
  }
  std::uint64_t left() const { return file_.size() - at_; }
  /// Throws unless `count` numbers of so many bytes may follow, so that no damaged count allocates more than the file.
  void require(std::uint64_t count, std::uint64_t bytes) const {
    if (count > left() / bytes) throw DataError("it is cut or damaged");
  }
  std::uint64_t checksum() const { return crc_; }

 private:
  void read(std::string& to) {
    require(to.size(), 1);
    file_.read_at(at_, std::as_writable_bytes(std::span(to)));
    at_ += to.size();
    crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(to.data()), to.size());
  }
  static std::uint64_t unpacked(const std::string& packed, std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t b = 0; b < bytes; ++b) {
      value |= std::uint64_t{static_cast<unsigned char>(packed[at + b])} << (8 * b);
    }
    return value;
  }

  InputFile file_;
  std::uint64_t at_ = 0;
  uLong crc_ = crc32_z(0, nullptr, 0);
};

EncodedText unpack(Unpacker& unpacker) {
  const std::uint64_t sentences = unpacker.number(), tokens = unpacker.number(), width = unpacker.number();
  if (width != 2 && width != 4) throw DataError("it is damaged");
  unpacker.require(sentences, 4);
  unpacker.require(tokens, width);
  std::vector<Index> lengths;
  lengths.reserve(sentences);
  std::uint64_t rows = 0;
  unpacker.numbers(sentences, 4, [&](std::uint64_t n) {
    lengths.push_back(static_cast<Index>(n));
    rows += n;
  });
  if (rows != tokens) throw DataError("it is damaged");
  EncodedText text;
  text.rows = Ragged::of_lengths(lengths);
  text.tokens.reserve(tokens);
  unpacker.numbers(tokens, width, [&](std::uint64_t n) {
    if (n > static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max())) throw DataError("it is damaged");
    text.tokens.push_back(static_cast<TokenId>(n));
  });
  return text;
}

/// Whether a corpus is as large as its report says; one that was moved away is not.
bool agree(const EncodedCorpus& all) {
  const Index kept = all.report.kept;
  return all.corpus.size() == kept && all.corpus.source.sentences() == kept && all.corpus.target.sentences() == kept;
}

EncodedCorpus unpack_corpus(const std::filesystem::path& path, std::uint64_t key) {
  Unpacker unpacker(path);
  if (unpacker.text(kMagic.size()) != kMagic) throw DataError("it is no file of this kind");
  if (unpacker.number() != key) throw DataError("it belongs to another text");
  EncodedCorpus result;
  for (const auto count : kCounts) result.report.*count = static_cast<Index>(unpacker.number());
  result.report.short_lines.count = static_cast<Index>(unpacker.number());
  const std::uint64_t length = unpacker.number();
  result.report.short_lines.first = unpacker.text(length);
  result.corpus.source = unpack(unpacker);
  result.corpus.target = unpack(unpacker);
  const auto pairs = static_cast<std::size_t>(result.corpus.source.sentences());
  unpacker.require(pairs, 8);
  result.corpus.line.reserve(pairs);
  unpacker.numbers(pairs, 8, [&](std::uint64_t n) { result.corpus.line.push_back(static_cast<Index>(n)); });
  const std::uint64_t checksum = unpacker.checksum();
  if (unpacker.number() != checksum || unpacker.left() != 0) throw DataError("its checksum is wrong");
  if (!agree(result)) throw DataError("it is damaged");
  return result;
}

}  // namespace

void save_corpus(const std::filesystem::path& path, std::uint64_t key, const EncodedCorpus& corpus) {
  if (!agree(corpus))
    throw Error(fmt::format("{}: the corpus to be written is not the one of its report", path.string()));
  write_file_atomically(path, [&](FileWriter& file) {
    Packer packer(file);
    packer.text(kMagic);
    packer.number(key);
    for (const auto count : kCounts) packer.number(static_cast<std::uint64_t>(corpus.report.*count));
    packer.number(static_cast<std::uint64_t>(corpus.report.short_lines.count));
    packer.number(corpus.report.short_lines.first.size());
    packer.text(corpus.report.short_lines.first);
    pack(packer, corpus.corpus.source);
    pack(packer, corpus.corpus.target);
    packer.numbers(corpus.corpus.line.size(), 8, [&](std::size_t i) { return corpus.corpus.line[i]; });
    packer.number(packer.checksum());
  });
}

LoadedCorpus load_corpus(const std::filesystem::path& path, std::uint64_t key) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  try {
    return {unpack_corpus(path, key), ""};
  } catch (const DataError& problem) {
    return {std::nullopt, problem.what()};
  }
}

}  // namespace weft
