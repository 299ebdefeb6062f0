// Scenarios: runs without a model whose plans, scores and states are kept as digests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tamis::test::golden {

// A registered score or policy and the options that differ from their defaults.
struct Named {
  std::string name;
  std::vector<std::pair<std::string, double>> options = {};
};

// The ranks are threads. `one`: a pruner that knows of no ranks.
enum class Kind { one, replicated, sharded };
struct RankLayout {
  Kind kind = Kind::one;
  std::size_t num_ranks = 1;
};

enum class Losses {
  smooth,  // different for every sample, falling with the epoch
  tied,    // four values
  equal,   // one value
  with_negative,
};
// How a batch's losses are told.
enum class Form {
  automatic,   // one per sample if the score needs that, otherwise the mean
  mean,        // as a double
  float_mean,  // rounded to a float before
  per_sample,
};
// When the state is saved, loaded into fresh objects, and the run goes on with these.
enum class Resume { never, mid_epoch, between_epochs };

struct Scenario {
  std::string name;
  Named policy;
  Named score;
  RankLayout layout = {};
  std::size_t num_samples = 500;
  std::uint64_t num_epochs = 6;
  std::uint64_t seed = 7;
  std::optional<double> delta = {};
  std::size_t homogeneous_batch_size = 0;
  double min_per_class = 0.0;
  std::optional<double> target_prune = {};
  bool drops_remainder = false;  // of ranks; otherwise they pad

  std::size_t batch_size = 32;  // of one rank
  Losses losses = Losses::smooth;
  Form form = Form::automatic;
  bool trains_half = false;           // only the first half of the batches of every epoch
  bool observes_others = false;       // samples that are not those of the plan as well
  std::vector<std::uint64_t> epochs;  // empty: all, in order
  Resume resume = Resume::never;      // in, or after, epoch kResumeEpoch
  std::optional<RankLayout> resume_layout = {};  // unset: the same
};
inline constexpr std::uint64_t kResumeEpoch = 2;

std::string to_text(RankLayout layout);

// What the scenarios are made of.
std::vector<std::string> score_names();
std::vector<std::string> policy_names();

// All with unique names, in a fixed order.
std::vector<Scenario> make_scenarios();

// States that are kept as files: saved where `scenario.resume` says (`never`: before the first
// epoch) and loaded in every one of the layouts.
struct StateFixture {
  Scenario scenario;  // its name is the file's
  std::vector<RankLayout> loads;
};
std::vector<StateFixture> make_state_fixtures();

// The loss of a sample: exact in a float, so that sums of batches are exact in a double.
float loss_of(Losses losses, std::uint64_t epoch, std::uint64_t sample);
// The class of a sample: 10 classes, the largest with half of the samples, not numbered from 0.
std::int32_t class_of(std::uint64_t sample);

}  // namespace tamis::test::golden
