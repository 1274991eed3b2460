// Word alignments from attention, and unknown words copied by them.
#include "weft/train/alignment.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "small_model.h"
#include "throws.h"
#include "tiny_run.h"
#include "weft/core/error.h"
#include "weft/nn/attention.h"
#include "weft/train/translate.h"

using namespace weft;
using Words = std::vector<std::string>;

namespace {

/// A model whose weights are far from those that training begins with.
std::unique_ptr<TranslationModel> wild_model(const Config& config, std::uint64_t seed) {
  auto model = tiny_model(config);
  perturb(model->parameters(), seed);
  return model;
}

void add_to_bias(TranslationModel& model, TokenId token, real amount) {
  for (const ParameterEntry& entry : model.parameters().entries()) {
    if (entry.name == "output.bias") {
      model.parameters().value(entry).values()[static_cast<std::size_t>(token)] += amount;
    }
  }
}

/// Cross-attention that shows its weights as `bend` leaves them.
struct BentAttention : CrossLayer {
  BentAttention(Module& parent, std::string_view name, const LayerOptions& options)
      : CrossLayer(parent, name), inner_(*this, "inner", options) {}
  Var operator()(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    Context within = context;
    AttentionRecord record;
    if (context.attention != nullptr) within.attention = &record;
    const Var result = inner_(within, x, rows, memory, memory_rows);
    if (context.attention != nullptr) {
      bend(record.back().second);
      context.attention->emplace_back(name(), std::move(record.back().second));
    }
    return result;
  }
  MultiHeadCrossAttention inner_;
  static inline std::function<void(std::vector<Tensor>&)> bend;
};

Batch batch_of(const std::vector<std::vector<TokenId>>& sources, const std::vector<std::vector<TokenId>>& targets) {
  Corpus corpus;
  std::vector<Index> sentences;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    corpus.source.append(sources[i]);
    corpus.target.append(targets[i]);
    sentences.push_back(static_cast<Index>(i));
  }
  return make_batch(corpus, sentences);
}

}  // namespace

TEST_CASE("each target word is linked to the source word of the largest weight, </s> aside") {
  const Alignment alignment{3, 2, {0.1f, 0.3f, 0.2f, 0.4f, 0.3f, 0.2f, 0.3f, 0.2f, 0, 0, 0, 1}};
  CHECK(best_sources(alignment) == std::vector<Index>{1, 0});
  CHECK(pharaoh(alignment) == "1-0 0-1");
  CHECK(alignment.weight(1, 2) == 0.3f);
  CHECK(pharaoh({}).empty());
  CHECK(pharaoh({2, 0, {0.5f, 0.2f, 0.3f}}).empty());
}

TEST_CASE("alignments are the mean over the heads of the last layer, and over models") {
  const TransformerOptions options = small_options();
  ParameterSet first_parameters(1), second_parameters(2);
  const Transformer first(first_parameters, options, standard_layers()),
      second(second_parameters, options, standard_layers());
  perturb(first_parameters, 1);
  perturb(second_parameters, 2);
  const Batch batch = batch_of({{5, 6, 7, 8}, {9}}, {{4, 5}, {6, 7, 8}});
  const Transformer *const one[] = {&first}, *const other[] = {&second}, *const both[] = {&first, &second};
  const auto a = align(one, batch), b = align(other, batch), mean = align(both, batch);
  const auto heads = cross_attention_weights(first, batch);
  REQUIRE(a.size() == 2);
  for (std::size_t p = 0; p < 2; ++p) {
    CHECK(a[p].source == (p == 0 ? 4 : 1));
    CHECK(a[p].target == (p == 0 ? 2 : 3));
    REQUIRE(heads[p].shape() == Shape{3, a[p].target + 1, a[p].source + 1});
    bool differ = false;
    for (Index j = 0; j <= a[p].target; ++j) {
      float sum = 0;
      for (Index i = 0; i <= a[p].source; ++i) {
        real of_heads = 0;
        for (Index head = 0; head < 3; ++head) {
          of_heads += heads[p].data()[(head * (a[p].target + 1) + j) * (a[p].source + 1) + i];
        }
        CHECK(a[p].weight(j, i) == doctest::Approx(static_cast<double>(of_heads) / 3).epsilon(1e-5));
        CHECK(mean[p].weight(j, i) == doctest::Approx((a[p].weight(j, i) + b[p].weight(j, i)) / 2).epsilon(1e-5));
        differ = differ || std::abs(a[p].weight(j, i) - b[p].weight(j, i)) > 0.01f;
        sum += a[p].weight(j, i);
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-5));
    }
    CHECK(differ);
  }
  // The same pairs one by one, which are never mixed.
  CHECK(pharaoh(align(one, batch_of({{9}}, {{6, 7, 8}}))[0]) == pharaoh(a[1]));
  CHECK(pharaoh(a[1]) == "0-0 0-1 0-2");
}

TEST_CASE("attention that a layer shows in other numbers or shapes than the sentences have is refused by its name") {
  TransformerOptions options = small_options();
  options.cross_attention = "bent";
  Registry registry = standard_layers();
  registry.add<BentAttention>("cross_attention", "bent");
  ParameterSet parameters;
  const Transformer model(parameters, options, registry);
  const Transformer* const models[] = {&model};
  const Batch batch = batch_of({{5, 6, 7, 8}, {9}}, {{4, 5}, {6, 7, 8}});
  const auto refused = [&](std::function<void(std::vector<Tensor>&)> bend, const std::string& problem) {
    BentAttention::bend = std::move(bend);
    CHECK_THROWS_SAYING(align(models, batch), "cross_attention: shows " + problem, ShapeError);
  };
  refused([](auto& weights) { weights.pop_back(); },
          "the attention of 1 sentences of 2; it must put one tensor for each");
  refused([](auto& weights) { weights.clear(); }, "the attention of 0 sentences of 2;");
  refused([](auto& weights) { weights.push_back(weights[0]); }, "the attention of 3 sentences of 2;");
  refused([](auto& weights) { std::swap(weights[0], weights[1]); },
          "[3, 4, 2] as the attention of a sentence; it must be [heads, 3, 5]");
  refused([](auto& weights) { weights[1] = Tensor(); },
          "nothing as the attention of a sentence; it must be [heads, 4, 2]");
  refused([](auto& weights) { weights[1] = weights[1].row_range(0, 0); }, "[0, 4, 2] as the attention of a sentence");
  refused([](auto& weights) { weights[1] = weights[1].reshaped({12, 2}); }, "[12, 2] as the attention of a sentence");
  BentAttention::bend = [](auto& weights) { weights[1] = weights[1].row_range(0, 1); };  // other heads than in others
  CHECK(align(models, batch).size() == 2);
}

TEST_CASE("JSON holds tokens and weights with </s>") {
  const Alignment alignment{1, 1, {0.25f, 0.75f, 1.0f / 3, 2.0f / 3}};
  const std::string line = alignment_json(7, Words{"a\"b"}, Words{"c"}, alignment);
  CHECK(line.ends_with("}\n"));
  const auto json = nlohmann::json::parse(line);
  CHECK(json["line"] == 7);
  CHECK(json["source"] == Words{"a\"b", "</s>"});
  CHECK(json["target"] == Words{"c", "</s>"});
  CHECK(json["weights"].dump() == "[[0.25,0.75],[0.333333,0.666667]]");
  CHECK(alignment_json(8, {}, {}, {}) == "{\"line\":8,\"source\":[],\"target\":[],\"weights\":[]}\n");
}

TEST_CASE("a copied word loses the marks of the source's spacing and keeps its letters") {
  const auto word = make_tokenizer("word", false), space = make_tokenizer("whitespace", false);
  const std::string glued = "\xEF\xBF\xAD", spaced = "\xE2\x96\x81";
  CHECK(copied_token(*word, "Zorblax") == "Zorblax");
  CHECK(copied_token(*word, glued + "Zorblax") == "Zorblax");
  CHECK(copied_token(*word, spaced + "?") == "?");
  CHECK(copied_token(*word, "=" + glued) == "=");
  CHECK(copied_token(*word, "n't") == "n't");
  CHECK(copied_token(*word, "l'") == "l'");
  CHECK(copied_token(*word, glued) == glued);
  CHECK(copied_token(*space, glued + "<unk>") == glued + "<unk>");
  CHECK(copied_token(*space, "a.b") == "a.b");
  const auto joined = [&](Words tokens, std::size_t at, const std::string& source) {
    tokens[at] = copied_token(*word, source);
    return word->join(tokens);
  };
  CHECK(joined({"I", "saw", "<unk>", "."}, 2, "Zorblax") == "I saw Zorblax.");
  CHECK(joined({"(", "<unk>", ")"}, 1, glued + "Zorblax") == "(Zorblax)");
  CHECK(joined({"what", "<unk>"}, 1, spaced + "?") == "what?");
  CHECK(joined({"do", "<unk>", "go"}, 1, "n't") == "don't go");
}

TEST_CASE("<unk> becomes the source word it looked at, and is never written otherwise") {
  auto model = wild_model(tiny_config({"model.max_length=30", "decoding.max_length_ratio=1"}), 4);
  const Words lines{"a zebra b, (yak) c", "", "gnu"};
  SearchOptions options = search_options(model->config().decoding);
  options.beam = options.n_best = 3;
  add_to_bias(*model, kUnknown, 4);
  for (const TranslatedLine& line : translate(*model, lines, options, 100)) {
    for (const Translation& one : line.translations) CHECK(one.text.find("<unk>") == std::string::npos);
  }
  options.allow_unknown = true;
  const TranslationModel* const models[] = {model.get()};
  const auto lines_found = translate(models, lines, {.search = options, .alignments = true});
  const Words source = model->source_tokenizer().split(lines[0]);
  CHECK(lines_found[0].source == source);
  std::vector<TokenId> ids = model->source_vocabulary().ids(source);
  ids.push_back(kEnd);
  const auto hypotheses =
      search(model->transformer(), ids, Ragged::of_lengths({static_cast<Index>(ids.size())}), options);
  REQUIRE(lines_found[0].translations.size() == 3);
  std::size_t copied = 0;
  for (std::size_t h = 0; h < 3; ++h) {
    const Translation& one = lines_found[0].translations[h];
    CHECK(one.text.find("<unk>") == std::string::npos);
    CHECK(one.text == model->target_tokenizer().join(one.tokens));
    REQUIRE(one.tokens.size() == hypotheses[0][h].tokens.size());
    CHECK(one.alignment.target == static_cast<Index>(one.tokens.size()));
    const auto best = best_sources(one.alignment);
    for (std::size_t j = 0; j < one.tokens.size(); ++j) {
      if (hypotheses[0][h].tokens[j] == kUnknown) {
        CHECK(one.tokens[j] == source[static_cast<std::size_t>(best[j])]);
        ++copied;
      } else {
        CHECK(one.tokens[j] == model->target_vocabulary().token(hypotheses[0][h].tokens[j]));
      }
    }
  }
  CHECK(copied > 3);
  REQUIRE(lines_found[1].translations.size() == 1);
  CHECK(lines_found[1].translations[0].text.empty());
  CHECK(lines_found[1].translations[0].alignment.weights.empty());
  for (const Translation& one : lines_found[2].translations) {  // nothing else to copy
    for (std::size_t j = 0; j < one.tokens.size(); ++j) {
      CHECK((one.tokens[j] == "gnu" || model->target_vocabulary().id(one.tokens[j]) != kUnknown));
    }
  }
  // Alignments are left out unless asked for, and copying goes on without.
  const auto plain = translate(models, lines, {.search = options});
  CHECK(plain[0].translations[0].text == lines_found[0].translations[0].text);
  CHECK(plain[0].translations[0].alignment.weights.empty());
}

TEST_CASE("an alignment belongs to its translation, whatever is translated beside it") {
  const auto model = wild_model(tiny_config(), 5);
  const TranslationModel* const models[] = {model.get()};
  const Words lines = letters(12, 3, 1, 7).source;
  const TranslateOptions options{
      .search = {.beam = 4, .n_best = 2, .min_length = 3}, .alignments = true, .batch_tokens = 60};
  const auto together = translate(models, lines, options);
  std::size_t links = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto alone = translate(models, std::span(lines).subspan(i, 1), options);
    for (std::size_t h = 0; h < 2; ++h) {
      const Translation& one = together[i].translations[h];
      CHECK(pharaoh(one.alignment) == pharaoh(alone[0].translations[h].alignment));
      links += one.tokens.size();
      std::vector<TokenId> target = model->target_vocabulary().ids(one.tokens);
      const Transformer* const networks[] = {&model->transformer()};
      const auto again = align(networks, batch_of({model->source_vocabulary().ids(together[i].source)}, {target}));
      CHECK(pharaoh(one.alignment) == pharaoh(again[0]));
    }
  }
  CHECK(links > 30);
}

TEST_CASE("samples of lines are the same whole or in parts") {
  const auto model = wild_model(tiny_config(), 5);
  const TranslationModel* const models[] = {model.get()};
  Words lines = letters(20, 3, 1, 7).source;
  lines.insert(lines.begin() + 3, "");
  TranslateOptions options{.search = {.n_best = 2}, .sampling = SamplingOptions{.top_k = 5, .seed = 7}};
  const auto whole = translate(models, lines, options);
  std::size_t different = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    options.first_line = static_cast<Index>(i) + 1;
    const auto alone = translate(models, std::span(lines).subspan(i, 1), options);
    REQUIRE(alone[0].translations.size() == whole[i].translations.size());
    for (std::size_t h = 0; h < alone[0].translations.size(); ++h) {
      CHECK(alone[0].translations[h].text == whole[i].translations[h].text);
    }
    different += whole[i].translations.front().text != whole[i].translations.back().text ? 1 : 0;
  }
  CHECK(different > 10);
  options.first_line = 2;
  CHECK(translate(models, std::span(lines).first(1), options)[0].translations[0].text != whole[0].translations[0].text);
}

TEST_CASE("models that read or write other tokens do not work together") {
  const auto a = tiny_model(tiny_config()), b = tiny_model(tiny_config({"training.seed=2", "model.d_model=8"}));
  const Words names{"first", "second"};
  const auto check = [&](const TranslationModel& other, const std::string& problem) {
    const TranslationModel* const models[] = {a.get(), &other};
    const std::string text = thrown_text<ConfigError>([&] { require_same_tokens(models, names); });
    CAPTURE(text);
    CHECK(text.starts_with("first and second: "));
    CHECK(text.find(problem) != std::string::npos);
  };
  const TranslationModel* const models[] = {a.get(), b.get()};
  CHECK_NOTHROW(require_same_tokens(models, names));
  check(*tiny_model(tiny_config({"data.tokenizer=\"character\""})), "tokenizers differ");
  check(*tiny_model(tiny_config({"data.lowercase=true"})), "tokenizers differ");
  check(*tiny_model(tiny_config({"data.max_vocabulary=8"})), "source vocabularies differ (9 and 8 tokens)");
  const Config config = tiny_config();
  Vocabularies vocabularies = build_vocabularies(config.data, letters(100, 1));
  auto tokens = vocabularies.target.tokens();
  std::swap(tokens[4], tokens[5]);
  const TranslationModel swapped(config, vocabularies.source, Vocabulary::from_tokens(tokens), standard_layers());
  check(swapped, "target vocabularies differ (token 4 is \"" + tokens[5] + "\" and \"" + tokens[4] + "\")");
}
