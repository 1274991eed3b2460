// How fast a model trains: whole updates on synthetic batches, against what the machine could do at best.
#pragma once

#include <memory>
#include <vector>

#include "weft/autograd/op_profile.h"
#include "weft/train/translation_model.h"

namespace weft {

/// A model with vocabularies of made-up words, of the size that the config's section "bench" says.
std::unique_ptr<TranslationModel> make_bench_model(const Config& config, const Registry& registry);

/// How long to measure.
struct BenchStepOptions {
  Index rounds = 10;           ///< times that are measured; results are medians
  double round_seconds = 0.5;  ///< least time of a round
  bool profile = false;        ///< whether to note where the time goes
};

/// What was measured. A step is an update: forward, backward, clipping, optimizer.
struct BenchStepResult {
  Index batches = 0;                    ///< of a pass; a round makes whole passes
  double target_tokens = 0;             ///< of a step, mean over the batches, as all that follows
  double step_seconds = 0;              ///< median over the rounds
  double step_flops = 0;                ///< of all matrix products
  double peak_flops = 0;                ///< of the machine, in operations a second, measured before and after
  Index peak_bytes = 0;                 ///< tensor memory at its most, with parameters and the optimizer's state
  Index peak_resident_bytes = 0;        ///< of the whole process
  double heap_allocations = 0;          ///< of tensor memory, a step
  std::vector<OpProfile::Row> profile;  ///< of a step, by falling time

  double tokens_per_second() const { return target_tokens / step_seconds; }
  double flops_per_second() const { return step_flops / step_seconds; }
  double share_of_peak() const { return flops_per_second() / peak_flops; }
};

/// Trains on the batches of make_bench_batches.
BenchStepResult bench_step(TranslationModel& model, const BenchStepOptions& options);

}  // namespace weft
