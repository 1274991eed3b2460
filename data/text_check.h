// What may be odd about text: one list of findings, each with how many lines show it and where the first of them are.
// Nothing here stops at a fault, and memory does not grow with the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// What can be found. Those up to kNoText are faults: training refuses such a text.
enum class Oddity {
  kUnreadable,
  kInvalidUtf8,
  kNul,
  kUnequalLines,
  kNoText,
  kByteOrderMark,
  kInnerByteOrderMark,
  kCarriageReturns,
  kLineSeparators,
  kControlCharacters,
  kSurplusBlankLines,
  kTooFewColumns,
  kSurplusColumns,
  kBothBlank,
  kSourceBlank,
  kTargetBlank,
  kTooLong,
  kUnevenLengths,
  kUnknownTokens,
  kEqualSides,
  kDuplicates,
  kPairInTraining,
  kSourceInTraining,
  kTargetInTraining,
};
inline constexpr std::size_t kOddities = static_cast<std::size_t>(Oddity::kTargetInTraining) + 1;

/// How an oddity is called in JSON, and what it means, in words that go before a number.
std::string_view name_of(Oddity oddity);
std::string_view meaning_of(Oddity oddity);

/// Whether training refuses a text with it.
constexpr bool is_fault(Oddity oddity) { return oddity <= Oddity::kNoText; }

/// Where something is.
struct Place {
  std::string file;
  Index line = 0;    ///< from 1; 0 for the file as a whole
  Index column = 0;  ///< in bytes, from 1; 0 for the line as a whole
  std::string note;  ///< more about it; often empty

  /// "FILE:LINE:COLUMN (NOTE)", as far as there are such.
  std::string text() const;
};

/// An oddity that was found.
struct Finding {
  Index count = 0;           ///< of lines
  std::vector<Place> first;  ///< the first few
};

/// Everything that was found in a text.
class Findings {
 public:
  /// Keeps the places of the first `limit` of each kind; at least 1.
  explicit Findings(Index limit) : limit_(static_cast<std::size_t>(limit)), all_(kOddities) {}

  void add(Oddity oddity, const std::string& file, Index line = 0, Index column = 0, std::string_view note = {});
  const Finding& operator[](Oddity oddity) const { return all_[static_cast<std::size_t>(oddity)]; }

 private:
  std::size_t limit_;
  std::vector<Finding> all_;
};

/// Reads a whole file and notes what is odd about its bytes and its lines alone: kUnreadable to kControlCharacters, but for
/// counts and blanks. Returns the number of lines; nothing if it cannot be read to its end, which is a finding too.
std::optional<Index> check_file(const std::string& name, Findings& findings);

}  // namespace weft
