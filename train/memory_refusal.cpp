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

/// How many lines of validations fit in beside the rest, or into half of the room if the rest does not fit by itself; all
/// where fewer would not help.
double fitting_lines(MemoryForecast forecast, Index room) {
  const TranslationBytes all = std::exchange(forecast.validation, {0, 0, forecast.validation.count});
  const auto lines = static_cast<double>(forecast.validation_lines), block = static_cast<double>(all.block);
  double spare = static_cast<double>(room - forecast.to_come());
  if (spare <= 0) spare = forecast.room_for_work(room) / 2;
  if (lines <= 1 || spare <= 0 || static_cast<double>(all.kept) + block <= spare) return lines;
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

/// A length of positions that is enough for the training text, if the model has more; otherwise 0.
Index enough_positions(const Config& config) {
  const Index enough = config.data.max_length + 1;
  return config.model.max_length > enough ? enough : 0;
}

std::string lower(const char* key, Index from, Index to) {
  return fmt::format("lower {} from {} to {}", key, from, to);
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
  // The rest is for texts, updates and validations; the program is in a budget, and taken already from what is left.
  const Index half = (least.bytes - (config.training.memory.empty() ? 0 : kProgramBytes)) / 2;
  TransformerOptions options = model.transformer().options();
  const Index d_model = fitting_d_model(config, options, registry, half), positions = enough_positions(config);
  std::string mend = d_model > 0 ? lower("model.d_model", config.model.d_model, d_model) + ", or use fewer layers"
                                 : "use a smaller vocabulary, smaller layers and fewer of them";
  options.max_length = positions;
  if (half <= 0) mend = fmt::format("allow more: the program alone takes {}", format_bytes(kProgramBytes));
  if (positions > 0 && state_bytes(config.training, config.optimizer, parameters_of(options, registry)) <= half) {
    mend = lower("model.max_length", config.model.max_length, positions);
  }
  refuse(
      fmt::format("a model of {} parameters, with gradients and optimizer,", format_count(model.parameters().count())),
      needed, least, mend);
}

std::string mend_of_least(const MemoryForecast& least, const Config& config, Index room) {
  if (const Index validation = least.validation.bytes();
      least.to_come() - validation <= room && 4 * validation > room) {
    return fmt::format(
        "lower training.validation_sentences or shorten the validation text's longest lines: to translate and score it "
        "takes {}",
        format_bytes(validation));
  }
  MemoryForecast rest = least;
  rest.state = 0;
  rest.update = {};
  if (rest.to_come() > room)
    return fmt::format("allow more: program and texts alone take {}", format_bytes(rest.to_come()));
  constexpr double kFew = 64;
  const double rows = (least.room_for_work(room) - least.update.fixed) / std::max(least.update.row, 1.0);
  if (rows >= kFew) {
    const Index length = std::min(config.data.max_length, least.longest_rows);
    return fmt::format(
        "its longest pair has {} tokens; {}", least.longest_rows,
        lower("data.max_length", config.data.max_length,
              rounded_down(static_cast<double>(length) * rows / static_cast<double>(2 * least.longest_rows))));
  }
  const Index whole = config.model.d_model, heads = config.model.heads;
  const auto tables = 2 * static_cast<double>(config.model.max_length * whole) * sizeof(real);  // of the positions
  if (const Index positions = enough_positions(config);
      positions > 0 && 2 * tables > static_cast<double>(least.state) + least.work()) {
    return lower("model.max_length", config.model.max_length, positions);
  }
  const auto fits = [&](Index d_model) {
    const double share = static_cast<double>(d_model) / static_cast<double>(whole);
    MemoryForecast smaller = least;
    smaller.state = static_cast<Index>(static_cast<double>(least.state) * share);
    // Of an update that there was no room to measure: half as much as the state.
    smaller.update.fixed = least.work() > 0 ? least.update.fixed * share : static_cast<double>(smaller.state) / 2;
    return smaller.to_come() <= room;
  };
  Index d_model = whole - heads;
  while (d_model > 0 && !fits(d_model)) d_model -= heads;
  if (d_model > 0) return lower("model.d_model", whole, d_model);
  return fmt::format("use fewer layers, smaller ones or shorter pairs; the longest has {} tokens", least.longest_rows);
}

void require_room(const MemoryForecast& all, const Config& config, const MemoryRoom& room) {
  const TrainingConfig& training = config.training;
  MemoryForecast forecast = all;
  MemoryRoom least = room, limit = room;  // what is left, and what of it is said
  Index needed = forecast.to_come();
  if (!training.memory.empty()) {
    const Index budget = parse_bytes(training.memory).value(), taken = forecast.process + forecast.held;
    MemoryForecast validation = forecast;
    validation.update = {};  // the batch was chosen to fit into it
    if (validation.to_come() > budget - taken && budget - taken < room.bytes) {
      forecast = validation;
      least.bytes = budget - taken;
      limit = {budget, "allowed by training.memory"};
      needed = taken + forecast.to_come();
    }
  }
  const double work = forecast.room_for_work(least.bytes), update = forecast.update.at(forecast.largest_rows),
               loss = static_cast<double>(forecast.loss.bytes), decoding = static_cast<double>(forecast.decoding.bytes);
  if (const auto [kept, block, count] = forecast.validation;
      forecast.to_come() > least.bytes && forecast.to_come() - count <= least.bytes && count > kept + block) {
    refuse("scoring the longest lines of the validation text", needed, limit,
           fmt::format("shorten them or leave them out: they alone take {}", format_bytes(count)));
  }
  if (const double lines = fitting_lines(forecast, least.bytes);
      lines < static_cast<double>(forecast.validation_lines)) {
    refuse(fmt::format("a run that translates {} lines at a validation", format_count(forecast.validation_lines)),
           needed, limit,
           fmt::format("lower training.validation_sentences from {} to {}", forecast.validation_lines,
                       rounded_down(lines)));
  }
  const auto scaled = [](Index value, double share) { return rounded_down(static_cast<double>(value) * share); };
  // A pair or line that is longer than a batch fits into no other model.
  const auto refuse_validation = [&](const std::string& what, const ValidationForecast& batch, const char* key,
                                     Index batch_tokens) {
    const double share = work / static_cast<double>(batch.bytes);
    if (batch.rows <= batch_tokens) {
      refuse(what, needed, limit, fmt::format("lower {} from {} to {}", key, batch_tokens, scaled(batch.rows, share)));
    }
    const Index length = config.model.max_length;
    refuse(what, needed, limit,
           fmt::format("its longest line has {} tokens; leave it out or lower model.max_length from {} to {}",
                       batch.rows, length, scaled(std::min(length, batch.rows), share / 2)));
  };
  if (loss > work && loss >= std::max(update, decoding)) {
    refuse_validation("the loss of a validation", forecast.loss, "training.batch_tokens", training.batch_tokens);
  }
  if (decoding > work && decoding >= update) {
    refuse_validation("translating at a validation", forecast.decoding, "decoding.batch_tokens",
                      config.decoding.batch_tokens);
  }
  if (work > 0 && update <= work) return;  // without room for the state, no update was measured
  const double rows = (work - forecast.update.fixed) / std::max(forecast.update.row, 1.0);
  const std::string what = fmt::format("an update of {} tokens", format_count(forecast.largest_rows));
  if (rows >= static_cast<double>(forecast.longest_rows)) {
    refuse(what, needed, limit,
           fmt::format("lower training.batch_tokens from {} to {}", training.batch_tokens,
                       scaled(std::min(training.batch_tokens, forecast.largest_rows),
                              rows / static_cast<double>(forecast.largest_rows))));
  }
  MemoryForecast longest = forecast;
  longest.largest_rows = forecast.longest_rows;
  longest.loss = longest.decoding = {};
  refuse(what, needed, limit, mend_of_least(longest, config, least.bytes));
}

}  // namespace weft
