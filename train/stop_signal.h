// The signals that ask a program to end, and a training run to save first: SIGHUP of a terminal that is gone, SIGINT of Ctrl-C, SIGTERM.
#pragma once

#include <string_view>

namespace weft {

/// Has `handler` called for the signals that ask a program to end. One that is ignored, as under nohup or in a script's
/// background, stays ignored. `flags` are those of sigaction.
void handle_end_signals(void (*handler)(int signal), int flags);

/// Has these signals noted from now on instead of ending the process. Returns where the number of the last one stands, 0 before any.
const volatile int& note_stop_signals();

/// Writes text to an open file, and waits as long as its reader does not take it, but no longer once a stop signal was noted.
/// Returns 0, or the errno of what went wrong: EAGAIN if text was left out for that signal. Takes no memory.
int write_unless_stopped(int file, std::string_view text);

}  // namespace weft
