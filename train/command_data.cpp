// weft data: the text of the toy tasks as files.
#include <fmt/format.h>

#include <optional>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/data/toy.h"
#include "weft/train/commands.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

int data(const Arguments& arguments, const Registry&) {
  const auto& words = arguments.positional();
  if (words.size() != 2 || words[0] != "make") {
    throw ConfigError(fmt::format("data: expected \"make TASK\"{}; see weft data --help",
                                  words.empty() ? "" : suggestion(words[0], {"make"})));
  }
  const std::string output = arguments.text("output");
  const auto pairs = arguments.has("pairs") ? std::optional<Index>(arguments.whole("pairs", 0, 1)) : std::nullopt;
  const auto splits = make_toy(words[1], pairs, static_cast<std::uint64_t>(arguments.whole("seed", 1, 0)));
  write_toy(splits, output);
  for (const auto& [name, text] : splits) {
    print(
        fmt::format("{}/{}.src, .trg: {} pairs\n", output, name, format_count(static_cast<Index>(text.source.size()))));
  }
  return 0;
}

}  // namespace

Command data_command() {
  return {{"data",
           "make TASK",
           "Write the text of a toy task: fr-en, copy, reverse or sort. The same seed gives the same bytes everywhere.",
           {{"output", "DIR", "Folder for train, valid and test, each as .src and .trg; made if missing."},
            {"pairs", "N", "Training pairs; the task's own number unless given."},
            {"seed", "S", "Which text; 1 unless given."}},
           {"weft data make fr-en --output runs/text/fr-en",
            "weft data make reverse --output runs/text/reverse --pairs 20000 --seed 7"}},
          data};
}

}  // namespace weft
