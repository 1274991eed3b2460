// Any bytes as a file of text: plain, gzipped, and with columns.
#include <zlib.h>

#include "targets.h"
#include "weft/core/error.h"
#include "weft/data/parallel_reader.h"
#include "weft/data/text_check.h"
#include "weft/data/text_file.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

void check_line(const std::string& line) {
  fuzz_require(line.find('\n') == line.npos && !text_problem(line), "lines are UTF-8 without line ends and NUL");
  fuzz_require(line.size() <= kMostLineBytes, "no line is longer than the limit");
  fold_text(line);
  is_blank(line);
}

void run(const std::string& bytes) {
  const MemoryFile file(bytes);
  try {
    for (const std::string& line : read_lines(file.path())) check_line(line);
  } catch (const DataError&) {
  }
  Findings findings(2);
  check_file(file.path(), findings);
  try {
    const TextFiles columns[] = {{"", "", file.path(), 1, 3}};
    read_blocks(columns, [](const ParallelText& block) {
      fuzz_require(block.source.size() == block.target.size(), "pairs have two sides");
      for (const std::string& line : block.source) check_line(line);
    });
  } catch (const DataError&) {
  }
  Index replaced = 0;
  fuzz_require(!text_problem(replace_invalid_text(bytes, replaced)), "replaced text is valid");
}

std::string gzipped(const std::string& plain) {
  z_stream stream = {};
  constexpr int kGzip = 15 + 16;
  fuzz_require(deflateInit2(&stream, 9, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib begins");
  std::string packed(deflateBound(&stream, static_cast<uLong>(plain.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::vector<std::string> seeds() {
  const std::string tsv = "One.\tx\tUn.\nTwo.\tDeux.\n\"Three\t\"\tTrois\textra\r\n\n";
  return {"",
          tsv,
          "\xEF\xBB\xBFOne.\r\nTwo \xC3\xA9\xF0\x9F\x98\x80\xE2\x80\xA8.",
          "cut \xC3\n over \xC0\xAF\n surrogate \xED\xA0\x80\n above \xF4\x90\x80\x80\n",
          std::string("\xFF\xFEO\0n\0", 6),
          std::string("a\0b\n", 4),
          gzipped(tsv),
          gzipped("a\n") + gzipped("b\n") + std::string(20, '\0'),
          gzipped(std::string(20000, 'a'))};
}

}  // namespace

FuzzTarget fuzz_text() { return {"text", 2048, run, seeds}; }

}  // namespace weft
