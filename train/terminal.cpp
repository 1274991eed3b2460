#include "weft/train/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace weft {

bool can_redraw(std::FILE* out) {
  const char* const term = std::getenv("TERM");
  return ::isatty(::fileno(out)) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

Index terminal_width(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ? 80 : size.ws_col;
}

}  // namespace weft
