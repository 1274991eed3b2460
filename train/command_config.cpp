// weft config: configurations as Weft understands them.
#include "weft/train/commands.h"
#include "weft/train/config.h"
#include "weft/train/output_file.h"

namespace weft {
namespace {

int config(const Arguments& arguments, const Registry& registry) {
  const auto& words = arguments.positional();  // those of a use
  if (words[0] == "docs") {
    if (arguments.has("set")) arguments.refuse("--set is for config show");
    print(config_docs());
    return 0;
  }
  require_not_printed_to({words[1]});
  const Config shown = load_config(words[1], arguments.all("set"));
  check_options(shown.model, registry);
  print(config_json(shown));
  return 0;
}

}  // namespace

Command config_command() {
  return {{"config",
           "show FILE | docs",
           "Print a configuration with every key (show), or what every key means (docs).",
           {{"set", "KEY=VALUE", "show: override a key; may be repeated."}},
           {"weft config show configs/fr-en.json", "weft config docs"}},
          config};
}

}  // namespace weft
