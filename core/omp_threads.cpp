#include "weft/core/omp_threads.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <system_error>

namespace weft {
namespace {

std::string_view variable() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  return text == nullptr ? std::string_view() : text;
}

}  // namespace

std::optional<int> parse_omp_threads(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  std::string_view first = text.substr(0, text.find(','));
  first.remove_prefix(std::min(first.find_first_not_of(kSpace), first.size()));
  first = first.substr(0, first.find_last_not_of(kSpace) + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), number);
  if (first.empty() || end != first.data() + first.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range && first.front() != '-') return std::numeric_limits<int>::max();
  return error == std::errc() && number >= 1 ? std::optional(number) : std::nullopt;
}

std::optional<int> omp_threads() { return parse_omp_threads(variable()); }

std::string omp_threads_problem() {
  const std::string_view text = variable();
  if (text.empty() || parse_omp_threads(text)) return "";
  return "OMP_NUM_THREADS is \"" + std::string(text) + "\", not a whole number of at least 1; it is not obeyed";
}

}  // namespace weft
