#include "weft/train/stop_signal.h"

#include <signal.h>

#include <initializer_list>

namespace weft {
namespace {

volatile sig_atomic_t stop_signal = 0;

void note(int signal) { stop_signal = signal; }

}  // namespace

void handle_end_signals(void (*handler)(int signal), int flags) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    ::sigaction(signal, &action, nullptr);
  }
}

const volatile int& note_stop_signals() {
  handle_end_signals(note, 0);  // without SA_RESTART: printing to a pipe that nobody reads ends, and the run can save
  return stop_signal;
}

}  // namespace weft
