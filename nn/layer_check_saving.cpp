// The check that a layer's parameters are all that it has learned: written to a file and read into another layer.
#include <fmt/format.h>
#include <unistd.h>  // close

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>

#include "weft/core/gemm.h"
#include "weft/core/safetensors.h"
#include "weft/core/safetensors_header.h"  // printable
#include "weft/core/temporary.h"
#include "weft/nn/layer_checks.h"

namespace weft {
namespace {

/// The name of a new file that no one else knows.
std::filesystem::path new_name() {
  const char* given = std::getenv("TMPDIR");
  std::random_device chance;
  return std::filesystem::path(given == nullptr || *given == '\0' ? "/tmp" : given) /
         fmt::format("weft_check_layer_{:08x}{:08x}.safetensors", chance(), chance());
}

/// A new file, gone at the end, also if a signal ends the process.
class TemporaryFile {
 public:
  TemporaryFile() : path_(new_name()), temporary_(path_) {
    if (temporary_.file() < 0) {
      throw CheckError(
          fmt::format("{}: no temporary file can be made there: {}; set TMPDIR to a folder that can be written",
                      printable(path_.parent_path().string()), std::generic_category().message(errno)));
    }
    ::close(temporary_.file());  // written under its name
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
  const Temporary temporary_;
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
    const TemporaryFile temporary;
    save(trial.parameters(), temporary.path());
    const SafetensorsFile file = open(temporary.path());
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
