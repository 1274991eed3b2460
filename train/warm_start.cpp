#include "weft/train/warm_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "weft/train/checkpoint.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

/// The vocabulary whose tokens the rows of a parameter stand for; null for any
/// other parameter.
const Vocabulary* vocabulary_of(const TranslationModel& model, std::string_view parameter) {
  if (parameter == "source_embedding.weight") return &model.source_vocabulary();
  const bool target =
      parameter == "target_embedding.weight" || parameter == "output.weight" || parameter == "output.bias";
  return target ? &model.target_vocabulary() : nullptr;
}

/// Copies the rows of tokens that both vocabularies have; returns how many.
Index copy_rows(const Tensor& from, const Vocabulary& theirs, Tensor to, const Vocabulary& ours) {
  std::unordered_map<std::string_view, Index> rows;
  for (Index row = 0; row < theirs.size(); ++row) rows.emplace(theirs.tokens()[static_cast<std::size_t>(row)], row);
  const Index width = to.size() / ours.size();
  Index copied = 0;
  for (Index row = 0; row < ours.size(); ++row) {
    const auto found = rows.find(ours.tokens()[static_cast<std::size_t>(row)]);
    if (found == rows.end()) continue;
    std::copy_n(from.data() + found->second * width, width, to.data() + row * width);
    ++copied;
  }
  return copied;
}

/// Whether shapes are equal but for the number of rows.
bool same_rows(const Shape& a, const Shape& b) { return a.rank() == b.rank() && (a.rank() == 1 || a[1] == b[1]); }

}  // namespace

std::vector<std::string> warm_start(TranslationModel& model, const std::filesystem::path& path,
                                    const Registry& registry) {
  const Checkpoint other = load_checkpoint(path, registry);
  ParameterSet& theirs = other.model->parameters();
  std::unordered_map<std::string_view, const ParameterEntry*> there;
  for (const ParameterEntry& entry : theirs.entries()) there.emplace(entry.name, &entry);
  Index whole = 0, in_part = 0;
  std::vector<std::string> notes;
  for (const ParameterEntry& entry : model.parameters().entries()) {
    const auto found = there.find(entry.name);
    if (found == there.end()) {
      notes.push_back(fmt::format("  {}: not taken, the checkpoint has none", entry.name));
      continue;
    }
    const ParameterEntry& theirs_entry = *found->second;
    const Tensor from = theirs.value(theirs_entry);
    there.erase(found);
    Tensor to = model.parameters().value(entry);
    const Vocabulary* const ours = vocabulary_of(model, entry.name);
    if (ours != nullptr && same_rows(entry.shape, theirs_entry.shape)) {
      const Index copied = copy_rows(from, *vocabulary_of(*other.model, entry.name), to, *ours);
      ++(copied == ours->size() ? whole : in_part);
      if (copied < ours->size()) {
        notes.push_back(fmt::format("  {}: {} of {} rows, those of tokens that the checkpoint knows", entry.name,
                                    format_count(copied), format_count(ours->size())));
      }
    } else if (entry.shape == theirs_entry.shape) {
      std::copy(from.values().begin(), from.values().end(), to.values().begin());
      ++whole;
    } else {
      notes.push_back(fmt::format("  {}: not taken, its shape is {} and the checkpoint's {}", entry.name,
                                  to_string(entry.shape), to_string(theirs_entry.shape)));
    }
  }
  notes.insert(notes.begin(), fmt::format("warm start       {} of {} parameters as in {}, {} in part", whole,
                                          model.parameters().entries().size(), path.string(), in_part));
  if (!there.empty()) {
    notes.push_back(fmt::format("  {} parameters of the checkpoint have no place in this model", there.size()));
  }
  return notes;
}

}  // namespace weft
