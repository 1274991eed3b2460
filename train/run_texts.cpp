#include "weft/train/run_texts.h"

#include <fmt/format.h>

#include "weft/train/text_format.h"
#include "weft/train/validation_history.h"

namespace weft {

std::vector<std::string> small_vocabulary_warnings(const TranslationModel& model) {
  std::vector<std::string> lines;
  const DataConfig& data = model.config().data;
  if (!uses_subwords(data.tokenizer)) return lines;
  const auto check = [&](const char* side, const std::string& given, const Vocabulary& vocabulary) {
    if (!given.empty() || vocabulary.size() >= data.max_vocabulary) return;
    lines.push_back(fmt::format("warning: the {} text gives {} subwords, fewer than data.max_vocabulary ({})", side,
                                format_count(vocabulary.size()), format_count(data.max_vocabulary)));
  };
  if (data.shared_vocabulary) {
    check("training", data.subword_model, model.source_vocabulary());
  } else {
    check("source", data.source_subword_model, model.source_vocabulary());
    check("target", data.target_subword_model, model.target_vocabulary());
  }
  return lines;
}

std::string end_reason(TrainingEnd end, const TrainingState& state, const TrainingConfig& training) {
  if (end == TrainingEnd::kOutOfTime) {
    return fmt::format(" of {}: of its {:g} minutes not enough were left for another update and validation",
                       training.steps, training.minutes);
  }
  if (end != TrainingEnd::kOutOfPatience) return "";
  return fmt::format(" of {}: {} {} without a better {}", training.steps,
                     validations_without_better(state.validations, training.best_metric),
                     training.patience == 1 ? "validation" : "validations in a row", training.best_metric);
}

std::string repair_text(const TrainingState& state) {
  const auto counted = [](Index count, const char* thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
  };
  std::string text;
  if (state.skipped > 0) text = counted(state.skipped, "update") + " left out for numbers that were not finite; ";
  if (state.rollbacks > 0) text += "went back to a checkpoint " + counted(state.rollbacks, "time") + "; ";
  return text.empty() ? "" : text + "see log.jsonl";
}

}  // namespace weft
