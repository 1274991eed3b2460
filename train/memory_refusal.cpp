#include "weft/train/memory_refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "weft/core/error.h"
#include "weft/train/memory_budget.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

/// How many lines of validations fit in beside the rest, or into half of the room if the rest does not fit by itself.
double fitting_lines(MemoryForecast forecast, Index room) {
  const TranslationBytes all = std::exchange(forecast.validation, {});
  const auto lines = static_cast<double>(forecast.validation_lines), block = static_cast<double>(all.block);
  double spare = static_cast<double>(room - forecast.to_come());
  if (spare <= 0) spare = forecast.room_for_work(room) / 2;
  if (static_cast<double>(all.bytes()) <= spare) return lines;
  const double at_once = std::min(lines, static_cast<double>(kLinesAtOnce)),
               kept = static_cast<double>(all.kept) / lines;
  return std::max((spare - block) / kept, spare / (kept + block / at_once));
}

/// A whole number below `value` by what the pool's size classes may make of it, of two digits and zeros; at least 1.
Index rounded_down(double value) {
  value = std::max(1.0, 0.85 * value);
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(value)) - 1));
  return static_cast<Index>(std::floor(value / unit) * unit);
}

/// How many numbers the parameters of such a model are; the most there is for one that cannot be made.
Index parameters_of(const TransformerOptions& options, const Registry& registry) {
  try {
    ParameterSet parameters;
    const Transformer model(parameters, options, registry);
    return parameters.size();
  } catch (const Error&) {
    return std::numeric_limits<Index>::max() / 64;
  }
}

/// The largest model.d_model below that of the options whose state fits; 0 if none does.
Index fitting_d_model(const Config& config, TransformerOptions options, const Registry& registry, Index room) {
  Index fits = 0, fails = options.d_model / options.heads;  // in multiples of heads
  while (fails - fits > 1) {
    const Index middle = fits + (fails - fits) / 2;
    options.d_model = middle * options.heads;
    (state_bytes(config.training, config.optimizer, parameters_of(options, registry)) <= room ? fits : fails) = middle;
  }
  return fits * options.heads;
}

[[noreturn]] void refuse(const std::string& what, Index needed, const MemoryRoom& room, const std::string& mend) {
  throw ConfigError(fmt::format("{} would take {} of memory; {} {}; {}", what, format_bytes(needed),
                                format_bytes(room.bytes), room.limit, mend));
}

}  // namespace

void require_room_for_model(TranslationModel& model, const Registry& registry, const MemoryRoom& room) {
  const Config& config = model.config();
  const Index needed = state_bytes(config.training, config.optimizer, model.parameters().size());
  MemoryRoom least = room;
  if (!config.training.memory.empty()) {
    const Index budget = parse_bytes(config.training.memory).value();
    if (budget > room.bytes) {
      throw ConfigError(fmt::format("training.memory is {}; {} {}: lower it", config.training.memory,
                                    format_bytes(room.bytes), room.limit));
    }
    least = {budget, "allowed by training.memory"};
  }
  if (needed <= least.bytes) return;
  const Index d_model = fitting_d_model(config, model.transformer().options(), registry, least.bytes / 2);
  refuse(
      fmt::format("a model of {} parameters, with gradients and optimizer,", format_count(model.parameters().count())),
      needed, least,
      d_model > 0 ? fmt::format("lower model.d_model from {} to {}, or use fewer layers", config.model.d_model, d_model)
                  : "use a smaller vocabulary, smaller layers and fewer of them");
}

void require_room(const MemoryForecast& forecast, const Config& config, const MemoryRoom& room) {
  const TrainingConfig& training = config.training;
  double work = forecast.room_for_work(room.bytes);
  MemoryRoom least = room;
  Index needed = forecast.to_come();
  const double update = forecast.update.at(forecast.largest_rows),
               decoding = static_cast<double>(forecast.decoding.bytes);
  if (!training.memory.empty()) {  // the batch was chosen to fit into it
    const Index budget = parse_bytes(training.memory).value();
    const double allowed = forecast.room_for_work(budget - forecast.process - forecast.held);
    if (decoding > allowed && decoding >= update && decoding <= work) {
      work = allowed;
      needed = forecast.process + forecast.held + forecast.to_come();
      least = {budget, "allowed by training.memory"};
    }
  }
  if (const double lines = fitting_lines(forecast, room.bytes);
      lines < static_cast<double>(forecast.validation_lines)) {
    refuse(fmt::format("a run that translates {} lines at a validation", format_count(forecast.validation_lines)),
           forecast.to_come(), room,
           fmt::format("lower training.validation_sentences from {} to {}", forecast.validation_lines,
                       rounded_down(lines)));
  }
  const auto scaled = [](Index value, double share) { return rounded_down(static_cast<double>(value) * share); };
  if (decoding > work && decoding >= update) {
    refuse("translating at a validation", needed, least,
           fmt::format("lower decoding.batch_tokens from {} to {}", config.decoding.batch_tokens,
                       scaled(std::min(config.decoding.batch_tokens, forecast.decoding.rows), work / decoding)));
  }
  if (work > 0 && update <= work) return;  // without room for the state, no update was measured
  const double rows = (work - forecast.update.fixed) / std::max(forecast.update.row, 1.0);
  const std::string what = fmt::format("an update of {} tokens", format_count(forecast.largest_rows));
  if (rows >= static_cast<double>(forecast.longest_rows)) {
    refuse(what, needed, least,
           fmt::format("lower training.batch_tokens from {} to {}", training.batch_tokens,
                       scaled(std::min(training.batch_tokens, forecast.largest_rows),
                              rows / static_cast<double>(forecast.largest_rows))));
  }
  refuse(what, needed, least,
         rows < 64 ? fmt::format("lower model.d_model from {} or the number of layers", config.model.d_model)
                   : fmt::format("its longest pair has {} tokens; lower data.max_length from {} to {}",
                                 forecast.longest_rows, config.data.max_length,
                                 scaled(std::min(config.data.max_length, forecast.longest_rows),
                                        rows / static_cast<double>(2 * forecast.longest_rows))));
}

}  // namespace weft
