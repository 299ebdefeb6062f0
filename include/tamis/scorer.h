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
  // The norm of the loss's gradient by each output of the batch, or empty where the outputs were
  // not watched. Those of samples that only fill up a rank's batch stand behind the others, so
  // there may be more norms than indices. Any floats: a scorer that uses them checks them.
  std::span<const float> norms = {};
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
  mean_loss,         // the mean loss of the batch, or the losses of its samples
  any_losses,        // the same, but made for the losses: a caller that has both gives these
  sample_losses,     // the loss of every sample of the batch
  output_gradients,  // mean loss or losses, and one norm per sample
};

// True if a caller that has the losses of all samples gives these, not their mean.
constexpr bool takes_sample_losses(LossKind kind) {
  return kind == LossKind::sample_losses || kind == LossKind::any_losses;
}

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
  // Which norm of the output gradients it takes: 2, the Euclidean one, or 1, the sum of magnitudes.
  virtual int norm_order() const { return 2; }

  // Applies one observation. Returns false, and changes nothing, if the scorer cannot use this loss
  // (BLR and a loss that is not positive) or these norms.
  virtual bool observe(const Observation& observation) = 0;

  // The scores, kUnscored where there is none. Refers to the scorer's own memory where the score is
  // stored as it is, otherwise to `scratch`, which is replaced to fit.
  virtual std::span<const float> scores(Array<float>& scratch) const = 0;

  // Everything to save, in a fixed order: arrays of one entry per sample, and running numbers
  // (with a fixed set of names). Loading writes through the same views.
  virtual std::vector<ScorerArray> arrays() = 0;
  virtual OptionMap numbers() const { return {}; }
  virtual void set_numbers(const OptionMap&) {}
  // False for numbers that no run can have come to: a state that has them is refused. All names of
  // numbers() are there, and no number is infinite.
  virtual bool is_possible(const OptionMap&) const { return true; }

  // The running numbers of a run whose ranks all had `before` and then went on by themselves, to
  // after[r]. The default is for scorers without numbers.
  virtual OptionMap agree(const OptionMap& before, std::span<const OptionMap> after) const;
};

}  // namespace tamis
