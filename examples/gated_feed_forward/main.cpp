// The program `gated_feed_forward`: all of Weft's command line, with one more layer, and the check of its operation.
#include <weft/train/cli.h>

#include <string_view>

#include "check.h"
#include "gated_feed_forward.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "check-silu-mul") return check_silu_mul();
  weft::Registry registry = weft::standard_layers();
  registry.add<GatedFeedForward>("feed_forward", "gated");
  return weft::run(argc, argv, registry);
}
