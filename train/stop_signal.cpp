#include "weft/train/stop_signal.h"

#include <csignal>
#include <initializer_list>

namespace weft {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void note(int signal) { stop_signal = signal; }

}  // namespace

const volatile int& note_stop_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  return stop_signal;
}

}  // namespace weft
