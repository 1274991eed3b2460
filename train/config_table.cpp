#include "weft/train/config_table.h"

#include <algorithm>

#include "weft/train/config_rows.h"

namespace weft {
namespace {

void add_data(ConfigTable& table) {
  const ConfigRows key(
      table, "data", &Config::data,
      "The text to learn from: a toy task, or files with one sentence a line, where line n of the target "
      "translates line n of the source. Paths are relative to the current directory; a file may be "
      "gzipped.");
  using S = DataConfig;
  const std::vector<std::string> tasks = {"fr-en", "copy", "reverse", "sort"};
  key("task", &S::task, {.one_of = {"", "fr-en", "copy", "reverse", "sort"}},
      "Toy task that makes its own text; empty to use files.");
  key("pairs", &S::pairs, {.at_least = 0, .only_with = {"data.task", tasks}},
      "Training pairs that the toy task makes; 0 for the task's own number.");
  key("seed", &S::seed, {.at_least = 0, .at_most = kLargestSeed},
      "Seed of the toy task's text, or of which pairs are held out.");
  key("train_source", &S::train_source, {}, "Source side of the training text.");
  key("train_target", &S::train_target, {}, "Target side of the training text.");
  key("valid_source", &S::valid_source, {}, "Source side of the validation text, which picks the best checkpoint.");
  key("valid_target", &S::valid_target, {}, "Target side of the validation text.");
  key("test_source", &S::test_source, {}, "Source side of the test text, which training never reads.");
  key("test_target", &S::test_target, {}, "Target side of the test text.");
  key("train", &S::train, {},
      "Training text of several files, instead of `train_source` and `train_target`: a list of objects, "
      "`{\"source\": FILE, \"target\": FILE}`, or `{\"tsv\": FILE, \"source_column\": 1, \"target_column\": 2}` for "
      "columns parted by TAB, without quoting. Lines with too few columns are skipped and counted; more columns do no "
      "harm.");
  key("valid", &S::valid, {}, "Validation text of several files, in the same form.");
  key("test", &S::test, {}, "Test text of several files, in the same form.");
  key("hold_out_valid", &S::hold_out_valid, {.at_least = 0},
      "Pairs of the training text that are set aside for validation, when no validation text is named. Pairs that "
      "share a "
      "sentence, but for case and spaces, all go to the same part. The choice depends on `seed` and on the pairs, not "
      "on "
      "their order.");
  key("hold_out_test", &S::hold_out_test, {.at_least = 0}, "The same for test.");
  key("cache", &S::cache, {},
      "Folder that keeps the training text as token ids, so that a run that goes on, or another with the same text and "
      "vocabulary, need not cut it into tokens again; empty for `cache` in the run folder, `none` to keep nothing.");
  key("tokenizer", &S::tokenizer, {.one_of = {"word", "whitespace", "character", "unigram", "bpe"}},
      "How a line becomes tokens: words with punctuation split off, pieces between white space, characters, or "
      "subwords of SentencePiece's unigram or BPE model. A model that `weft train` makes changes nothing but spaces "
      "and, "
      "with `lowercase`, the case.");
  key("lowercase", &S::lowercase, {}, "Whether text is put into lower case first.");
  key("min_count", &S::min_count, {.at_least = 1, .only_with = {"data.tokenizer", {"word", "whitespace", "character"}}},
      "How often a token must occur in the training text to enter the vocabulary.");
  key("max_vocabulary", &S::max_vocabulary, {.at_least = 5, .at_most = 10'000'000},
      "Largest vocabulary of a side, special tokens included; the most frequent tokens stay. The size of subword "
      "models "
      "that are trained; less if the text has not as many pieces.");
  key("shared_vocabulary", &S::shared_vocabulary, {},
      "Whether source and target have one vocabulary, and one subword model.");
  const ConfigUse subwords = {"data.tokenizer", {"unigram", "bpe"}};
  key("subword_model", &S::subword_model, {.only_with = subwords},
      "SentencePiece's .model file for both sides, with `shared_vocabulary`; empty to train it on the training text. "
      "It "
      "normalises text as it was made to, and goes into the checkpoints.");
  key("source_subword_model", &S::source_subword_model, {.only_with = subwords},
      "The same for the source side, without `shared_vocabulary`.");
  key("target_subword_model", &S::target_subword_model, {.only_with = subwords},
      "The same for the target side, without `shared_vocabulary`.");
  key("byte_fallback", &S::byte_fallback, {.only_with = subwords},
      "Whether a subword model that is trained has all bytes as pieces, so that no character is unknown.");
  key("character_coverage", &S::character_coverage, {.at_least = 0.98, .at_most = 1, .only_with = subwords},
      "Share of the training text's characters that a subword model covers, the most frequent first; 0.9995 for "
      "scripts "
      "of thousands of characters, such as Chinese.");
  key("subword_sampling", &S::subword_sampling, {.at_least = 0, .at_most = 1, .only_with = subwords},
      "Draws the subwords of the training text anew in each epoch: for `bpe` the probability that a merge is left out "
      "(BPE-dropout, often 0.05 to 0.1), for `unigram` the exponent of a segmentation's probability (subword "
      "regularization, "
      "often "
      "0.2; a smaller one draws more evenly). 0 for none. The training text then stays in memory.");
  key("max_length", &S::max_length, {.at_least = 1},
      "Longest sentence in training, in tokens; pairs with a longer side are dropped and counted.");
}

void add_model(ConfigTable& table) {
  const ConfigRows key(table, "model", &Config::model,
                       "The Transformer. The last seven keys name layers of the registry, to which a program may "
                       "add its own.");
  using S = ModelConfig;
  key("d_model", &S::d_model, {.at_least = 1, .at_most = 65536}, "Width of the model; a multiple of `heads`.");
  key("heads", &S::heads, {.at_least = 1}, "Heads of each attention.");
  key("encoder_layers", &S::encoder_layers, {.at_least = 1, .at_most = 1000}, "Layers of the encoder.");
  key("decoder_layers", &S::decoder_layers, {.at_least = 1, .at_most = 1000}, "Layers of the decoder.");
  key("d_feed_forward", &S::d_feed_forward, {.at_least = 1, .at_most = 1048576},
      "Width inside the feed-forward layers.");
  key("dropout", &S::dropout, {.at_least = 0, .below = 1},
      "Probability that training drops an element of what a sublayer adds.");
  key("embedding_dropout", &S::embedding_dropout, {.at_least = -1, .below = 1},
      "The same for embeddings with their positions; -1 for that of `dropout`.");
  key("attention_dropout", &S::attention_dropout, {.at_least = 0, .below = 1}, "The same for attention weights.");
  key("activation_dropout", &S::activation_dropout, {.at_least = 0, .below = 1},
      "The same inside the feed-forward layers.");
  key("activation", &S::activation, {.one_of = {"relu", "gelu", "silu"}}, "Activation inside the feed-forward layers.");
  key("norm_first", &S::norm_first, {},
      "Whether a sublayer's input is normalised (pre-norm) instead of its sum with the residual "
      "(post-norm).");
  key("tied_embeddings", &S::tied_embeddings, {.one_of = {"none", "decoder", "all"}},
      "Which matrices are one: none; target embedding and output projection; or these and the source "
      "embedding, which needs `data.shared_vocabulary`.");
  key("scale_embeddings", &S::scale_embeddings, {}, "Whether embeddings are multiplied by the root of `d_model`.");
  key("max_length", &S::max_length, {.at_least = 2, .at_most = 1000000},
      "Longest sequence that the model accepts, in tokens, and the number of learned positions. Times `d_model` at "
      "most "
      "16777216.");
  key("feed_forward", &S::feed_forward, {}, "Feed-forward layer.");
  key("norm", &S::norm, {}, "Normalisation.");
  key("positions", &S::positions, {}, "Position encoding: `sinusoidal` and `learned` are built in.");
  key("self_attention", &S::self_attention, {}, "Attention of a sequence to itself.");
  key("cross_attention", &S::cross_attention, {}, "Attention of the decoder to the encoder's output.");
  key("encoder_layer", &S::encoder_layer, {}, "Whole layer of the encoder.");
  key("decoder_layer", &S::decoder_layer, {}, "Whole layer of the decoder.");
}

void add_optimizer(ConfigTable& table) {
  const ConfigRows key(table, "optimizer", &Config::optimizer, "How gradients change the parameters.");
  using S = OptimizerConfig;
  const ConfigUse adams = {"optimizer.name", {"adam", "adamw"}};
  key("name", &S::name, {.one_of = {"adam", "adamw", "sgd"}}, "Optimizer.");
  key("learning_rate", &S::learning_rate, {.above = 0},
      "Highest learning rate; with the `noam` schedule, the factor of its formula.");
  key("beta1", &S::beta1, {.at_least = 0, .below = 1, .only_with = adams}, "Decay of the mean of gradients.");
  key("beta2", &S::beta2, {.at_least = 0, .below = 1, .only_with = adams}, "Decay of the mean of squared gradients.");
  key("epsilon", &S::epsilon, {.above = 0, .only_with = adams}, "Added to the denominator of an update.");
  key("weight_decay", &S::weight_decay, {.at_least = 0, .only_with = {"optimizer.name", {"adamw"}}},
      "Share of a weight that is taken off it at each update, times the learning rate.");
  key("momentum", &S::momentum, {.at_least = 0, .below = 1, .only_with = {"optimizer.name", {"sgd"}}},
      "Share of the last update's direction that the next one keeps.");
  key("clip_norm", &S::clip_norm, {.at_least = 0},
      "Longest gradient, as the norm over all parameters; a longer one is scaled down. 0 for no limit.");
}

void add_schedule(ConfigTable& table) {
  const ConfigRows key(table, "schedule", &Config::schedule, "How the learning rate changes from update to update.");
  using S = ScheduleConfig;
  key("name", &S::name, {.one_of = {"constant", "noam", "inverse_sqrt", "cosine", "linear", "plateau"}},
      "Shape of the learning rate after warm-up.");
  key("warmup_steps", &S::warmup_steps, {.at_least = 0},
      "Updates in which the learning rate rises from 0; `noam` and `inverse_sqrt` need at least 1.");
  key("final_ratio", &S::final_ratio,
      {.at_least = 0, .at_most = 1, .only_with = {"schedule.name", {"cosine", "linear", "plateau"}}},
      "Learning rate of the last update, with `plateau` the lowest of all, as a fraction of the highest.");
  key("factor", &S::factor, {.above = 0, .below = 1, .only_with = {"schedule.name", {"plateau"}}},
      "What a plateau multiplies the learning rate by.");
  key("patience", &S::patience, {.at_least = 1, .only_with = {"schedule.name", {"plateau"}}},
      "Validations in a row that make a plateau, none of them better by `training.best_metric` than the best before.");
}

ConfigTable make_table() {
  ConfigTable table;
  add_data(table);
  add_model(table);
  add_optimizer(table);
  add_schedule(table);
  add_work(table);
  table.checks = config_checks();
  return table;
}

}  // namespace

const ConfigKey* ConfigTable::find(std::string_view path) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const ConfigKey& key) { return key.path == path; });
  return found == keys.end() ? nullptr : &*found;
}

bool ConfigTable::has_section(std::string_view name) const {
  return std::any_of(sections.begin(), sections.end(), [&](const ConfigSection& s) { return s.name == name; });
}

const ConfigTable& config_table() {
  static const ConfigTable table = make_table();
  return table;
}

}  // namespace weft
