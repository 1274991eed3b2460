// The check that a layer's parameters are all that it has learned: written to a file and read into another layer.
#include <fmt/format.h>
#include <stdlib.h>  // mkdtemp

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "weft/core/gemm.h"
#include "weft/core/safetensors.h"
#include "weft/core/safetensors_header.h"  // printable
#include "weft/nn/layer_checks.h"

namespace weft {
namespace {

/// A new folder that no one else has a name in, gone at the end with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* given = std::getenv("TMPDIR");
    const std::string parent = given == nullptr || *given == '\0' ? "/tmp" : given;
    std::string name = parent + "/weft_check_layer_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      throw CheckError(
          fmt::format("{}: no temporary folder can be made there: {}; set TMPDIR to a folder that can be written",
                      printable(parent), std::generic_category().message(errno)));
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Writes parameters in the form of checkpoints.
void save(ParameterSet& parameters, const std::filesystem::path& path) {
  SafetensorsWriter writer;
  std::vector<Tensor> values;  // keep the views alive until written
  for (const ParameterEntry& entry : parameters.entries()) {
    std::vector<Index> lengths;
    for (int d = 0; d < entry.shape.rank(); ++d) lengths.push_back(entry.shape[d]);
    values.push_back(parameters.value(entry));
    writer.add(entry.name, lengths, std::span<const real>(values.back().values()));
  }
  try {
    writer.write(path);
  } catch (const CheckpointError&) {  // of what the layer calls its parameters
    throw;
  } catch (const Error& error) {
    throw CheckError(error.what());
  }
}

SafetensorsFile open(const std::filesystem::path& path) {
  try {
    return SafetensorsFile::open(path);
  } catch (const CheckpointError& error) {
    throw CheckError(error.what());
  }
}

}  // namespace

void check_saving(const LayerToCheck& layer, Finding& finding) {
  LayerTrial trial = layer.make(), other = layer.make(2);
  const LayerBatch batch = layer.batch({kLongSentence, 1, 4}, {2, kLongSentence, 1}, 71);
  const Tensor gradient = random_rows(batch.x.shape(), 72);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Tensor gradients = trial.pass(batch, gradient, true, {1, step}).gradients.back();
    accumulate_scaled(gradients.size(), real(-0.01), gradients.data(), {trial.parameters().values().data(), 1});
  }
  other({}, batch);  // what it keeps of its first values would show
  {
    const TemporaryFolder folder;
    save(trial.parameters(), folder.path() / "layer.safetensors");
    const SafetensorsFile file = open(folder.path() / "layer.safetensors");
    for (const ParameterEntry& entry : other.parameters().entries()) {
      file.read(entry.name, other.parameters().value(entry).values());
    }
  }
  finding.see(difference(other({}, batch), trial({}, batch)), 0, "the result of the layer that was read");
  finding.see(
      difference(other.pass(batch, gradient, true, kStepRandom), trial.pass(batch, gradient, true, kStepRandom)), 0,
      "gradients of the layer that was read");
}

}  // namespace weft
