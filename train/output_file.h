// Where a verb's output goes: a file that is replaced whole or not at all, or at once to standard output, a pipe or a device.
#pragma once

#include <string>

#include "weft/core/threads.h"

namespace weft {

/// Takes the next part of an output.
using PutText = FunctionRef<void(const std::string&)>;

/// Calls `write` with a function that takes the output's text, part by part. With an empty path the parts go to standard
/// output as they come; likewise to a path that is a pipe, a device or another file that is not regular, and to a
/// descriptor named as /dev/stdout, /dev/stderr or /dev/fd/N. A regular or new file is written as by
/// write_file_atomically. Throws Error if the text cannot be written, and lets through what `write` throws.
void write_output(const std::string& path, FunctionRef<void(PutText)> write);

/// Throws ConfigError, before there is anything to write, if `path`, the value of --`option`, is a folder or in one that
/// does not exist.
void require_writable(const std::string& option, const std::string& path);

}  // namespace weft
