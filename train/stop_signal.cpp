#include "weft/train/stop_signal.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>

namespace weft {
namespace {

volatile sig_atomic_t stop_signal = 0;

void note(int signal) { stop_signal = signal; }

/// Whether the next write to a file will not wait, now or, as long as there is no stop signal, later.
bool takes_text(int file) {
  constexpr int kSlice = 100;  // milliseconds: a signal may come between the look at stop_signal and poll
  while (true) {
    const bool stopped = stop_signal != 0;
    pollfd descriptor{file, POLLOUT, 0};
    const int ready = ::poll(&descriptor, 1, stopped ? 0 : kSlice);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // the write says what is wrong
    if (ready == 0 && stopped) return false;
  }
}

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

int write_unless_stopped(int file, std::string_view text) {
  while (!text.empty()) {
    if (!takes_text(file)) return EAGAIN;
    // A pipe that is ready takes so much; of a terminal no more is known than that it takes something.
    const std::size_t most = stop_signal != 0 && ::isatty(file) == 1 ? 1 : PIPE_BUF;
    const ssize_t count = ::write(file, text.data(), std::min(text.size(), most));
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace weft
