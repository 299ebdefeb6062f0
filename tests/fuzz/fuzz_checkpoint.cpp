// Checkpoints of a run: checkpoint.json with edits; weights, pruner and history with right
// checksums and other contents. Refused, or restored.
#include <torch/torch.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "edit_container.h"
#include "edited_json.h"
#include "memory_file.h"
#include "support/ranks.h"
#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "training/trainer/checkpoint.h"

namespace {

namespace fs = std::filesystem;
using tamis::fuzz::Source;
using tamis::training::CheckpointState;

constexpr std::uint64_t kNumSamples = 70;
constexpr std::uint64_t kNumEpochs = 6;
constexpr const char* kParts[] = {"checkpoint-1.safetensors", "pruner-1.safetensors",
                                  "history-1.safetensors"};

struct Net : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 2));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(2));

  torch::Tensor forward(const torch::Tensor& x) { return norm(linear(x)); }
};

// What a checkpoint restores.
struct Parts {
  Net model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  tamis::Pruner pruner{{.num_samples = kNumSamples,
                        .num_epochs = kNumEpochs,
                        .policy = {"infobatch"},
                        .score = tamis::Spec{"batch-loss"},
                        .seed = 3}};
  tamis::test::LonelyRank rank{0, 1};
  tamis::training::SampleHistory history{kNumSamples, kNumEpochs};

  explicit Parts(bool is_sgd) {
    if (is_sgd) {
      optimizer = std::make_unique<torch::optim::SGD>(model.parameters(),
                                                      torch::optim::SGDOptions(0.1).momentum(0.9));
    } else {
      optimizer =
          std::make_unique<torch::optim::AdamW>(model.parameters(), torch::optim::AdamWOptions());
    }
  }

  tamis::training::CheckpointParts all() { return {model, *optimizer, pruner, rank, &history}; }

  void step() {
    optimizer->zero_grad();
    model.forward(torch::ones({4, 3})).sum().backward();
    optimizer->step();
  }
};

// The files of one checkpoint, in the middle of the third epoch.
struct Original {
  std::vector<std::vector<std::byte>> files;
  tamis::runs::Json index;

  Original(const fs::path& folder, bool is_sgd) {
    torch::manual_seed(1);
    Parts parts(is_sgd);
    parts.step();
    tamis::test::simulate_epochs(parts.pruner, 0, 2, 8);
    parts.pruner.start_epoch(2);
    tamis::test::simulate_step(parts.pruner, 8);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) parts.history.end_epoch(epoch);
    const CheckpointState state{.step = 19, .epochs_done = 2};
    save_checkpoint(folder, parts.all(), state, false);
    for (const char* const name : kParts) files.push_back(tamis::test::read_bytes(folder / name));
    index = tamis::runs::Json::parse(std::ifstream(folder / "checkpoint.json"));
    index.erase("crc32c");
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
  }
};

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void use(const fs::path& folder, bool is_sgd) {
  Parts parts(is_sgd);
  const auto state = load_checkpoint(folder, parts.all());
  if (!state) std::abort();
  for (std::size_t k = 0; k < parts.history.epochs().size(); ++k) {
    for (const float loss : parts.history.losses(k)) {
      if (std::isinf(loss)) std::abort();
    }
  }
  parts.step();
  if (parts.pruner.plan() != nullptr && parts.pruner.position() < parts.pruner.plan()->size()) {
    tamis::test::simulate_step(parts.pruner, 8);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Each thread would take address space, of which a replay has not much.
  static const bool is_alone = (torch::set_num_threads(1), true);
  static_cast<void>(is_alone);
  static const tamis::fuzz::MemoryFolder memory;
  static const Original with_sgd(memory.path(), true);
  static const Original with_adamw(memory.path(), false);
  const fs::path& folder = memory.path();
  Source source(data, size);
  const bool is_sgd = source.byte() % 2 == 0;
  const Original& original = is_sgd ? with_sgd : with_adamw;
  for (std::size_t k = 0; k < std::size(kParts); ++k) {
    tamis::test::write_bytes(folder / kParts[k], original.files[k]);
  }
  const std::size_t which = source.below(std::size(kParts) + 1);
  tamis::runs::Json index = original.index;
  if (which == std::size(kParts)) {
    index = tamis::fuzz::edited(index, source);
  } else {
    tamis::test::ContainerParts parts(original.files[which]);
    try {
      tamis::fuzz::edit(parts, source);
      tamis::test::write_bytes(folder / kParts[which], parts.file());
    } catch (const std::invalid_argument&) {
      return 0;  // The writer refuses it.
    }
  }
  write(folder / "checkpoint.json",
        index.is_object() ? tamis::runs::sealed_line(index) : index.dump());
  tamis::fuzz::attempt([&] { use(folder, is_sgd); });
  return 0;
}
