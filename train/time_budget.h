// A run that fits into a given time: how long its parts take, measured before the first update, and how many updates that
// leaves room for. The measuring leaves no trace, so that a run of as many steps, told so, makes the same updates.
#pragma once

#include <functional>
#include <string>

#include "weft/train/trainer.h"

namespace weft {

/// How long the parts of a run take.
struct Pace {
  double update_seconds = 0;
  double validation_seconds = 0;  ///< with what is saved after it
};

/// The time of an update at the beginning of training, measured within about `seconds`. The model's parameters are as
/// before afterwards.
double measure_update(TranslationModel& model, const Corpus& corpus, double seconds);

/// The share of an update in making the text of an epoch anew, if `text_of_epoch` does that.
double measure_epoch(const TranslationModel& model, const std::function<Corpus(Index epoch)>& text_of_epoch);

/// The time of a validation, loss and translations of the lines, and about that of saving after it.
double measure_validation(TranslationModel& model, const Corpus& valid, const ParallelText& lines);

/// How many updates fit into the time with their validations, one every `validate_every` and one at the end; at least 1, at
/// most `most`.
Index updates_within(double seconds, const Pace& pace, Index validate_every, Index most);

/// Sets the number of steps so that the run ends within its minutes, counted from `began` on; returns a line that says so.
/// `epoch_share` is that of measure_epoch(), `validation_seconds` that of measure_validation().
std::string choose_steps(TranslationModel& model, Config& config, const Corpus& corpus, double epoch_share,
                         double validation_seconds, double began);

}  // namespace weft
