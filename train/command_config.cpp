// weft config: configurations as Weft understands them.
#include <fmt/format.h>

#include "weft/core/suggestion.h"
#include "weft/train/commands.h"
#include "weft/train/config.h"

namespace weft {
namespace {

int config(const Arguments& arguments, const Registry& registry) {
  const auto& words = arguments.positional();
  if (words.size() == 1 && words[0] == "docs") {
    print(config_docs());
    return 0;
  }
  if (words.size() == 2 && words[0] == "show") {
    const Config shown = load_config(words[1], arguments.all("set"));
    check_options(shown.model, registry);
    print(config_json(shown));
    return 0;
  }
  arguments.refuse(
      fmt::format("expected \"show FILE\" or \"docs\"{}", words.empty() ? "" : suggestion(words[0], {"show", "docs"})));
}

}  // namespace

Command config_command() {
  return {{"config",
           "show FILE | docs",
           "Print a configuration with every key (show), or what every key means (docs).",
           {{"set", "KEY=VALUE", "Override a key; may be repeated."}},
           {"weft config show configs/fr-en.json", "weft config docs"}},
          config};
}

}  // namespace weft
