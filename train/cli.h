// The whole command line as a library call, so that a program with layers of its own has all of it.
#pragma once

#include "weft/nn/registry.h"

namespace weft {

/// Runs the command line `weft VERB ...` with the layers that `registry` knows; returns the exit code: 0 for success, 2
/// for what the user can mend (usage, configuration, text, checkpoint), 1 for what failed while running, 128 plus the
/// signal's number for a training run that a signal stopped. Any other verb dies of the signal, and leaves nothing half
/// written. Errors are one line each on standard error, whatever bytes the names in them have, but for the problems
/// of a configuration and the report of a run that diverged. Output that cannot be written, to a full device or a closed pipe, is an error too, of which training tells when all is done and saved.
int run(int argc, const char* const* argv, const Registry& registry);

}  // namespace weft
