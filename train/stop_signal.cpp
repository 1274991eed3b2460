#include "weft/train/stop_signal.h"

#include <signal.h>

#include <csignal>
#include <initializer_list>

namespace weft {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void note(int signal) { stop_signal = signal; }

}  // namespace

const volatile int& note_stop_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    // Without SA_RESTART: printing to a pipe that nobody reads ends, and the run can save.
    action = {};
    action.sa_handler = note;
    ::sigaction(signal, &action, nullptr);
  }
  return stop_signal;
}

}  // namespace weft
