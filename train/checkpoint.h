// Checkpoints: one safetensors file each, with the weights under their dotted names and everything else in the metadata, so
// that a checkpoint needs no other file. Writing replaces the file whole or not at all. The same model and state always
// give the same bytes: no time or place is in it.
//
// Metadata: "weft.format" ("1"), "weft.config" (resolved JSON), "weft.source_vocabulary" and "weft.target_vocabulary"
// (JSON arrays) or, with a tokenizer of subwords, "weft.source_subwords" and "weft.target_subwords" (the bytes of the .model
// files in base64; the latter is left out if it is the same), "weft.training" (JSON: where training stood), "weft.step",
// "weft.seed", "weft.best_score".
// Tensors: the parameters; with an optimizer also "optimizer.<state>", flat, in the order of ParameterSet::values(), and
// likewise the moving average of the parameters, "average.values", if there is one.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "weft/optim/optimizer.h"
#include "weft/train/training_state.h"
#include "weft/train/translation_model.h"

namespace weft {

/// Throws ConfigError if vocabularies are too long for the header of a checkpoint.
void require_room_in_header(const Vocabulary& source, const Vocabulary& target);

/// Writes a checkpoint, with the optimizer's state unless `optimizer` is null, and the parameters' moving average unless it
/// is empty. Throws Error, and writes nothing, if any of their numbers is not finite.
void save_checkpoint(const std::filesystem::path& path, TranslationModel& model, const TrainingState& state,
                     Optimizer* optimizer, std::span<const real> average = {});

/// What a checkpoint holds, without the optimizer's state.
struct Checkpoint {
  std::unique_ptr<TranslationModel> model;
  TrainingState state;
};

/// Whether the parameters of a checkpoint may be NaN or infinite, as only those may that are shown and not used.
enum class Numbers { kFinite, kAny };

/// Reads a checkpoint back. Throws CheckpointError if it is missing, damaged, not of Weft, or holds other numbers than
/// it may; ConfigError if it names a layer that the registry does not know.
Checkpoint load_checkpoint(const std::filesystem::path& path, const Registry& registry,
                           Numbers numbers = Numbers::kFinite);

/// Reads where training stood at a checkpoint. Throws CheckpointError as load_checkpoint does.
TrainingState load_state(const std::filesystem::path& path);

/// Reads the parameters of a checkpoint into a model of the same configuration. Throws CheckpointError if they do not
/// fit or are not finite.
void load_parameters(const std::filesystem::path& path, TranslationModel& model);

/// Throws CheckpointError unless a checkpoint has what training of this model goes on with beside the parameters:
/// the optimizer's state and, with training.ema_decay, the moving average.
void require_training_tensors(const std::filesystem::path& path, TranslationModel& model);

/// Reads the optimizer's state of a checkpoint. Throws CheckpointError if it has none, another kind, or one not finite.
void load_optimizer(const std::filesystem::path& path, Optimizer& optimizer);

/// Reads the moving average of a checkpoint. Throws CheckpointError if it has none of that size, or one not finite.
void load_average(const std::filesystem::path& path, std::span<real> average);

}  // namespace weft
