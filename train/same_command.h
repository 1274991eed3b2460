// The commands that take a training run up again, and that begin a longer one from it.
#pragma once

#include <filesystem>
#include <string>

#include "weft/train/arguments.h"
#include "weft/train/config.h"

namespace weft {

/// The name of this program as a word that a shell takes: weft, unless it is another's with layers of its own.
std::string program_name();

/// A path as a word that a shell takes and that is no option: quoted where need be. One that cannot be printed as it is, for
/// control characters or as it is not UTF-8, is written as $'...', which Bash and its like take.
std::string shell_path(const std::filesystem::path& path);

/// The words of the command line that bear on the run, as a shell takes them.
std::string same_command(const Arguments& arguments);

/// Throws ConfigError as require_same_config() does. Where steps or minutes alone differ, it gives the command that begins a
/// run of the other length from this one's last parameters, in a folder beside it that is not there yet.
void require_same_run(const Config& before, const Config& now, const std::filesystem::path& folder,
                      const Arguments& arguments);

}  // namespace weft
