// Scorer: turns what a training step shows (a batch and its loss) into one number per sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "tamis/array.h"
#include "tamis/types.h"

namespace tamis {

// The value of a sample that no observation has reached yet. Test with std::isnan.
inline constexpr float kUnscored = std::numeric_limits<float>::quiet_NaN();

// What one training step reports. Indices are in range and all losses finite when a Scorer sees
// them.
struct Observation {
  std::span<const std::uint32_t> indices;
  double mean_loss = 0.0;
  // One loss per index, or empty when only the mean is known.
  std::span<const float> losses = {};
  // True if it is known that no index stands twice.
  bool distinct = false;

  // The loss of sample indices[k], or the mean if only that is known.
  double loss(std::size_t k) const {
    return losses.empty() ? mean_loss : static_cast<double>(losses[k]);
  }
};

// One named array or number that a scorer needs saved. `bytes` refers to the scorer's own memory
// and stays valid until the scorer changes.
struct ScorerArray {
  std::string_view name;
  std::string_view dtype;  // "F32" or "U32"; one or more entries per sample
  std::span<std::byte> bytes;
};

// What a training step must tell a score.
enum class LossKind {
  mean_loss,      // the mean loss of the batch, or the losses of its samples
  sample_losses,  // the loss of every sample of the batch
};

// Keeps one score per sample. A scorer changes only the samples of the observed batch; an index
// that stands twice in a batch is applied once. Not thread-safe; const calls may run side by side.
class Scorer {
 public:
  virtual ~Scorer() = default;

  // Name and options, complete, as the registry understands them.
  virtual Spec spec() const = 0;
  virtual std::size_t num_samples() const = 0;

  // What an observation must have.
  virtual LossKind needs() const { return LossKind::mean_loss; }
  // What the score is meant for, and gets from a training loop that has both.
  virtual LossKind prefers() const { return needs(); }

  // Applies one observation. Returns false, and changes nothing, if the scorer cannot use this loss
  // (BLR and a loss that is not positive).
  virtual bool observe(const Observation& observation) = 0;

  // The scores, kUnscored where there is none. Refers to the scorer's own memory where the score is
  // stored as it is, otherwise to `scratch`, which is replaced to fit.
  virtual std::span<const float> scores(Array<float>& scratch) const = 0;

  // Everything to save, in a fixed order: arrays of one entry per sample, and running numbers
  // (with a fixed set of names). Loading writes through the same views.
  virtual std::vector<ScorerArray> arrays() = 0;
  virtual OptionMap numbers() const { return {}; }
  virtual void set_numbers(const OptionMap&) {}

  // The running numbers of a run whose ranks all had `before` and then went on by themselves, to
  // after[r]. The default is for scorers without numbers.
  virtual OptionMap agree(const OptionMap& before, std::span<const OptionMap> after) const;
};

}  // namespace tamis
