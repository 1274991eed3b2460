// The terminal behind a stream.
#pragma once

#include <cstdio>

#include "weft/core/types.h"

namespace weft {

/// Whether a line there can be drawn anew: a terminal, and no "dumb" one, like an editor's shell window.
bool can_redraw(std::FILE* out);

/// Columns of the terminal, 80 if it does not say. To be asked anew for each line, since windows change.
Index terminal_width(std::FILE* out);

}  // namespace weft
