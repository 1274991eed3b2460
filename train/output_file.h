// Where a verb's output goes: a file that is replaced whole or not at all, or at once to standard output, a pipe or a device.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "weft/core/function_ref.h"
#include "weft/train/arguments.h"

namespace weft {

/// Takes the next part of an output.
using PutText = FunctionRef<void(const std::string&)>;

/// Calls `write` with a function that takes the output's text, part by part. With an empty path the parts go to standard
/// output as they come; likewise to a path that is a pipe, a device or another file that is not regular, and to a
/// descriptor named as /dev/stdout, /dev/stderr, /dev/fd/N or /proc/self/fd/N. Throws ConfigError for a named pipe that gets no reader within
/// kPipeWait. A regular or new file is written as by write_file_atomically. Throws Error if the text cannot be written, and lets through what `write` throws.
void write_output(const std::string& path, FunctionRef<void(PutText)> write);

/// Looks at the files that `options` name, as far as they are given, before there is anything to write. Throws ConfigError
/// if one is a folder or in a folder that does not exist, one of the `inputs`, the same as another or as that of a stream
/// that text goes to, protected by its mode, or a run's own file, or if it has the bytes of a text that the run of the
/// `checkpoint` has read; or if it, standard output or standard error is a descriptor of a regular file among the `inputs`
/// or of a run's own. Throws Error if one cannot be written.
void require_outputs(const Arguments& arguments, std::initializer_list<const char*> options,
                     const std::vector<std::string>& inputs, const std::string& checkpoint = {});

/// Throws ConfigError if standard output or standard error is one of these files, as the shell's >> may have it, or a run's
/// own: it would be read again, or spoilt. If it is standard error, the message goes to standard output.
void require_not_printed_to(const std::vector<std::string>& inputs);

/// Whether a path is that of what a run keeps in its folder beside its checkpoints: its log and the like, or its task's text.
bool is_file_of_run(const std::filesystem::path& path);

/// Throws ConfigError if there is a file at `path` that its mode protects, as a rename would replace it all the same; Error
/// if none can be written there, or the system cannot say what is there. `shown` is what messages call it.
void require_not_protected(const std::filesystem::path& path, const std::string& shown);

/// Whether two paths lead to one file, or would if it existed.
bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace weft
