// What a run is made from is none of what it removes or replaces as it begins.
#pragma once

#include <filesystem>

#include "weft/train/config.h"

namespace weft {

/// Throws ConfigError if a run that begins in `folder` would remove or replace its checkpoint to start from, a file of its
/// text or a subword model, or a link on the way to one; by whatever path it is named. A hard link to such a file is another
/// file. `fresh` says whether --fresh is what removes it. Throws Error if the system fails to look at a file.
void require_inputs_kept(const std::filesystem::path& folder, const Config& config, bool fresh);

}  // namespace weft
