#include "weft/train/translation_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include "weft/core/error.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

TransformerOptions with_vocabularies(TransformerOptions options, const Vocabulary& source, const Vocabulary& target) {
  options.source_vocabulary = source.size();
  options.target_vocabulary = target.size();
  return options;
}

/// Says that a model cannot fit, instead of letting the system end the program while it fills the memory.
void require_memory(const ParameterSet& parameters) {
  const double needed = 2.0 * sizeof(real) * static_cast<double>(parameters.count());  // with the gradients
  const double there = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  constexpr double kGiB = 1 << 30;
  if (needed <= there) return;
  throw ConfigError(fmt::format(
      "a model of {} parameters takes {:.1f} GiB with their gradients, and this machine has {:.1f} GiB; lower "
      "model.d_model, model.d_feed_forward, the numbers of layers or data.max_vocabulary",
      format_count(parameters.count()), needed / kGiB, there / kGiB));
}

}  // namespace

TranslationModel::TranslationModel(Config config, Vocabulary source, Vocabulary target, const Registry& registry,
                                   const std::function<void(const ParameterSet&)>& check)
    : config_(std::move(config)),
      source_(std::move(source)),
      target_(std::move(target)),
      source_tokenizer_(make_tokenizer(config_.data.tokenizer, config_.data.lowercase, source_.subwords())),
      target_tokenizer_(make_tokenizer(config_.data.tokenizer, config_.data.lowercase, target_.subwords())),
      parameters_(static_cast<std::uint64_t>(config_.training.seed)),
      transformer_(parameters_, with_vocabularies(config_.model, source_, target_), registry) {
  if (check) check(parameters_);
  require_memory(parameters_);
  parameters_.allocate();
}

}  // namespace weft
