#include "weft/train/cli.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "weft/core/c_locale.h"
#include "weft/core/error.h"
#include "weft/core/memory.h"
#include "weft/core/omp_threads.h"
#include "weft/core/suggestion.h"
#include "weft/core/temporary.h"
#include "weft/core/threads.h"
#include "weft/train/commands.h"
#include "weft/train/output_file.h"
#include "weft/train/stop_signal.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

std::vector<Command> commands() {
  return {train_command(),      evaluate_command(), translate_command(), score_command(),
          score_text_command(), average_command(),  inspect_command(),   config_command(),
          data_command(),       plot_command(),     bench_command(),     check_command()};
}

std::string general_help(const std::vector<Command>& all) {
  std::string text =
      "Weft trains, evaluates and runs sequence-to-sequence Transformers on CPUs.\n\n"
      "usage: weft VERB ...\n\nverbs:\n";
  std::vector<std::vector<std::string>> rows;
  for (const Command& command : all) {
    rows.push_back({"  " + command.help.verb + " " + command.help.positional,
                    command.help.meaning.substr(0, command.help.meaning.find('.') + 1)});
  }
  return text + format_table(rows) +
         "\n  weft VERB --help   options and examples of a verb\n"
         "  weft --version\n"
         "\nexamples:\n"
         "  weft train configs/fr-en.json\n"
         "  weft evaluate runs/fr-en/best.safetensors\n"
         "  echo \"Jane visite l'Afrique en septembre.\" | weft translate runs/fr-en/best.safetensors\n";
}

int dispatch(const std::vector<std::string>& words, const Registry& registry) {
  require_not_printed_to({});  // a verb with inputs asks again for those
  const std::vector<Command> all = commands();
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print(general_help(all));
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    print("weft " WEFT_VERSION "\n");
    return 0;
  }
  std::vector<std::string> verbs;
  for (const Command& command : all) {
    verbs.push_back(command.help.verb);
    if (command.help.verb != words[0]) continue;
    const Arguments arguments(command.help, {words.begin() + 1, words.end()});
    if (arguments.wants_help()) {
      print(format_help(command.help));
      return 0;
    }
    return command.run(arguments, registry);
  }
  throw ConfigError(fmt::format("\"{}\" is not a verb{}; see weft --help", words[0], suggestion(words[0], verbs)));
}

/// Takes the places of standard streams that are closed, so that no file that is opened later gets what is printed. They
/// are opened the wrong way round: using them stays an error.
void hold_standard_streams() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(file, F_GETFD) >= 0) continue;
    (void)::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // takes the lowest that is free
  }
}

/// Says why the program fails; takes no memory, which may be what is missing.
int fail(const char* text, int code) {
  for (const char* part : {"weft: ", text, "\n"}) (void)write_unless_stopped(STDERR_FILENO, part);
  return code;
}

/// Appends a line, of which some 2,000 characters are kept: a text from a file may be as long as the file, and its end says
/// how to mend it.
void append_shortened(std::string_view line, std::string& text) {
  constexpr std::size_t kBegin = 1200, kEnd = 800;
  const auto inside = [line](std::size_t at) { return (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80; };
  if (line.size() <= kBegin + kEnd + 100) {
    text += line;
    return;
  }
  std::size_t begin = kBegin, end = line.size() - kEnd;
  while (begin > kBegin - 3 && inside(begin)) --begin;  // of a code point
  while (end < line.size() - kEnd + 3 && inside(end)) ++end;
  text += fmt::format("{} [... {} bytes ...] {}", line.substr(0, begin), format_count(static_cast<Index>(end - begin)),
                      line.substr(end));
}

/// A message in one line, whatever the names of files hold; with `lines`, in the lines that it has. None is very long.
std::string message(std::string_view text, bool lines) {
  std::string shortened;
  while (lines && text.find('\n') != text.npos) {
    append_shortened(text.substr(0, text.find('\n')), shortened);
    shortened += '\n';
    text.remove_prefix(text.find('\n') + 1);
  }
  append_shortened(text, shortened);
  return show_controls(shortened, lines);
}

/// Says it; `lines` as above.
int fail(const std::exception& error, int code, bool lines = false) {
  try {
    return fail(message(error.what(), lines).c_str(), code);
  } catch (const std::bad_alloc&) {
    return fail(error.what(), code);
  }
}

/// A little memory that is given up when there is none left, so that there is some to end with: destructors of the JSON
/// library take memory and cannot fail.
std::atomic<void*> reserve{nullptr};

/// Makes room for what is asked for, first with what the pool of tensors keeps; then it is to fail.
void give_up_reserve() {
  if (release_unused_memory() > 0) return;
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

constexpr const char* kOutOfMemory = "out of memory; use a smaller model or smaller batches";

/// Where even that is not enough, or an exception had nowhere to go: the process ends as after any error.
void end_at_once() {
  const char* text = reserve == nullptr ? kOutOfMemory : "an error where none can be handled";
  const std::exception_ptr error = std::current_exception();
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    text = kOutOfMemory;
  } catch (const std::exception& other) {
    text = other.what();  // lives as long as `error`
  } catch (...) {
  }
  fail(text, 1);
  std::_Exit(1);
}

/// Removes the files that are half written, and ends as without a handler.
void end_by_signal(int signal) {
  remove_temporaries();
  ::raise(signal);        // whose handler is reset
  ::_exit(128 + signal);  // as process 1, of a container, which no signal ends without a handler
}

}  // namespace

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(fmt::format("standard output: cannot write ({})", std::strerror(errno)));
  }
}

void warn(const std::string& text) {
  const std::string line = fmt::format("weft: warning: {}\n", message(text, false));
  (void)write_unless_stopped(STDERR_FILENO, line);
}

void use_threads(const Arguments& arguments, Index configured) {
  const Index count = arguments.whole("threads", configured, 0, 1024);
  set_threads(static_cast<int>(count));  // also back to the default: evaluate comes here for each checkpoint
  if (count > 0) return;
  static bool warned = false;
  const std::string problem = warned ? "" : omp_threads_problem();
  if (!problem.empty()) warn(problem);
  warned = true;
}

int run(int argc, const char* const* argv, const Registry& registry) {
  const CLocale locale;           // of a program that is called with one of its own
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error like any other
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that would exceed the limit on its size
  hold_standard_streams();
  constexpr std::size_t kReserve = 64 << 10;
  std::free(reserve.exchange(std::malloc(kReserve)));
  std::set_new_handler(give_up_reserve);
  std::set_terminate(end_at_once);
  // Training has its own way to end from its first update on.
  handle_end_signals(end_by_signal, static_cast<int>(SA_RESETHAND | SA_NODEFER));
  // A configuration may have several problems, and a run that diverged a report, in lines of their own; but no name on the
  // command line makes another line.
  const auto has_line_feed = [](const char* word) { return std::strchr(word, '\n') != nullptr; };
  const bool lines = std::none_of(argv, argv + argc, has_line_feed);
  try {
    return dispatch({argv + std::min(argc, 1), argv + argc}, registry);
  } catch (const ConfigError& error) {
    return fail(error, 2, lines);
  } catch (const DataError& error) {
    return fail(error, 2);
  } catch (const CheckpointError& error) {
    return fail(error, 2);
  } catch (const std::bad_alloc&) {
    return fail(kOutOfMemory, 1);
  } catch (const std::exception& error) {
    return fail(error, 1, lines);
  }
}

}  // namespace weft
