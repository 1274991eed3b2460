// The signals that ask a program to end, and a training run to save first: SIGHUP of a terminal that is gone, SIGINT of Ctrl-C, SIGTERM.
#pragma once

namespace weft {

/// Has `handler` called for the signals that ask a program to end. One that is ignored, as under nohup or in a script's
/// background, stays ignored. `flags` are those of sigaction.
void handle_end_signals(void (*handler)(int signal), int flags);

/// Has these signals noted from now on instead of ending the process. Returns where the number of the last one stands, 0 before any.
const volatile int& note_stop_signals();

}  // namespace weft
