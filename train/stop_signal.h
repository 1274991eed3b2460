// The signals that ask a training run to save and end: SIGHUP of a terminal that is gone, SIGINT of Ctrl-C, SIGTERM.
#pragma once

namespace weft {

/// Has these signals noted from now on instead of ending the process; one that is ignored, as under nohup or in a script's
/// background, stays ignored. Returns where the number of the last one stands, 0 before any.
const volatile int& note_stop_signals();

}  // namespace weft
