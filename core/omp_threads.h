// What the environment variable OMP_NUM_THREADS asks for. Weft has no OpenMP; it obeys the variable because people set it to
// keep programs from taking all cores.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// The number of threads that the text of OMP_NUM_THREADS asks for: a whole number of at least 1, or the first one of a list,
/// as OpenMP reads it. Nothing for any other text.
std::optional<int> parse_omp_threads(std::string_view text);

/// That of the variable; nothing if it is not set, empty, or wrong.
std::optional<int> omp_threads();

/// What is wrong with the variable, in words; empty if nothing is.
std::string omp_threads_problem();

}  // namespace weft
