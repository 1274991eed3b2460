#include "weft/train/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/core/random.h"
#include "weft/core/threads.h"
#include "weft/data/vocabulary.h"
#include "weft/train/decode_rules.h"

namespace weft {
namespace {

struct Candidate {
  double weight;  // relative to that of the most probable, which is 1
  TokenId token;
};

bool more_probable(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

double total(const std::vector<Candidate>& candidates) {
  double sum = 0;
  for (const Candidate& one : candidates) sum += one.weight;
  return sum;
}

/// Keeps the k most probable, in order.
void cut_to_count(std::vector<Candidate>& candidates, Index k) {
  if (static_cast<Index>(candidates.size()) <= k) return;
  std::nth_element(candidates.begin(), candidates.begin() + (k - 1), candidates.end(), more_probable);
  candidates.resize(static_cast<std::size_t>(k));
  std::sort(candidates.begin(), candidates.end(), more_probable);
}

/// Keeps the fewest most probable whose share is at least p, in order.
void cut_to_share(std::vector<Candidate>& candidates, double p) {
  const double all = total(candidates);
  // Those below 1 - p of the mean weight are at most 1 - p of all together: the others reach p without them.
  const double least = (1 - p) * all / static_cast<double>(candidates.size());
  candidates.erase(
      std::remove_if(candidates.begin(), candidates.end(), [=](const Candidate& one) { return one.weight < least; }),
      candidates.end());
  std::sort(candidates.begin(), candidates.end(), more_probable);
  double sum = 0;
  std::size_t count = 0;
  while (count < candidates.size() && !(sum >= p * all)) sum += candidates[count++].weight;
  candidates.resize(count);
}

/// A sample that is being drawn: a row of the decoder.
struct Draw {
  Index sentence, number;
  Random random;
  double log_probability = 0;
};

/// What a draw must not write next, rising.
std::vector<TokenId> forbidden_tokens(const std::vector<TokenId>& written, const SearchOptions& options) {
  std::vector<TokenId> tokens = repeating_tokens(written, options.no_repeat_ngram);
  tokens.push_back(kBegin);
  if (!options.allow_unknown) tokens.push_back(kUnknown);
  if (static_cast<Index>(written.size()) < options.min_length) tokens.push_back(kEnd);
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace

TokenId sampled_token(std::span<const real> logits, std::span<const TokenId> forbidden, const SamplingOptions& options,
                      double uniform) {
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  double largest = -std::numeric_limits<double>::infinity();
  auto next = forbidden.begin();
  for (std::size_t v = 0; v < logits.size(); ++v) {
    const auto token = static_cast<TokenId>(v);
    while (next != forbidden.end() && *next < token) ++next;
    if (next != forbidden.end() && *next == token) continue;
    const auto logit = static_cast<double>(logits[v]);
    if (std::isnan(logit)) return -1;
    largest = std::max(largest, logit);
    candidates.push_back({logit, token});
  }
  if (!std::isfinite(largest)) return -1;
  for (Candidate& one : candidates) one.weight = std::exp((one.weight - largest) / options.temperature);
  if (options.top_k > 0) cut_to_count(candidates, options.top_k);
  if (options.top_p < 1) cut_to_share(candidates, options.top_p);
  const double wanted = uniform * total(candidates);
  double sum = 0;
  TokenId last = candidates.front().token;
  for (const Candidate& one : candidates) {
    if (one.weight > 0) last = one.token;
    sum += one.weight;
    if (sum > wanted) break;
  }
  return last;
}

std::vector<std::vector<Hypothesis>> sample(TransformerSpan models, std::span<const TokenId> source,
                                            const Ragged& source_rows, std::span<const Index> lines,
                                            const SearchOptions& options, const SamplingOptions& sampling) {
  constexpr Index kMostSamples = 1 << 20;  // of a line, so that no two draws have the same random numbers
  EnsembleDecoder decoder(models, source, source_rows);
  const Index count = source_rows.sequences(), vocabulary = decoder.vocabulary();
  std::vector<std::vector<Hypothesis>> results(static_cast<std::size_t>(count));
  std::vector<Index> limits;
  std::vector<Draw> draws;
  Ragged rows;
  for (Index s = 0; s < count; ++s) {
    limits.push_back(length_limit(source_rows.length(s) - 1, max_length(models), options));
    results[static_cast<std::size_t>(s)].resize(static_cast<std::size_t>(options.n_best));
    rows.append(options.n_best);
    for (Index number = 0; number < options.n_best; ++number) {
      const Index stream = lines[static_cast<std::size_t>(s)] * kMostSamples + number;
      draws.push_back({s, number, Random(sampling.seed, static_cast<std::uint64_t>(stream))});
    }
  }
  std::vector<Index> parents;
  std::vector<TokenId> tokens(draws.size(), kBegin), chosen;
  std::vector<real> log_sums;
  for (Index length = 0; !draws.empty(); ++length) {  // every row has `length` tokens
    decoder.advance(parents, tokens, rows);
    const Tensor logits = decoder.next_logits();
    row_log_sums(logits, log_sums);
    require_numbers(log_sums, models.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt);
    chosen.resize(draws.size());
    parallel_for(rows.rows(), 1, [&](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        Draw& draw = draws[static_cast<std::size_t>(row)];
        TokenId token = kEnd;
        if (length < limits[static_cast<std::size_t>(draw.sentence)]) {
          const auto forbidden = forbidden_tokens(decoder.prefix(row), options);
          token = sampled_token(logits.row_range(row, row + 1).values(), forbidden, sampling, draw.random.uniform());
          if (token < 0) token = kEnd;  // nothing else is allowed
        }
        chosen[static_cast<std::size_t>(row)] = token;
        const real one = logits.data()[row * vocabulary + token] - log_sums[static_cast<std::size_t>(row)];
        draw.log_probability += std::min<double>(static_cast<double>(one), 0);
      }
    });

    std::vector<Draw> going_on;
    std::vector<Index> lengths(static_cast<std::size_t>(count), 0);
    parents.clear();
    tokens.clear();
    for (std::size_t row = 0; row < draws.size(); ++row) {
      const Draw& draw = draws[row];
      if (chosen[row] != kEnd) {
        parents.push_back(static_cast<Index>(row));
        tokens.push_back(chosen[row]);
        ++lengths[static_cast<std::size_t>(draw.sentence)];
        going_on.push_back(draw);
        continue;
      }
      results[static_cast<std::size_t>(draw.sentence)][static_cast<std::size_t>(draw.number)] = {
          decoder.prefix(static_cast<Index>(row)), draw.log_probability,
          draw.log_probability / length_penalty(length + 1, options.length_penalty)};
    }
    draws = std::move(going_on);
    rows = Ragged::of_lengths(lengths);
  }
  return results;
}

}  // namespace weft
