// The command that takes a training run up again.
#pragma once

#include <string>

#include "weft/train/arguments.h"

namespace weft {

/// The words of the command line that bear on the run, as a shell takes them.
std::string same_command(const Arguments& arguments);

}  // namespace weft
