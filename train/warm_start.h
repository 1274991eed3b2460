// Beginning with the parameters of another model, as far as they fit. Tensors
// are matched by name; rows that stand for tokens are matched by the tokens'
// text, so that the two vocabularies may differ.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/train/translation_model.h"

namespace weft {

/// Sets the parameters that `path` has too, and returns a report in lines: how
/// many, and each one that was not taken or in part only, with the reason.
/// Throws CheckpointError if the file is not a checkpoint.
std::vector<std::string> warm_start(TranslationModel& model, const std::filesystem::path& path,
                                    const Registry& registry);

}  // namespace weft
