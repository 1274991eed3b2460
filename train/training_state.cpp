#include "weft/train/training_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "weft/core/c_locale.h"
#include "weft/core/error.h"
#include "weft/train/json_text.h"
#include "weft/train/validation_history.h"

namespace weft {
namespace {

using ReadJson = nlohmann::json;  // finds its keys in a tree: the time for a text does not grow with its square

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

double number(const ReadJson& json, const char* key) {
  return json.at(key).is_null() ? kNotANumber : json.at(key).get<double>();
}

/// Throws for values that are deeper, or more for the length of the text, than training_json() ever writes them, of which
/// each takes ten bytes or more: that bounds the memory that reading takes, however long a run's history is.
void require_modest(const std::string& text, const std::string& file) {
  constexpr int kDeepest = 3;
  constexpr std::size_t kLeastBytes = 8, kAnyText = 1000;
  const char* problem = nullptr;
  std::size_t values = 0;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size() && problem == nullptr; ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
      continue;
    }
    const bool opens = c == '{' || c == '[';
    depth += opens ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (depth > kDeepest) problem = "is nested too deeply";
    if ((opens || c == ',') && ++values > kAnyText + text.size() / kLeastBytes) problem = "has too many values";
  }
  if (problem == nullptr) return;
  throw CheckpointError(
      fmt::format("{}: its metadata are not those of a checkpoint (weft.training {})", file, problem));
}

ReadJson parse_training(const std::string& text, const std::string& file) {
  require_modest(text, file);
  const CLocale for_fractions;
  return ReadJson::parse(text);
}

TrainingState to_state(const ReadJson& json, const std::string& file) {
  const auto whole = [&file](const ReadJson& parent, const char* key, auto most) {
    const ReadJson& value = parent.at(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
      throw CheckpointError(fmt::format("{}: weft.training: {} is {}; must be a whole number from 0 to {}", file, key,
                                        value.is_number() ? value.dump() : value.type_name(), most));
    }
    return value.get<decltype(most)>();
  };
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  constexpr Index kMost = Index{1} << 53;  // sums of two are an Index still
  const Index step = whole(json, "step", kMost);
  TrainingState state{.step = step,
                      .epoch = whole(json, "epoch", kMost),
                      .next_batch = whole(json, "next_batch", kMost),
                      .loss_sum = number(json, "loss_sum"),
                      .loss_tokens = whole(json, "loss_tokens", kMost),
                      .validations = {},
                      .best_step = whole(json, "best_step", step),
                      .out_of_time = json.value("out_of_time", false),  // older checkpoints have none
                      .held_out_hash = json.contains("held_out_hash") ? whole(json, "held_out_hash", kAny) : 0,
                      .data_hash = whole(json, "data_hash", kAny)};
  if (json.contains("file_hashes")) {
    for (const ReadJson& hash : json.at("file_hashes")) {
      state.file_hashes.push_back(whole(ReadJson{{"file_hashes", hash}}, "file_hashes", kAny));
    }
  }
  if (json.contains("mean_loss")) {  // older checkpoints lack these
    state.loss_watch = {number(json, "mean_loss"), number(json, "least_mean_loss"), whole(json, "loss_above", kMost)};
    state.explosions = whole(json, "explosions", kMost);
    state.skipped = whole(json, "skipped", kMost);
    state.skipped_in_row = whole(json, "skipped_in_row", kMost);
    state.good_step = whole(json, "good_step", step);
    state.rollbacks = whole(json, "rollbacks", kMost);
  } else {
    state.good_step = step;
  }
  for (const ReadJson& v : json.at("validations")) {
    const double loss = number(v, "loss"), perplexity = number(v, "perplexity");  // which JSON cannot say if infinite
    state.validations.push_back({whole(v, "step", step), loss, std::isnan(perplexity) ? std::exp(loss) : perplexity,
                                 number(v, "token_accuracy"), number(v, "exact_match"), number(v, "bleu"),
                                 v.contains("chrf") ? number(v, "chrf") : kNotANumber});  // earlier versions lack it
  }
  return state;
}

}  // namespace

double best_score(const TrainingState& state, const std::string& metric) {
  for (const ValidationEntry& v : state.validations) {
    if (v.step == state.best_step) return score_of(v, metric);
  }
  return kNotANumber;
}

std::string training_json(const TrainingState& state) {
  std::string validations;
  for (const ValidationEntry& v : state.validations) {
    if (!validations.empty()) validations += ',';
    validations += fmt::format(R"({{"step":{},{}}})", v.step, json_scores(v));
  }
  return fmt::format(
      R"({{"step":{},"epoch":{},"next_batch":{},"loss_sum":{},"loss_tokens":{},"best_step":{},"out_of_time":{},)"
      R"("held_out_hash":{},"data_hash":{},"file_hashes":[{}],"mean_loss":{},"least_mean_loss":{},"loss_above":{},)"
      R"("explosions":{},"skipped":{},"skipped_in_row":{},"good_step":{},"rollbacks":{},"validations":[{}]}})",
      state.step, state.epoch, state.next_batch, json_number(state.loss_sum), state.loss_tokens, state.best_step,
      state.out_of_time, state.held_out_hash, state.data_hash, fmt::join(state.file_hashes, ","),
      json_number(state.loss_watch.mean), json_number(state.loss_watch.least), state.loss_watch.above, state.explosions,
      state.skipped, state.skipped_in_row, state.good_step, state.rollbacks, validations);
}

TrainingState parse_training_state(const std::string& text, const std::string& file) {
  return to_state(parse_training(text, file), file);
}

}  // namespace weft
