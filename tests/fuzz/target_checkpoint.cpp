// Any metadata in a checkpoint: configuration, vocabularies, subword models, state of training. The parts of an input are the
// values of kKeys; an empty one is left out of the file. The tensors are always those of one small model, and the checksum
// is right.
#include <algorithm>
#include <array>
#include <cstring>

#include "targets.h"
#include "weft/core/error.h"
#include "weft/core/safetensors_header.h"
#include "weft/nn/registry.h"
#include "weft/train/base64.h"
#include "weft/train/checkpoint.h"

namespace weft {
namespace {

constexpr std::array kKeys{"weft.config",          "weft.source_vocabulary", "weft.target_vocabulary",
                           "weft.source_subwords", "weft.target_subwords",   "weft.training"};
constexpr const char* kVocabulary = R"(["<unk>","<s>","</s>","a","b"])";
constexpr const char* kModel =
    R"("model":{"d_model":4,"heads":1,"encoder_layers":1,"decoder_layers":1,"d_feed_forward":4,"max_length":8})";

std::string small_config(const std::string& tokenizer) {
  return "{\"data\":{\"max_length\":7,\"tokenizer\":\"" + tokenizer + "\"}," + kModel + "}";
}

const std::string& small_training() {
  static const std::string json = [] {
    TrainingState state{.step = 4, .epoch = 1, .next_batch = 2, .loss_sum = 0.5, .loss_tokens = 7, .validations = {}};
    state.validations.push_back({2, 1.5, 4.5, 0.25, 0.125, 33.3, 44.4});
    state.best_step = 2;
    return training_json(state);
  }();
  return json;
}

/// The tensors of the small model and its optimizer, as a header describes them.
const std::vector<SafetensorsEntry>& entries() {
  static const std::vector<SafetensorsEntry> all = [] {
    std::vector<std::string> tokens{"<unk>", "<s>", "</s>", "a", "b"};
    const Vocabulary vocabulary = Vocabulary::from_tokens(tokens);
    TranslationModel model(parse_config(small_config("word"), "fuzz"), vocabulary, vocabulary, standard_layers());
    std::vector<SafetensorsEntry> result;
    std::uint64_t offset = 0;
    const auto add = [&](const std::string& name, std::vector<Index> shape, Index elements) {
      const std::uint64_t end = offset + 4 * static_cast<std::uint64_t>(elements);
      result.push_back({name, "F32", std::move(shape), offset, end});
      offset = end;
    };
    for (const ParameterEntry& entry : model.parameters().entries()) {
      std::vector<Index> shape;
      for (int d = 0; d < entry.shape.rank(); ++d) shape.push_back(entry.shape[d]);
      add(entry.name, shape, entry.shape.size());
    }
    const Index size = model.parameters().values().size();
    for (const char* name : {"optimizer.first_moment", "optimizer.second_moment", "average.values"}) {
      add(name, {size}, size);
    }
    return result;
  }();
  return all;
}

/// The file, with the metadata texts that are UTF-8.
std::string file_of(const std::vector<std::string>& parts) {
  SafetensorsHeader header{{{"weft.format", "1"}, {"weft.crc32", "00000000"}}, entries()};
  for (std::size_t i = 0; i < std::min(parts.size(), kKeys.size()); ++i) {
    if (!parts[i].empty()) header.metadata[kKeys[i]] = parts[i];
  }
  const std::string text = format_safetensors_header(header);
  const std::uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += text;
  bytes.resize(bytes.size() + entries().back().end);
  mend_checksum(bytes);
  return bytes;
}

void run(const std::string& input) {
  const std::vector<std::string> parts = fuzz_parts(input);
  for (const std::string& part : parts) {
    if (const auto bytes = from_base64(part)) fuzz_require(to_base64(*bytes) == part, "base64 has one form");
  }
  static const Registry registry = standard_layers();
  try {
    const MemoryFile file(file_of(parts));
    Checkpoint checkpoint = load_checkpoint(file.path(), registry);
    fuzz_require(checkpoint.state.best_step <= checkpoint.state.step, "the best step was made");
    const Index size = checkpoint.model->parameters().values().size();
    const auto optimizer = make_optimizer({}, size);
    load_optimizer(file.path(), *optimizer);
    std::vector<real> average(static_cast<std::size_t>(size));
    load_average(file.path(), average);
  } catch (const CheckpointError&) {
  } catch (const ConfigError&) {
  } catch (const DataError&) {
  }
}

/// A subword model in the wire form: the three specials and two pieces.
std::string small_subwords(char kind) {
  const auto field = [](const std::string& body) {
    std::string bytes("\x0A");
    bytes += static_cast<char>(body.size());
    return bytes += body;
  };
  const auto piece = [&](const std::string& text, const std::string& rest) {
    std::string body = field(text);
    return field(body += rest);
  };
  const std::string score("\x15\x00\x00\x80\xBF", 5);  // -1
  return piece("<unk>", "\x18\x02") + piece("<s>", "\x18\x03") + piece("</s>", "\x18\x03") +
         piece("\xE2\x96\x81", score) + piece("b", score) + "\x12\x02\x18" + std::string(1, kind);
}

std::string joined(const std::array<std::string, kKeys.size()>& parts) {
  std::string bytes = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) bytes += kFuzzPart + parts[i];
  return bytes;
}

std::vector<std::string> seeds() {
  const std::string model = to_base64(small_subwords('\x01'));
  return {joined({small_config("word"), kVocabulary, kVocabulary, "", "", small_training()}),
          joined({small_config("unigram"), "", "", model, "", small_training()}),
          joined({small_config("unigram"), "", "", model, model, small_training()}),
          joined({small_config("bpe"), "", "", to_base64(small_subwords('\x02')), "", small_training()}),
          joined({R"({"model":{"d_model":65536,"heads":1,"max_length":256}})", kVocabulary, kVocabulary, "", "",
                  small_training()}),
          joined({small_config("word"), "[[[[", R"({"a":1})", "", "", R"({"step":[[[[]]]]})"}),
          ""};
}

}  // namespace

FuzzTarget fuzz_checkpoint() { return {"checkpoint", 4096, run, seeds}; }

}  // namespace weft
