// A text as the checks of data_check.h walk it: every line of every file, faults and all, as often as they like.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/core/threads.h"
#include "weft/data/parallel_text.h"
#include "weft/data/text_check.h"
#include "weft/data/text_files.h"

namespace weft {

/// The lines of a text. A line's number counts on from file to file; a line that is no pair has two empty sides, so that
/// numbers stay what they are. Where one of two files is longer, the text ends with the shorter one; where one cannot be
/// read, the pair of files has no lines.
class CheckedText {
 public:
  CheckedText(std::string split, std::vector<TextFiles> files) : split_(std::move(split)), files_(std::move(files)) {}
  /// Of a toy task, whose lines are in no file.
  CheckedText(std::string split, ParallelText text) : split_(std::move(split)), text_(std::move(text)) {}

  /// Notes what the files show, line by line and side by side; once, before anything else. Returns the names of the files.
  /// Throws DataError, before anything is read, if one is a pipe or a device.
  std::vector<std::string> scan(Findings& findings);

  Index lines() const { return lines_; }

  /// Hands out the lines in blocks, with the number of the first, from 0. Bytes that may not be in a text are U+FFFD.
  void read(FunctionRef<void(const ParallelText& block, Index first)> take) const;

  /// Whether a line is a pair.
  bool is_pair(Index line) const;

  /// The file and the number, from 1, of one side of a line.
  std::pair<std::string, Index> place(Index line, bool target = false) const;
  /// Notes an oddity there.
  void note(Oddity oddity, Index line, Findings& findings, bool target = false, std::string_view note = {}) const;

 private:
  void scan_pairs(const TextFiles& files, Findings& findings);

  std::string split_;
  std::vector<TextFiles> files_;
  ParallelText text_;             // of a toy task
  std::vector<Index> first_;      // the number of the first line of each of files_
  std::vector<bool> usable_;      // whether its pairs can be read
  std::vector<Index> not_pairs_;  // rising
  Index lines_ = 0;
};

}  // namespace weft
