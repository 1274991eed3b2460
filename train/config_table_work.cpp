// The keys about what is done with a model: training, decoding and bench.
#include "weft/train/config_rows.h"

namespace weft {
namespace {

void add_training(ConfigTable& table) {
  const ConfigRows key(table, "training", &Config::training,
                       "How long to train, on how much at once, and when to look at the result.");
  using S = TrainingConfig;
  key("seed", &S::seed, {.at_least = 0, .at_most = kLargestSeed},
      "Seed of the initial parameters, the data order and dropout.");
  key("steps", &S::steps, {.at_least = 1}, "Updates of the whole run.");
  key("minutes", &S::minutes, {.at_least = 0, .at_most = kMostMinutes},
      "Time for the whole run, its start and validations included. The number of steps is then chosen at the start, by "
      "measuring, and stands in the place of `steps` in the run's `config.json` and checkpoints; the clock ends the "
      "run in any case. What was spent stands in the run's `spent_seconds.txt`. A run gets no more time later; a new "
      "one goes on from its parameters, with `--from RUN/last.safetensors --run NEW`. 0 for no limit; `--minutes` sets "
      "it.");
  key("batch_tokens", &S::batch_tokens, {.at_least = 1}, "Tokens of a batch, source and target together.");
  key("memory", &S::memory, {},
      "Memory that the process may take at its peak in training, such as `2GiB` or `800MB`. The largest `batch_tokens` "
      "that stays within it is then chosen at the start, by measuring an update's tensors and adding what the process "
      "takes besides, and stands in the place of `batch_tokens` in the run's `config.json` and checkpoints. The peak "
      "comes out at some 80 to 100 % of it; making a vocabulary is not counted, and the program with 32 MiB, so that "
      "less than about 35 MiB never is enough. "
      "Empty for no limit.");
  key("accumulate", &S::accumulate, {.at_least = 1, .at_most = 10000}, "Batches whose gradients make one update.");
  key("label_smoothing", &S::label_smoothing, {.at_least = 0, .below = 1},
      "Probability that the loss spreads over the whole vocabulary.");
  key("validate_every", &S::validate_every, {.at_least = 1}, "Updates between two validations.");
  key("log_every", &S::log_every, {.at_least = 1}, "Updates between two lines of the log.");
  key("save_every", &S::save_every, {.at_least = 0},
      "Updates between two saves of the last checkpoint; 0 to save at validations only.");
  key("validation_sentences", &S::validation_sentences, {.at_least = 0},
      "Validation sentences that are translated, by greedy search, to measure BLEU, chrF and exact matches; 0 for "
      "all.");
  key("best_metric", &S::best_metric, {.one_of = {"loss", "bleu", "chrf", "exact_match", "token_accuracy"}},
      "Validation result that decides which checkpoint is the best; of equal ones the last.");
  key("patience", &S::patience, {.at_least = 0},
      "Validations in a row without a better result, by `best_metric`, that end the run; 0 to make all `steps`.");
  key("keep_best", &S::keep_best, {.at_least = 1},
      "Best validations whose checkpoints are kept, if more than 1 as `step-<step>.safetensors`; the best of all is "
      "`best.safetensors` anyway.");
  key("keep_last", &S::keep_last, {.at_least = 0},
      "Last validations whose checkpoints are kept as `step-<step>.safetensors`.");
  key("ema_decay", &S::ema_decay, {.at_least = 0, .below = 1},
      "Decay of a moving average of the parameters, for example 0.999, which validations and the checkpoints that they "
      "leave then have in the parameters' place; 0 for none. `last.safetensors` has both.");
  key("samples", &S::samples, {.at_least = 0}, "Translations shown at each validation.");
  key("on_divergence", &S::on_divergence, {.one_of = {"stop", "skip", "rollback"}},
      "What becomes of an update whose numbers are not finite: `stop` ends the run, `skip` leaves the update out, at "
      "most 10 in a row, `rollback` goes back to the last checkpoint, on with other text at half the learning rate, at "
      "most "
      "5 times. See [divergence.md](divergence.md).");
  key("detect_anomaly", &S::detect_anomaly, {},
      "Whether to look at every number of an update, results of operations and gradients alike, and treat the update "
      "as diverged if any is NaN or infinite, also where it never reaches the loss. Slower; changes no result.");
  key("warm_start", &S::warm_start, {},
      "Checkpoint whose parameters a new run begins with, as far as names, shapes and tokens fit; empty for none. "
      "`--from` sets it.");
  key("threads", &S::threads, {.at_least = 0, .at_most = 1024},
      "Threads to compute with, unless `--threads` is given; 0 for one on each core, or `OMP_NUM_THREADS` if that is "
      "less. Results do not depend on it.");
}

void add_decoding(ConfigTable& table) {
  const ConfigRows key(table, "decoding", &Config::decoding, "How a trained model writes its output.");
  using S = DecodingConfig;
  key("beam", &S::beam, {.at_least = 1, .at_most = kWidestBeam},
      "Hypotheses that beam search keeps; 1 for greedy search.");
  key("length_penalty", &S::length_penalty, {.at_least = 0, .at_most = 10},
      "Strength of the preference for long outputs; 0 for none.");
  key("max_length_ratio", &S::max_length_ratio, {.at_least = 0, .at_most = 100},
      "An output has at most this many tokens for each source token, plus `max_length_extra`.");
  key("max_length_extra", &S::max_length_extra, {.at_least = 1},
      "Tokens that an output may have beyond `max_length_ratio` times the source.");
  key("min_length", &S::min_length, {.at_least = 0}, "Fewest tokens of an output, unless its limit is lower.");
  key("max_length", &S::max_length, {.at_least = 0},
      "Most tokens of an output, instead of `max_length_ratio` and `max_length_extra`; 0 for these.");
  key("no_repeat_ngram", &S::no_repeat_ngram, {.at_least = 0},
      "No output holds the same so many tokens in a row twice; 0 for no such rule.");
  key("replace_unknown", &S::replace_unknown, {},
      "Whether `<unk>` may be written, and becomes the source token that it looked at most; else the next best token "
      "is written. For tokenizers by words.");
  key("batch_tokens", &S::batch_tokens, {.at_least = 1},
      "Source tokens, each counted once for every hypothesis of the beam, that are translated at once.");
  key("bleu_tokenizer", &S::bleu_tokenizer, {.one_of = {"13a", "none", "char", "zh"}},
      "How BLEU cuts the output into words, whatever the model's tokens are: `13a` as most papers do, `zh` for "
      "Chinese, `char` for any language without spaces, `none` at white space only.");
}

void add_bench(ConfigTable& table) {
  const ConfigRows key(table, "bench", &Config::bench,
                       "The synthetic work of `weft bench`, which reads no text. Training does not look at it.");
  using S = BenchConfig;
  key("vocabulary", &S::vocabulary, {.at_least = 4, .at_most = 10'000'000},
      "Tokens of the source vocabulary and of the target vocabulary, the three specials included.");
  key("target_tokens", &S::target_tokens, {.at_least = 1}, "Target tokens of a batch, end tokens included.");
  key("lengths", &S::lengths, {},
      "Lengths of the sentences, end tokens included: `uniform:16` for 16 tokens on both sides, or `realistic` for 5 "
      "to 40, with a mean of 14, in batches of similar lengths.");
}

}  // namespace

void add_work(ConfigTable& table) {
  add_training(table);
  add_decoding(table);
  add_bench(table);
}

}  // namespace weft
