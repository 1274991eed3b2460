// weft translate: lines in, lines out, as they come.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <istream>
#include <memory>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/data/text_file.h"
#include "weft/data/utf8.h"
#include "weft/train/checkpoint.h"
#include "weft/train/commands.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// A stream buffer over a file descriptor that can tell whether a line is at hand without waiting.
class InputBuffer : public std::streambuf {
 public:
  InputBuffer(int file, const std::string& name) : file_(file), name_(name) { setg(begin(), begin(), begin()); }

  /// Whether the next line can be taken without waiting; reads what is at hand to find its end.
  bool has_line() {
    while (std::find(gptr(), egptr(), '\n') == egptr()) {
      pollfd descriptor{file_, POLLIN, 0};
      if (egptr() - gptr() == static_cast<std::ptrdiff_t>(buffer_.size()) || ::poll(&descriptor, 1, 0) <= 0)
        return false;
      if (!fill()) return gptr() != egptr();
    }
    return true;
  }

 protected:
  int_type underflow() override { return fill() ? traits_type::to_int_type(*gptr()) : traits_type::eof(); }

 private:
  char* begin() { return buffer_.data(); }

  /// Reads more behind what is left; returns false at the end of the file.
  bool fill() {
    const auto left = static_cast<std::size_t>(egptr() - gptr());
    std::memmove(begin(), gptr(), left);
    ssize_t count = 0;
    do {
      count = ::read(file_, begin() + left, buffer_.size() - left);
    } while (count < 0 && errno == EINTR);
    setg(begin(), begin(), begin() + left + std::max<ssize_t>(count, 0));
    if (count < 0) throw DataError(fmt::format("{}: cannot be read ({})", name_, std::strerror(errno)));
    return count > 0;
  }

  int file_;
  const std::string& name_;
  std::array<char, 1 << 16> buffer_;
};

/// The input file, or standard input.
class Input {
 public:
  explicit Input(const std::string& path)
      : name_(path.empty() ? "standard input" : path),
        file_(path.empty() ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY)) {
    struct stat status {};
    if (file_ < 0 || ::fstat(file_, &status) != 0 || S_ISDIR(status.st_mode)) {
      const int error = file_ < 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : errno;
      throw DataError(fmt::format("{}: cannot be read ({}); check the path", name_, std::strerror(error)));
    }
    buffer_ = std::make_unique<InputBuffer>(file_, name_);
    stream_ = std::make_unique<std::istream>(buffer_.get());
    lines_ = std::make_unique<LineReader>(*stream_, name_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() {
    if (file_ != STDIN_FILENO) ::close(file_);
  }

  /// Waits for a line, and takes with it what else is at hand, up to `most` lines. Empty at the end.
  std::vector<std::string> next_lines(std::size_t most) {
    std::vector<std::string> lines;
    std::string line;
    while (lines.size() < most && (lines.empty() || buffer_->has_line()) && lines_->next(line)) lines.push_back(line);
    return lines;
  }

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int file_;
  std::unique_ptr<InputBuffer> buffer_;
  std::unique_ptr<std::istream> stream_;
  std::unique_ptr<LineReader> lines_;
};

/// The output lines of one input line: its translation, or its n best as "number ||| translation ||| score".
std::string output_lines(const TranslatedLine& line, Index number, bool n_best) {
  if (!n_best) return line.translations.front().text + "\n";
  std::string text;
  for (const Translation& one : line.translations)
    text += fmt::format("{} ||| {} ||| {:.6f}\n", number, one.text, one.score);
  return text;
}

/// Throws ConfigError, before anything is translated, for an output whose folder is missing.
void require_folder_of(const Arguments& arguments, const std::string& option) {
  if (!arguments.has(option)) return;
  const fs::path folder = fs::path(arguments.text(option)).parent_path();
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return;
  throw ConfigError(
      fmt::format("--{} {}: there is no folder {}; make it first", option, arguments.text(option), folder.string()));
}

void warn(const std::string& text) { fmt::print(stderr, "weft: warning: {}\n", text); }

/// Translates all of the input, handing on the output block by block.
void translate_all(const TranslationModel& model, const Arguments& arguments,
                   FunctionRef<void(const std::string&)> put) {
  const DecodingConfig& decoding = model.config().decoding;
  SearchOptions options = search_options(decoding);
  options.beam = arguments.whole("beam", decoding.beam, 1, kWidestBeam);
  options.n_best = arguments.whole("n-best", 1, 1, kWidestBeam);
  options.length_penalty = arguments.number("length-penalty", decoding.length_penalty, 10);
  if (options.n_best > options.beam) {
    throw ConfigError(fmt::format("--n-best {} is more than the {} hypotheses of the beam; raise --beam",
                                  options.n_best, options.beam));
  }
  Input input(arguments.text("input", ""));
  bool drawn = !arguments.has("attention");
  Index number = 0;
  for (;;) {
    constexpr std::size_t kMostLines = 1024;
    std::vector<std::string> lines = input.next_lines(kMostLines);
    if (lines.empty()) break;
    Index replaced = 0;
    for (std::string& line : lines) line = replace_invalid_text(line, replaced);
    if (replaced > 0) {
      warn(fmt::format("{}: {} bytes in lines {} to {} are not UTF-8 text; replaced by U+FFFD", input.name(), replaced,
                       number + 1, number + static_cast<Index>(lines.size())));
    }
    const auto translated = translate(model, lines, options, decoding.batch_tokens);
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ++number;
      if (translated[i].cut_tokens > 0) {
        warn(fmt::format("{}:{}: the model holds {} tokens; the last {} of this line were left out", input.name(),
                         number, model.longest_sentence(), translated[i].cut_tokens));
      }
      text += output_lines(translated[i], number, arguments.has("n-best"));
      const std::string& best = translated[i].translations.front().text;
      if (!drawn && !is_blank(lines[i]) && !is_blank(best)) {
        write_file(arguments.text("attention"), attention_svg(attention_map(model, lines[i], best), lines[i]));
        drawn = true;
      }
    }
    put(text);
  }
  if (!drawn) warn("no line had words; no attention was drawn");
}

int translate_lines(const Arguments& arguments, const Registry& registry) {
  require_folder_of(arguments, "output");
  require_folder_of(arguments, "attention");
  const Checkpoint checkpoint = load_checkpoint(arguments.only_positional(), registry);
  use_threads(arguments, checkpoint.model->config().training.threads);
  if (!arguments.has("output")) {
    translate_all(*checkpoint.model, arguments, [](const std::string& text) { print(text); });
  } else {
    write_file_atomically(arguments.text("output"), [&](FileWriter& writer) {
      translate_all(*checkpoint.model, arguments, [&](const std::string& text) { writer.write(text); });
    });
  }
  return 0;
}

}  // namespace

Command translate_command() {
  return {{"translate",
           "CHECKPOINT",
           "Translate text, one sentence a line. One line comes out for each that goes in; a blank line stays blank.",
           {{"input", "FILE", "Text to translate; standard input unless given."},
            {"output", "FILE", "Where the translation goes; standard output unless given."},
            {"beam", "N", "Hypotheses kept by the search; 1 for greedy search."},
            {"n-best", "K", "Print the K best translations of each line as \"line ||| translation ||| score\"."},
            {"length-penalty", "A", "Strength of the preference for long outputs; 0 for none."},
            {"attention", "FILE.svg", "Draw the attention of the first line that has words."},
            {"threads", "N", "Threads to compute with; 0 for one on each core."}},
           {"echo \"Jane visite l'Afrique en septembre.\" | weft translate runs/fr-en/best.safetensors",
            "weft translate runs/fr-en/best.safetensors --input my.fr --output my.en --beam 8",
            "weft translate runs/fr-en/best.safetensors --input my.fr --attention attention.svg"}},
          translate_lines};
}

}  // namespace weft
