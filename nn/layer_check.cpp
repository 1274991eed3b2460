#include "weft/nn/layer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>

#include "weft/autograd/gradient_check.h"
#include "weft/nn/layer_checks.h"

namespace weft {
namespace {

constexpr const char* kPrecision = sizeof(real) == sizeof(double) ? "double" : "float, rough";

/// How a figure is told.
enum class Figure { kGradient, kBits, kHeap, kFinite };

/// One check: its name, what it is done by, how it is told, and what its failure means.
struct Check {
  const char* name;
  void (*run)(const LayerToCheck&, Finding&);
  Figure figure;
  const char* meaning;
};

constexpr Check kChecks[] = {
    {"gradients", check_gradients, Figure::kGradient,
     "a backward pass is wrong, and training would go astray; look at the operations between the input or parameter "
     "named and the result"},
    {"batch composition", check_batches, Figure::kBits,
     "a translation or a gradient would depend on its neighbours; let a row see rows of its own sentence alone "
     "(Ragged), "
     "and no size of the batch"},
    {"causality", check_causality, Figure::kBits,
     "the decoder would learn from the words that it is to predict; where LayerOptions::causal, let a row see none "
     "after it, nor how many there are"},
    {"decoding", check_decoding, Figure::kBits,
     "translation would not compute what was trained; keep the past in Context::decoding, or leave incremental() out"},
    {"threads", check_threads, Figure::kBits,
     "results would depend on the machine; cut work by sizes alone (parallel_for) and add partial sums in the order of "
     "the tiles"},
    {"tape", check_tape, Figure::kBits,
     "translation or its alignment would not be that of what was trained; do the same with a tape and without, with "
     "attention weights and without"},
    {"save and load", check_saving, Figure::kBits,
     "a checkpoint would not give the model back; make a Parameter of all that is learned, and keep nothing else from "
     "call to call"},
    {"randomness", check_randomness, Figure::kBits,
     "a resumed run would not be the run that was stopped; draw from Context::random alone, and in training only"},
    {"memory", check_memory, Figure::kHeap,
     "training would slow down or grow; take tensors alone, in the same sizes for the same batch, and keep none of a "
     "pass"},
    {"odd input", check_odd_input, Figure::kFinite,
     "one batch could turn all parameters into NaN; guard divisions, roots, logarithms and exponentials"},
};

std::string told(const Finding& f, Figure figure) {
  if (!f.instead.empty()) return f.instead;
  switch (figure) {
    case Figure::kGradient:
      return fmt::format("worst error {:.1e}, {:.0e} allowed ({})", f.worst, f.allowed, kPrecision);
    case Figure::kHeap:
      return f.passed ? "no tensor from the heap in a third step" : fmt::format("{:.0f}, 0 allowed", f.worst);
    case Figure::kFinite:
      return f.passed ? fmt::format("finite, {} tensors", f.count) : "NaN or infinity";
    case Figure::kBits:
      break;
  }
  if (f.worst == 0) return fmt::format("same bits, {} comparisons", f.count);
  return fmt::format("worst difference {:.1e}, {}", f.worst,
                     f.allowed == 0 ? "none allowed" : fmt::format("{:.0e} allowed", f.allowed));
}

/// To be called where anything thrown is handled: what it says; passes it on if it tells of the machine and not of the
/// layer, as memory or files cannot be had.
std::string error_of_layer() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {  // std::filesystem's are of this kind
    throw;
  } catch (const CheckError&) {
    throw;
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with("out of memory")) throw;  // a tensor's
    return error.what();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

LayerCheckRow run(const Check& check, const std::vector<LayerToCheck>& sides) {
  LayerCheckRow row{check.name, "", false, "", check.meaning};
  Finding finding;
  for (const LayerToCheck& side : sides) {
    const bool passed = finding.passed;
    try {
      check.run(side, finding);
    } catch (...) {
      finding.place = error_of_layer();
      finding.passed = false;
      finding.instead = "an exception";
    }
    if (passed && !finding.passed) {
      finding.place = fmt::format("in the {}: {}", side.options.causal ? "decoder" : "encoder", finding.place);
      break;
    }
  }
  row.result = told(finding, check.figure);
  row.passed = finding.passed;
  row.place = finding.place;
  return row;
}

}  // namespace

bool LayerCheck::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const LayerCheckRow& row) { return row.passed; });
}

LayerOptions small_layer_options() {
  LayerOptions options;
  options.d_model = 8;
  options.heads = 2;
  options.d_feed_forward = 12;
  options.max_length = 80;
  options.dropout = options.attention_dropout = options.activation_dropout = static_cast<real>(0.2);
  return options;
}

LayerCheck check_layer(const Registry& registry, std::string_view slot, std::string_view name,
                       const LayerOptions& options) {
  registry.require(slot, name);
  LayerCheck result{std::string(slot), std::string(name), {}, {}};
  std::vector<LayerToCheck> sides, decoder;
  for (const bool causal : {false, true}) {
    if (causal ? slot == "encoder_layer" : Registry::takes_cross_layer(slot)) continue;
    LayerToCheck side{registry, slot, name, options};
    side.options.causal = causal;
    sides.push_back(side);
    if (causal) decoder.push_back(side);
  }
  try {
    LayerTrial trial = sides[0].make();
    for (ParameterEntry entry : trial.parameters().entries()) {
      entry.name = LayerTrial::member(entry.name);
      result.parameters.push_back(std::move(entry));
    }
  } catch (...) {
    error_of_layer();  // every row tells of it
  }
  for (const Check& check : kChecks) {
    const bool of_decoder = check.run == check_causality || check.run == check_decoding;
    if (of_decoder && decoder.empty()) continue;
    result.rows.push_back(run(check, of_decoder ? decoder : sides));
  }
  return result;
}

}  // namespace weft
