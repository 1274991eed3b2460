// weft check: whether a layer is fit to be part of a model, checked on the layer alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/core/threads.h"
#include "weft/nn/layer_check.h"
#include "weft/train/commands.h"
#include "weft/train/config.h"
#include "weft/train/layer_timing.h"
#include "weft/train/output_file.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr bool kDouble = sizeof(real) == sizeof(double);

/// The layer that fills a slot unless a config names another.
std::string default_layer(const std::string& slot) {
  const TransformerOptions o;
  const std::pair<const char*, const std::string&> names[] = {
      {"feed_forward", o.feed_forward},   {"norm", o.norm},
      {"positions", o.positions},         {"self_attention", o.self_attention},
      {"encoder_layer", o.encoder_layer}, {"cross_attention", o.cross_attention},
      {"decoder_layer", o.decoder_layer}};
  return std::find_if(std::begin(names), std::end(names), [&](const auto& pair) { return pair.first == slot; })->second;
}

/// The slots that have a layer of that name: all of them, or the one asked for.
std::vector<std::string> slots_to_check(const Registry& registry, const std::string& name, const Arguments& arguments) {
  std::vector<std::string> slots = Registry::slots(), found, names;
  std::string owner = "this program", has = "knows";
  if (arguments.has("slot")) {
    const std::string slot = arguments.text("slot");
    if (std::count(slots.begin(), slots.end(), slot) == 0) {
      throw ConfigError(
          fmt::format("check: --slot {} is not one of {}{}", slot, fmt::join(slots, ", "), suggestion(slot, slots)));
    }
    slots = {slot};
    owner = "the slot " + slot;
    has = "has";
  }
  std::string known;
  for (const std::string& slot : slots) {
    const std::vector<std::string> of_slot = registry.names(slot);
    if (std::count(of_slot.begin(), of_slot.end(), name) != 0) found.push_back(slot);
    names.insert(names.end(), of_slot.begin(), of_slot.end());
    known += fmt::format("{}{} ({})", known.empty() ? "" : "; ", slot, fmt::join(of_slot, ", "));
  }
  if (found.empty()) {
    throw ConfigError(fmt::format("check: \"{}\" is not a layer that {} {}{}; it {} {}", name, owner, has,
                                  suggestion(name, names), has, known));
  }
  return found;
}

/// A layer with all that was found of it.
struct Report {
  LayerCheck check;
  LayerOptions options, timed;
  LayerTiming timing, usual;
  std::string no_timing;  ///< why there is none
  std::string usual_name;
};

Report report_on(const Registry& registry, const std::string& slot, const std::string& name, const Config* config) {
  Report report;
  report.options = config != nullptr ? layer_options(config->model, registry, false) : small_layer_options();
  report.timed = config != nullptr ? report.options : LayerOptions();
  report.timed.causal = slot != "encoder_layer";
  report.check = check_layer(registry, slot, name, report.options);
  report.usual_name = default_layer(slot);
  try {
    const std::vector<LayerTiming> timings = time_layers(registry, slot, {name, report.usual_name}, report.timed);
    report.timing = timings[0];
    report.usual = timings[1];
  } catch (const std::exception& error) {  // timing passes or fails nothing
    report.no_timing = error.what();
  } catch (...) {
    report.no_timing = "the layer threw something that is no std::exception";
  }
  return report;
}

std::string sizes(const LayerOptions& o) {
  return fmt::format("d_model {}, heads {}, d_feed_forward {}, max_length {}", o.d_model, o.heads, o.d_feed_forward,
                     o.max_length);
}

std::string to_text(const Report& report) {
  const LayerCheck& check = report.check;
  std::vector<std::vector<std::string>> rows{{"check", "result", ""}};
  for (const LayerCheckRow& row : check.rows) rows.push_back({row.check, row.result, row.passed ? "ok" : "FAILED"});
  const auto time = [&](const char* what, double nanoseconds, double usual) {
    rows.push_back({what, fmt::format("{:.0f} ns a row, {} rows a second{}", nanoseconds,
                                      format_count(static_cast<Index>(1e9 / std::max(nanoseconds, 1e-3))),
                                      check.name == report.usual_name
                                          ? ""
                                          : fmt::format(", {:.2f} x {}", nanoseconds / usual, report.usual_name))});
  };
  if (report.no_timing.empty()) {
    time("time, forward", report.timing.forward, report.usual.forward);
    time("time, backward", report.timing.backward, report.usual.backward);
  }
  std::string text =
      fmt::format("{} \"{}\", {}\n\n{}", check.slot, check.name, sizes(report.options), format_table(rows));
  text += report.no_timing.empty() ? fmt::format("timed with {}; threads: {}\n", sizes(report.timed), threads())
                                   : fmt::format("not timed with {}: {}\n", sizes(report.timed), report.no_timing);
  for (const LayerCheckRow& row : check.rows) {
    if (!row.passed) text += fmt::format("\n{} FAILED {}\n  {}\n", row.check, row.place, row.meaning);
  }
  if (check.parameters.empty()) return text + "\nno parameters\n";
  rows = {{"parameter", "shape", "numbers"}};
  for (const ParameterEntry& entry : check.parameters) {
    rows.push_back({entry.name, to_string(entry.shape), format_count(entry.shape.size())});
  }
  return text + "\n" + format_table(rows, "llr");
}

Json to_json(const Report& report) {
  const auto number = [](real value) { return Json::parse(fmt::format("{}", value)); };  // 0.1, not 0.10000000149
  const auto options = [&number](const LayerOptions& o) {
    return Json{{"d_model", o.d_model},
                {"heads", o.heads},
                {"d_feed_forward", o.d_feed_forward},
                {"max_length", o.max_length},
                {"dropout", number(o.dropout)},
                {"attention_dropout", number(o.attention_dropout)},
                {"activation_dropout", number(o.activation_dropout)},
                {"norm_first", o.norm_first}};
  };
  Json json{{"slot", report.check.slot},          {"name", report.check.name}, {"passed", report.check.passed()},
            {"options", options(report.options)}, {"checks", Json::array()},   {"parameters", Json::array()}};
  for (const LayerCheckRow& row : report.check.rows) {
    json["checks"].push_back({{"check", row.check},
                              {"passed", row.passed},
                              {"result", row.result},
                              {"place", row.place},
                              {"meaning", row.meaning}});
  }
  for (const ParameterEntry& entry : report.check.parameters) {
    Json shape = Json::array();
    for (int d = 0; d < entry.shape.rank(); ++d) shape.push_back(entry.shape[d]);
    json["parameters"].push_back({{"name", entry.name}, {"shape", shape}});
  }
  if (report.no_timing.empty()) {
    json["timing"] = {{"options", options(report.timed)},
                      {"threads", threads()},
                      {"forward_nanoseconds_per_row", report.timing.forward},
                      {"backward_nanoseconds_per_row", report.timing.backward},
                      {"default", report.usual_name},
                      {"default_forward_nanoseconds_per_row", report.usual.forward},
                      {"default_backward_nanoseconds_per_row", report.usual.backward}};
  }
  return json;
}

int check(const Arguments& arguments, const Registry& registry) {
  const auto& words = arguments.positional();
  if (words.size() < 2 || words.size() > 3 || words[0] != "layer") {
    arguments.refuse("expected layer, then the name of a layer, then perhaps a configuration");
  }
  const std::vector<std::string> slots = slots_to_check(registry, words[1], arguments);
  const std::vector<std::string> overrides = arguments.all("set");
  const bool configured = words.size() == 3 || !overrides.empty();
  Config config;
  if (words.size() == 3) require_not_printed_to({words[2]});
  if (configured) {
    config = words.size() == 3 ? load_config(words[2], overrides) : parse_config("{}", "--set", overrides);
    check_options(config.model, registry);
  }
  use_threads(arguments, config.training.threads);
  bool passed = true;
  std::string text;
  Json json{{"precision", kDouble ? "double" : "float"}, {"layers", Json::array()}};
  for (const std::string& slot : slots) {
    const Report report = report_on(registry, slot, words[1], configured ? &config : nullptr);
    passed = passed && report.check.passed();
    if (!text.empty()) text += '\n';
    text += to_text(report);
    json["layers"].push_back(to_json(report));
  }
  if (!kDouble) {
    text +=
        "\nGradients in float are a rough check; for the proof, check with a program built in double (WEFT_DOUBLE; "
        "docs/extend.md, section 4).\n";
  }
  json["passed"] = passed;
  print(arguments.has("json") ? json.dump(2, ' ', false, Json::error_handler_t::replace).append("\n") : text);
  return passed ? 0 : 1;
}

}  // namespace

Command check_command() {
  return {{"check",
           "layer NAME [CONFIG]",
           "Check a layer by itself: true gradients, the same result whatever the batch, the threads and the tape, "
           "decoding by positions, saving and loading, odd input. All slots that know the name are checked. Also times "
           "it, beside the default layer of its slot. Exit code 1 if a check fails. Sizes are small unless a "
           "configuration or --set gives others; then gradients are compared in parts, not element by element.",
           {{"slot", "SLOT", "Check the layer of that name in this slot alone."},
            {"set", "KEY=VALUE", "Override a key of the configuration, or of the default one; may be repeated."},
            {"threads", "N",
             "Threads to compute with; 0 for one on each core. One check tries 2, 3 and 8 as well, whatever is given."},
            {"json", "", "Print JSON."}},
           {"weft check layer default --slot feed_forward", "weft check layer multi_head configs/fr-en.json",
            "weft check layer learned --set model.d_model=256 --json"}},
          check};
}

}  // namespace weft
