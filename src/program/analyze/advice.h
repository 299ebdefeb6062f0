// Advice: what a short recorded run says about training on all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tamis/method.h"

namespace tamis::program {

// Losses in two normal components, as people do who look for wrong labels (Li et al., DivideMix).
struct LossMixture {
  double low_mean = 0.0;
  double high_mean = 0.0;
  double high_share = 0.0;  // of the samples that rather belong to the high component
  // Distance of the means over the sum of the deviations.
  double separation = 0.0;

  // Below this the high component is the tail of the low one.
  static constexpr double kLeastSeparation = 1.5;
  bool stands_out() const { return separation >= kLeastSeparation; }
};

// Empty for fewer than 20 finite losses, or if all are equal.
std::optional<LossMixture> fit_mixture(const std::vector<float>& losses);

struct MethodAdvice {
  Method method;
  double pruned_share = 0.0;       // of a whole run, if its scores stayed as they are
  std::optional<double> fidelity;  // Spearman correlation of its score with the true losses
};

struct Advice {
  std::string name;
  std::size_t num_samples = 0;
  std::size_t num_recorded = 0;
  std::uint64_t num_epochs = 0;
  std::vector<MethodAdvice> methods = {};  // only those that the recording can show
  std::optional<LossMixture> mixture = std::nullopt;
  std::uint64_t num_suspects = 0;  // of all samples, by the mixture; 0 if nothing stands out
  std::string method = {};         // to train with: "ogs-infobatch", "ogs-trim:prune-ratio=0.2"
  std::vector<std::string> reasons = {};
  std::vector<std::string> commands = {};
};

// `run`: folder of a run or of a recording. Throws std::runtime_error if there is no recording, or
// one without true or per-sample losses.
Advice advise(const std::filesystem::path& run);

nlohmann::ordered_json to_json(const Advice& advice);
std::string to_text(const Advice& advice);

}  // namespace tamis::program
