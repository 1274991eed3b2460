// weft translate: lines in, lines out, as they come.
#include <fmt/format.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <istream>
#include <memory>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/data/text_file.h"
#include "weft/data/utf8.h"
#include "weft/train/checkpoint.h"
#include "weft/train/commands.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

/// A stream buffer over a file descriptor that can tell whether a read would wait.
class InputBuffer : public std::streambuf {
 public:
  explicit InputBuffer(int file) : file_(file) {}

  /// Whether the next character is at hand: in the buffer, in the pipe, or in a file.
  bool ready() const {
    if (gptr() != egptr()) return true;
    pollfd descriptor{file_, POLLIN, 0};
    return ::poll(&descriptor, 1, 0) > 0;
  }

 protected:
  int_type underflow() override {
    ssize_t count = 0;
    do {
      count = ::read(file_, buffer_.data(), buffer_.size());
    } while (count < 0 && errno == EINTR);
    if (count <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(buffer_[0]);
  }

 private:
  int file_;
  std::array<char, 1 << 16> buffer_;
};

/// The input file, or standard input.
class Input {
 public:
  explicit Input(const std::string& path)
      : name_(path.empty() ? "standard input" : path), file_(path.empty() ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY)) {
    if (file_ < 0) throw DataError(fmt::format("{}: cannot open ({}); check the path", path, std::strerror(errno)));
    buffer_ = std::make_unique<InputBuffer>(file_);
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
    while (lines.size() < most && (lines.empty() || buffer_->ready()) && lines_->next(line)) lines.push_back(line);
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
  for (const Translation& one : line.translations) text += fmt::format("{} ||| {} ||| {:.6f}\n", number, one.text, one.score);
  return text;
}

void warn(const std::string& text) { fmt::print(stderr, "weft: warning: {}\n", text); }

/// Translates all of the input, handing on the output block by block.
void translate_all(const TranslationModel& model, const Arguments& arguments, FunctionRef<void(const std::string&)> put) {
  const DecodingConfig& decoding = model.config().decoding;
  SearchOptions options = search_options(decoding);
  options.beam = arguments.whole("beam", decoding.beam, 1);
  options.n_best = arguments.whole("n-best", 1, 1);
  options.length_penalty = arguments.number("length-penalty", decoding.length_penalty);
  if (options.beam > 1024) throw ConfigError(fmt::format("--beam is {}; must be at most 1024", options.beam));
  if (options.n_best > options.beam) {
    throw ConfigError(fmt::format("--n-best {} is more than the {} hypotheses of the beam; raise --beam", options.n_best,
                                  options.beam));
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
        warn(fmt::format("{}:{}: the model holds {} tokens; the last {} of this line were left out", input.name(), number,
                         model.longest_sentence(), translated[i].cut_tokens));
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
