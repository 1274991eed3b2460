// Unicode data comes from utf8proc, but for the few properties that it lacks.
#include "weft/data/lower_case.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr char32_t kDottedCapitalI = 0x130, kCombiningDot = 0x307;
constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;

// Other_Lowercase and Other_Uppercase, without what is case-ignorable besides: ordinals, Roman numerals and
// letters in circles or boxes.
constexpr CodePointRange kOtherCased[] = {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2160, 0x217F},  {0x24B6, 0x24E9},
                                          {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

// Word_Break = MidLetter, MidNumLet or Single_Quote.
constexpr char32_t kWithinWords[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                     0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};

utf8proc_category_t general_category(char32_t value) {
  if (value == kInvalidCodePoint) return UTF8PROC_CATEGORY_CN;
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool is_cased(char32_t value) {
  switch (general_category(value)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
      return true;
    default:
      return in_ranges(kOtherCased, value);
  }
}

bool is_case_ignorable(char32_t value) {
  switch (general_category(value)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::find(std::begin(kWithinWords), std::end(kWithinWords), value) != std::end(kWithinWords);
  }
}

/// Whether a cased letter stands next to a place, looking over what is case-ignorable.
template <class Iterator>
bool next_is_cased(Iterator from, Iterator end) {
  const auto found = std::find_if_not(from, end, [](const CodePoint& point) { return is_case_ignorable(point.value); });
  return found != end && is_cased(found->value);
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::vector<CodePoint> points;
  for (std::size_t at = 0; at < text.size(); at += points.back().length) points.push_back(code_point_at(text, at));

  std::string lower;
  lower.reserve(text.size());
  std::size_t at = 0;
  for (auto point = points.cbegin(); point != points.cend(); at += point->length, ++point) {
    if (point->value == kInvalidCodePoint) {
      lower += text[at];
    } else if (point->value == kDottedCapitalI) {
      append_code_point(lower, U'i');
      append_code_point(lower, kCombiningDot);
    } else if (point->value == kCapitalSigma) {
      const bool after = next_is_cased(std::make_reverse_iterator(point), points.crend());
      const bool before = next_is_cased(std::next(point), points.cend());
      append_code_point(lower, after && !before ? kFinalSigma : kSmallSigma);
    } else {
      append_code_point(lower, to_lower(point->value));
    }
  }
  return lower;
}

}  // namespace weft
