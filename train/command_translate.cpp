// weft translate: lines in, lines out, as they come.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "weft/core/error.h"
#include "weft/data/text_file.h"
#include "weft/data/utf8.h"
#include "weft/train/commands.h"
#include "weft/train/line_input.h"
#include "weft/train/line_progress.h"
#include "weft/train/output_file.h"
#include "weft/train/run_files.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

/// The value of an option that must be above 0.
double positive(const Arguments& arguments, const std::string& option, double otherwise, double most) {
  const double value = arguments.number(option, otherwise, most);
  if (value <= 0) arguments.refuse(fmt::format("--{} is \"{}\"; must be above 0", option, arguments.text(option)));
  return value;
}

/// How to draw, or nothing if the arguments ask for a search.
std::optional<SamplingOptions> sampling_options(const Arguments& arguments) {
  if (!arguments.has("sample")) {
    for (const char* option : {"temperature", "top-k", "top-p", "seed"}) {
      if (arguments.has(option)) arguments.refuse(fmt::format("--{} goes with --sample", option));
    }
    return std::nullopt;
  }
  if (arguments.has("beam")) arguments.refuse("--beam searches and --sample draws; give one of the two");
  return SamplingOptions{.temperature = positive(arguments, "temperature", 1, 1000),
                         .top_k = arguments.whole("top-k", 0, 0),
                         .top_p = positive(arguments, "top-p", 1, 1),
                         .seed = static_cast<std::uint64_t>(arguments.whole("seed", 1, 0, kLargestSeed))};
}

/// Throws for a least length above the longest, naming each where it was given: on the command line or in the
/// checkpoint.
[[noreturn]] void refuse_lengths(const Arguments& arguments, const SearchOptions& search) {
  const auto named = [&](const char* option, const char* key, Index value) {
    return arguments.has(option)
               ? fmt::format("--{} {}", option, value)
               : fmt::format("{} {} of {} (--{} says another)", key, value, arguments.positional().front(), option);
  };
  arguments.refuse(named("min-length", "decoding.min_length", search.min_length) + " is more than " +
                   named("max-length", "decoding.max_length", search.max_length));
}

TranslateOptions translate_options(const Arguments& arguments, const DecodingConfig& decoding) {
  TranslateOptions options;
  options.sampling = sampling_options(arguments);
  options.alignments = arguments.has("alignment") || arguments.has("soft-alignment");
  options.batch_tokens = decoding.batch_tokens;
  SearchOptions& search = options.search = search_options(decoding);
  search.beam = arguments.whole("beam", decoding.beam, 1, kWidestBeam);
  search.n_best = arguments.whole("n-best", 1, 1, kWidestBeam);
  search.length_penalty = arguments.number("length-penalty", decoding.length_penalty, 10);
  search.min_length = arguments.whole("min-length", decoding.min_length, 0);
  search.max_length = arguments.whole("max-length", decoding.max_length, 0);
  search.no_repeat_ngram = arguments.whole("no-repeat-ngram", decoding.no_repeat_ngram, 0);
  search.allow_unknown = decoding.replace_unknown || arguments.has("replace-unknown");
  if (!options.sampling && search.n_best > search.beam) {
    arguments.refuse(fmt::format("--n-best {} is more than the {} hypotheses of the beam; raise --beam", search.n_best,
                                 search.beam));
  }
  if (search.max_length > 0 && search.min_length > search.max_length) refuse_lengths(arguments, search);
  return options;
}

/// The output lines of one input line: its translation, or its n best as "number ||| translation ||| score".
std::string output_lines(const TranslatedLine& line, Index number, bool n_best) {
  if (!n_best) return line.translations.front().text + "\n";
  std::string text;
  for (const Translation& one : line.translations)
    text += fmt::format("{} ||| {} ||| {:.6f}\n", number, one.text, one.score);
  return text;
}

/// The parts of the result.
struct Texts {
  std::string text, alignment, soft_alignment;
};

/// Where they go.
struct Outputs {
  PutText text, alignment, soft_alignment;
};

/// Adds what came of an input line.
void add_line(const TranslatedLine& line, Index number, const Arguments& arguments, Texts& texts) {
  const bool n_best = arguments.has("n-best");
  texts.text += output_lines(line, number, n_best);
  for (const Translation& one : line.translations) {  // a line for each line of the output
    if (arguments.has("alignment")) texts.alignment += pharaoh(one.alignment) + "\n";
    if (arguments.has("soft-alignment")) {
      texts.soft_alignment += alignment_json(number, line.source, one.tokens, one.alignment);
    }
    if (!n_best) break;
  }
}

/// Whether a line of progress on the terminal disturbs nothing: the translation goes to a file, so that no other program
/// shows it there meanwhile, and nobody types the input.
bool may_show_progress(const Arguments& arguments) {
  if (!arguments.has("input") && ::isatty(STDIN_FILENO) == 1) return false;
  std::error_code error;
  return !std::filesystem::is_other(arguments.text("output", "/dev/stdout"), error);
}

/// Translates all of the input, handing on the output block by block.
void translate_all(ModelSpan models, const Arguments& arguments, TranslateOptions options, const Outputs& outputs) {
  LineInput input(arguments.text("input", ""));
  LineProgress progress(stderr, may_show_progress(arguments));
  options.progress = &progress;
  const auto warn_below = [&](const std::string& text) {
    progress.clear();
    warn(text);
  };
  bool drawn = !arguments.has("attention");
  Index number = 0;
  for (;;) {
    constexpr std::size_t kMostLines = 1024;
    std::vector<std::string> lines = input.next_lines(kMostLines);
    if (lines.empty()) break;
    Index replaced = 0;
    for (std::string& line : lines) line = replace_invalid_text(line, replaced);
    if (replaced > 0) {
      warn_below(fmt::format("{}: lines {} to {} have {} byte{} that no UTF-8 text has; replaced by U+FFFD",
                             input.name(), number + 1, number + static_cast<Index>(lines.size()), replaced,
                             replaced == 1 ? "" : "s"));
    }
    options.first_line = number + 1;
    const auto translated = translate(models, lines, options);
    Texts texts;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ++number;
      if (translated[i].cut_tokens > 0) {
        warn_below(fmt::format("{}:{}: the model holds {} tokens; the last {} of this line were left out", input.name(),
                               number, longest_sentence(models), translated[i].cut_tokens));
      }
      add_line(translated[i], number, arguments, texts);
      const std::string& best = translated[i].translations.front().text;
      if (!drawn && !is_blank(lines[i]) && !is_blank(best)) {
        const std::string picture = attention_svg(attention_map(*models.front(), lines[i], best), lines[i]);
        write_output(arguments.text("attention"), [&](PutText put) { put(picture); });
        drawn = true;
      }
    }
    outputs.text(texts.text);
    outputs.alignment(texts.alignment);
    outputs.soft_alignment(texts.soft_alignment);
  }
  if (!drawn) warn_below("no line had words; no attention was drawn");
}

/// Calls `write` with an output to the file of an option, or with one that is never used if it was not given.
void with_file(const Arguments& arguments, const std::string& option, FunctionRef<void(PutText)> write) {
  if (!arguments.has(option)) {
    write([](const std::string&) {});
  } else {
    write_output(arguments.text(option), write);
  }
}

int translate_lines(const Arguments& arguments, const Registry& registry) {
  if (arguments.positional().empty()) arguments.only_positional();  // says what is missing
  std::vector<std::string> inputs = arguments.positional();
  inputs.push_back(arguments.text("input", "/dev/stdin"));
  const auto outputs = {"output", "attention", "alignment", "soft-alignment"};
  require_outputs(arguments, outputs, inputs);
  const ModelEnsemble ensemble(arguments.positional(), registry);
  const Config& config = ensemble.first().config();
  for (std::size_t i = 0; i < ensemble.models().size(); ++i) {
    require_outputs(arguments, outputs, all_files(ensemble.models()[i]->config().data), arguments.positional()[i]);
  }
  use_threads(arguments, config.training.threads);
  const TranslateOptions options = translate_options(arguments, config.decoding);
  write_output(arguments.text("output", ""), [&](PutText text) {
    with_file(arguments, "alignment", [&](PutText alignment) {
      with_file(arguments, "soft-alignment", [&](PutText soft_alignment) {
        naming_checkpoint(arguments.positional(), [&] {
          translate_all(ensemble.models(), arguments, options, {text, alignment, soft_alignment});
        });
      });
    });
  });
  return 0;
}

}  // namespace

Command translate_command() {
  return {{"translate",
           "CHECKPOINT...",
           "Translate text, one sentence a line. One line comes out for each that goes in; a blank line stays blank. "
           "Several checkpoints of the same vocabularies translate together: their probabilities are averaged. The "
           "first one's configuration says what is not given here.",
           {{"input", "FILE", "Text to translate; standard input unless given."},
            {"output", "FILE", "Where the translation goes, a file or a pipe; standard output unless given."},
            {"beam", "N", "Hypotheses kept by the search; 1 for greedy search."},
            {"n-best", "K", "Print the K best translations of each line as \"line ||| translation ||| score\"."},
            {"length-penalty", "A", "Strength of the preference for long outputs; 0 for none."},
            {"min-length", "N", "Fewest tokens of a translation, as far as the longest length allows."},
            {"max-length", "N", "Most tokens of a translation; 0 for a limit that grows with the line's length."},
            {"no-repeat-ngram", "N", "Write no N tokens in a row twice in a line; 0 for no such rule."},
            {"replace-unknown", "", "Where the model writes <unk>, put the source word that it looked at most."},
            {"sample", "", "Draw translations at random instead of searching; with --n-best, K of each line."},
            {"temperature", "T",
             "Divide the logits by T before drawing: below 1 is safer, above 1 wilder. 1 unless given."},
            {"top-k", "K", "Draw from the K most probable tokens only; 0 for all."},
            {"top-p", "P", "Draw from the fewest tokens whose probabilities reach P only; 1 for all."},
            {"seed", "N",
             "Draw other translations; a seed, a line's number and its text give the same ones. 1 unless given."},
            {"alignment", "FILE",
             "Write word alignments from attention: for each output line \"i-j ...\", source token i to target "
             "token j, from 0."},
            {"soft-alignment", "FILE", "Write the attention itself, a JSON object for each output line."},
            {"attention", "FILE.svg", "Draw the attention of the first line that has words."},
            {"threads", "N", "Threads to compute with; 0 for one on each core."}},
           {"echo \"Jane visite l'Afrique en septembre.\" | weft translate runs/fr-en/best.safetensors",
            "weft translate runs/fr-en/best.safetensors --input new.fr --output new.en --beam 8",
            "weft translate runs/a/best.safetensors runs/b/best.safetensors --input my.fr --alignment my.links",
            "weft translate runs/fr-en/best.safetensors --input my.fr --sample --top-p 0.9 --n-best 3",
            "weft translate runs/fr-en/best.safetensors --input my.fr --attention attention.svg"}},
          translate_lines};
}

}  // namespace weft
