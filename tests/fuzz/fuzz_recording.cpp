// Recordings with right checksums and other contents: read, gone on with, analysed, advised on.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "edit_container.h"
#include "memory_file.h"
#include "program/analyze/advice.h"
#include "program/analyze/analyzed_run.h"
#include "program/analyze/suspect_list.h"
#include "support/scratch_folder.h"
#include "tamis/recorder.h"
#include "tamis/recording.h"

namespace {

namespace fs = std::filesystem;
using tamis::test::read_bytes;
using tamis::test::write_bytes;

constexpr const char* kNames[] = {"samples.safetensors", "steps-00000.safetensors",
                                  "steps-00001.safetensors", "losses-epoch00000.safetensors",
                                  "losses-epoch00001.safetensors"};

struct Original {
  std::vector<std::vector<std::byte>> files;

  explicit Original(const fs::path& folder) {
    {
      auto recorder = tamis::Recorder::create(
          folder, {.num_samples = 70, .num_recorded = 20, .seed = 2, .shard_bytes = 4000});
      for (std::uint32_t step = 0; step < 90; ++step) {
        std::vector<std::uint32_t> batch;
        std::vector<float> losses;
        for (std::uint32_t k = 0; k < 8; ++k) {
          batch.push_back((step * 8 + k * 3) % 70);
          losses.push_back(1.0F + 0.1F * static_cast<float>((step + k) % 7));
        }
        recorder.record(step / 45, batch, 1.2 + 0.001 * step, losses);
        if (step % 45 == 44) {
          recorder.record_true_losses(step / 45, std::vector<float>(20, 1.0F));
        }
      }
    }
    for (const char* const name : kNames) files.push_back(read_bytes(folder / name));
  }
};

void use(const fs::path& folder) {
  const tamis::Recording recording(folder);
  std::uint64_t num_steps = 0;
  recording.read([&](const tamis::RecordedStep& step) {
    ++num_steps;
    for (const std::uint32_t place : step.places) {
      if (place >= recording.samples().size()) std::abort();
    }
  });
  recording.true_losses();
  auto recorder = tamis::Recorder::open(folder);
  // Scores of all samples take memory as far as the machine has it, and here it is bounded.
  if (recording.num_samples() <= 100'000) {
    tamis::fuzz::attempt([&] { to_json(tamis::program::analyze_run({.run = folder})); });
    tamis::fuzz::attempt([&] { to_json(tamis::program::advise(folder)); });
    if (const auto score = tamis::program::best_score(recording)) {
      to_json(tamis::program::suspects_of_recording(recording, *score, 10));
    }
  }
  recorder.rewind(recorder.num_steps() / 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tamis::fuzz::MemoryFolder folder;
  static const Original original(folder.path());
  tamis::fuzz::Source source(data, size);
  for (std::size_t k = 0; k < std::size(kNames); ++k) {
    write_bytes(folder.path() / kNames[k], original.files[k]);
  }
  const std::size_t which = source.below(std::size(kNames));
  tamis::test::ContainerParts parts(original.files[which]);
  try {
    tamis::fuzz::edit(parts, source);
    write_bytes(folder.path() / kNames[which], parts.file());
  } catch (const std::invalid_argument&) {
    return 0;  // The writer refuses it.
  }
  tamis::fuzz::attempt([&] { use(folder.path()); });
  return 0;
}
