// The verbs of the command line. Each gets the words after it and returns an exit code; errors are exceptions.
#pragma once

#include <string>
#include <vector>

#include "weft/nn/registry.h"
#include "weft/train/arguments.h"

namespace weft {

/// A verb: its help and what it does.
struct Command {
  VerbHelp help;
  int (*run)(const Arguments& arguments, const Registry& registry);
};

Command train_command();
Command evaluate_command();
Command translate_command();
Command score_text_command();
Command score_command();
Command average_command();
Command inspect_command();
Command config_command();
Command data_command();
Command bench_command();
Command check_command();
Command plot_command();

/// Writes to standard output. Throws Error if it cannot take the text (a full disk, a closed pipe).
void print(const std::string& text);

/// Writes a warning to standard error, if that can take it.
void warn(const std::string& text);

/// Uses --threads if given, else `configured` threads, else (0) one for each core.
void use_threads(const Arguments& arguments, Index configured);

}  // namespace weft
