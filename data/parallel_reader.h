// Sentence pairs read from files a block at a time, so that no text need be held whole. The pairs and their order are
// those of the files; a pair never takes its sides from different lines.
#pragma once

#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/threads.h"
#include "weft/data/parallel_text.h"
#include "weft/data/text_file.h"
#include "weft/data/text_files.h"

namespace weft {

/// Reads the pairs of one TextFiles as they stand, whatever bytes they hold. In a TSV file no quote mark means anything,
/// and columns beyond the two that are asked for do not matter.
class PairReader {
 public:
  /// Throws DataError if a file cannot be opened.
  explicit PairReader(const TextFiles& files);

  /// What a line of the files turned out to be; nothing at their end.
  enum class Found { kPair, kSourceAlone, kTargetAlone, kTooFewColumns, kNothing };

  /// Reads the next line. Throws DataError if a file cannot be read or is UTF-16.
  Found next();

  /// The sides of the line; empty where it has none. Valid until the next call.
  std::string_view source() const { return source_; }
  std::string_view target() const { return target_; }
  /// The number of the line, from 1, the same in both files.
  Index line() const { return line_; }
  /// How many columns the line has; 1 in files that are not TSV.
  Index columns() const;
  /// What of that line may not be in a text, as "FILE:LINE:BYTE: WHAT"; empty if it is valid UTF-8 without NUL.
  std::string problem() const;
  const TextFiles& files() const { return files_; }

 private:
  struct File {
    std::string name;
    std::unique_ptr<std::istream> stream;
    LineReader reader;
    std::string line;
    bool more = true;  // as far as is known
  };

  TextFiles files_;
  std::vector<File> open_;
  std::string_view source_, target_;
  Index line_ = 0;
};

/// How many lines of TSV files lacked a column, and where the first is.
struct ShortLines {
  Index count = 0;
  std::string first;  ///< "FILE:LINE"
};

/// The pairs in a block, and the bytes of text with which one ends before that, as a small gzipped file may hold long lines;
/// what stays in memory of a text that is read.
inline constexpr Index kBlockPairs = 1 << 18;
inline constexpr std::size_t kBlockBytes = std::size_t{32} << 20;

/// Reads all pairs of the texts in turn and hands them out in blocks of kBlockPairs pairs, those of kBlockBytes and more and
/// the last smaller; nothing may depend on where a block ends. Blank lines at the end of a file that its partner lacks are
/// left out, blank lines elsewhere stay; lines of a TSV file with too few columns are left out and counted in the result.
/// Throws DataError as read_lines does, also where memory ends in `take`, and if the line counts of two files differ, if a
/// side of a text is blank throughout, or if no line of a TSV file has the columns.
ShortLines read_blocks(std::span<const TextFiles> texts, FunctionRef<void(const ParallelText& block)> take);

}  // namespace weft
