// Learning rates as pure functions of the update number, and for one schedule of the validations so far: nothing else is
// saved, so a resumed run cannot jump or start over.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/core/types.h"

namespace weft {

/// What a schedule is made of.
struct ScheduleOptions {
  std::string name = "noam";  ///< one of schedule_names()
  Index warmup_steps = 4000;  ///< updates of the rise from 0; 0 for none
  Index steps = 100000;       ///< the update at which cosine and linear reach their end and stay there
  double peak = 1.0;          ///< highest rate; for noam the factor before d_model^-0.5
  double final_ratio = 0.0;   ///< last rate of cosine and linear, lowest of plateau, as a part of the peak
  Index d_model = 512;        ///< used by noam alone
  double factor = 0.5;        ///< used by plateau alone
  Index plateaus = 0;         ///< how many there have been, by validations before the update; used by plateau alone
};

/// The names that a schedule may have: constant, noam, inverse_sqrt, cosine, linear, plateau.
std::span<const std::string_view> schedule_names();

/// Returns the learning rate of update n, counted from 1; with w = warmup_steps and p = (n - w) / (steps -
/// w), at most 1:
///
///   noam          peak d_model^-0.5 min(n^-0.5, n w^-1.5)
///   all others    peak n / w while n < w, and from n = w on
///   constant      peak
///   inverse_sqrt  peak (max(w, 1) / n)^0.5
///   cosine        peak (f + (1 - f) (1 + cos(pi p)) / 2) with f = final_ratio
///   linear        peak (f + (1 - f) (1 - p))
///   plateau       peak max(f, factor^plateaus), the rise n / w too
///
/// Throws ConfigError if the name is unknown. Sources: Vaswani et al. 2017, "Attention is all you need",
/// section 5.3 (noam); Loshchilov and Hutter 2017, "SGDR", equation 5 without restarts (cosine).
double learning_rate(const ScheduleOptions& options, Index update);

}  // namespace weft
