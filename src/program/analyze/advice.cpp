#include "program/analyze/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "program/analyze/score_fidelity.h"
#include "program/analyze/score_replay.h"
#include "program/shared/output.h"
#include "program/shared/table.h"
#include "runs/run.h"
#include "tamis/registry.h"
#include "tamis/score_view.h"

namespace tamis::program {

namespace {

namespace fs = std::filesystem;

// Of each kind of score the policies that prune by themselves, the best score first.
constexpr const char* kMethods[] = {"infobatch",     "seta",     "ogs-infobatch", "ogs-seta",
                                    "blr-infobatch", "blr-seta", "bls-infobatch", "bls-seta"};
// Wrong labels fewer than these are left to the reader.
constexpr double kLeastNoise = 0.02;
// Below this a score says next to nothing about a sample.
constexpr double kLeastFidelity = 0.5;

double normal(double x, double mean, double deviation) {
  const double z = (x - mean) / deviation;
  return std::exp(-0.5 * z * z) / (deviation * std::sqrt(2.0 * std::numbers::pi));
}

struct Component {
  double weight = 0.5;
  double mean = 0.0;
  double deviation = 0.1;
};

// The share of the samples that a policy leaves out, given these scores, over four epochs: SeTa's
// window moves.
double pruned_share(const Method& method, const std::vector<float>& scores) {
  const auto view = make_score_view(scores);
  const auto policy = make_policy(method.policy);
  constexpr std::uint64_t kEpochs = 4;
  double left_out = 0.0;
  for (std::uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    const Selection selection = policy->select({.scores = *view, .epoch = epoch});
    left_out += static_cast<double>(scores.size() - selection.kept.count());
  }
  return method.delta * left_out / static_cast<double>(kEpochs * scores.size());
}

// The losses of the recorded samples at the end.
std::vector<float> last_losses(const Recording& recording, const ScoreReplay& sample_loss) {
  const auto measured = recording.true_losses();
  return measured.empty() ? sample_loss.recorded_scores() : measured.back().losses;
}

const ScoreFidelity* find_fidelity(const Fidelity& fidelity, const std::string& score) {
  const auto found =
      std::find_if(fidelity.scores.begin(), fidelity.scores.end(),
                   [&](const ScoreFidelity& one) { return one.score.name == score; });
  return found == fidelity.scores.end() ? nullptr : &*found;
}

// As it is written on a command line.
std::string method_text(const Spec& spec) {
  std::string text = tamis::to_text(spec);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::vector<MethodAdvice> judge_methods(const Recording& recording, const Fidelity& fidelity) {
  struct Candidate {
    Method method;
    std::unique_ptr<ScoreReplay> replay;
  };
  std::vector<Candidate> candidates;
  for (const char* const name : kMethods) {
    Method method = parse_method(name);
    if (const Spec score = gradient_score(recording); method.score.name == score.name) {
      method = parse_method(method_text({name, score.options}));
    }
    // A score that this recording does not show is not in its fidelity.
    if (find_fidelity(fidelity, method.score.name) == nullptr) continue;
    auto replay = std::make_unique<ScoreReplay>(method.score, recording);
    candidates.push_back({std::move(method), std::move(replay)});
  }
  recording.read([&](const RecordedStep& step) {
    for (Candidate& one : candidates) one.replay->observe(step);
  });
  std::vector<MethodAdvice> methods;
  for (const Candidate& one : candidates) {
    const ScoreFidelity& measured = *find_fidelity(fidelity, one.method.score.name);
    MethodAdvice advice{.method = one.method,
                        .pruned_share = pruned_share(one.method, one.replay->recorded_scores()),
                        .fidelity = std::nullopt};
    if (!measured.epochs.empty() && std::isfinite(measured.epochs.back().spearman)) {
      advice.fidelity = measured.epochs.back().spearman;
    }
    methods.push_back(std::move(advice));
  }
  return methods;
}

// The policy InfoBatch with the score that is best among those that need the mean loss only: what
// any training can use. Null if the recording has none.
const MethodAdvice* best_method(const Advice& advice) {
  const MethodAdvice* best = nullptr;
  for (const MethodAdvice& one : advice.methods) {
    const bool is_simple = one.method.policy.name == "infobatch" && one.method.name != "infobatch";
    if (is_simple &&
        (best == nullptr || one.fidelity.value_or(-1.0) > best->fidelity.value_or(-1.0))) {
      best = &one;
    }
  }
  return best;
}

std::string score_prefix(const std::string& method) { return method.substr(0, method.find('-')); }

void conclude(const fs::path& folder, Advice& advice) {
  const MethodAdvice* const best = best_method(advice);
  if (best == nullptr) {
    throw std::runtime_error(fmt::format("{}: no score can be replayed", folder.native()));
  }
  const double noise =
      static_cast<double>(advice.num_suspects) / static_cast<double>(advice.num_samples);
  const bool is_faithful = best->fidelity.value_or(0.0) >= kLeastFidelity;
  if (noise >= kLeastNoise && is_faithful) {
    Spec trim = parse_spec(best->method.name);
    trim.name = score_prefix(trim.name) + "-trim";
    trim.options["prune_ratio"] = std::floor(100.0 * std::min(noise, 0.9) + 0.5) / 100.0;
    advice.method = method_text(trim);
    advice.reasons.push_back(fmt::format(
        "{:.0f} % of the losses stand out: look at them first (tamis suspects), for wrong labels "
        "cost more than pruning saves",
        100.0 * noise));
  } else {
    advice.method = best->method.name;
    advice.reasons.push_back(fmt::format("{} would leave out {:.0f} % of a run like this one",
                                         best->method.name, 100.0 * best->pruned_share));
  }
  advice.reasons.push_back(
      is_faithful
          ? fmt::format("its score agrees with the losses (Spearman {:.2f})", *best->fidelity)
          : fmt::format("its score says little about single samples (Spearman {}), so expect no "
                        "more than from random-dynamic at the same budget",
                        best->fidelity ? fmt::format("{:.2f}", *best->fidelity) : "unknown"));
  advice.reasons.emplace_back(
      "whether that beats fewer epochs on your data, only a comparison at equal budget can say");
  std::string settings;
  if (runs::is_run(folder)) {
    const runs::RunData run = runs::read_run(folder);
    const runs::Json model = run.config.value("model", runs::Json::object());
    settings = fmt::format(" --data {}", run.config["data"]["name"].get<std::string>());
    if (model.is_object() && model.contains("name")) {
      settings += fmt::format(" --model {}", model["name"].get<std::string>());
    }
  }
  advice.commands = {
      fmt::format("tamis train{} --method {}", settings, advice.method),
      fmt::format("tamis compare{} --target-prune {:.2f} --equal-budget --methods {}", settings,
                  std::max(0.05, best->pruned_share), best->method.name)};
}

}  // namespace

std::optional<LossMixture> fit_mixture(const std::vector<float>& losses) {
  constexpr std::size_t kLeastLosses = 20;
  constexpr int kRounds = 100;
  constexpr double kLeastDeviation = 1e-3;  // of the range
  std::vector<double> values;
  for (const float loss : losses) {
    if (std::isfinite(loss)) values.push_back(static_cast<double>(loss));
  }
  if (values.size() < kLeastLosses) return std::nullopt;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double low = *least;
  const double range = *most - low;
  if (!(range > 0.0)) return std::nullopt;
  for (double& value : values) value = (value - low) / range;
  Component easy{.mean = 0.0};
  Component hard{.mean = 1.0};
  std::vector<double> is_hard(values.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double a = easy.weight * normal(values[i], easy.mean, easy.deviation);
      const double b = hard.weight * normal(values[i], hard.mean, hard.deviation);
      // Far from both, the nearer one has it.
      is_hard[i] =
          a + b > 0.0
              ? b / (a + b)
              : (std::abs(values[i] - hard.mean) < std::abs(values[i] - easy.mean) ? 1.0 : 0.0);
    }
    const auto fit = [&](Component& component, bool hard_one) {
      double total = 0.0;
      double sum = 0.0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double share = hard_one ? is_hard[i] : 1.0 - is_hard[i];
        total += share;
        sum += share * values[i];
      }
      if (total < 1.0) return;  // nobody left in it
      component.mean = sum / total;
      double squares = 0.0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double share = hard_one ? is_hard[i] : 1.0 - is_hard[i];
        squares += share * (values[i] - component.mean) * (values[i] - component.mean);
      }
      component.deviation = std::max(kLeastDeviation, std::sqrt(squares / total));
      component.weight = total / static_cast<double>(values.size());
    };
    fit(easy, false);
    fit(hard, true);
  }
  const auto num_hard =
      std::count_if(is_hard.begin(), is_hard.end(), [](double x) { return x > 0.5; });
  return LossMixture{
      .low_mean = low + range * easy.mean,
      .high_mean = low + range * hard.mean,
      .high_share = static_cast<double>(num_hard) / static_cast<double>(values.size()),
      .separation = (hard.mean - easy.mean) / (hard.deviation + easy.deviation)};
}

Advice advise(const fs::path& run) {
  if (!Recording::exists(run)) {
    throw std::runtime_error(
        fmt::format("{}: holds no recording; tamis train --record makes one", run.native()));
  }
  // The scores of the methods stand beside those.
  constexpr double kMethodBytes = 16.0 * static_cast<double>(std::size(kMethods));
  const Recording recording(run);
  require_memory_for(recording.num_samples(), kFidelityBytes + kMethodBytes, run.native());
  const RecordedVisits visits = read_visits(recording);
  Advice advice{.name = run.lexically_normal().string(),
                .num_samples = recording.num_samples(),
                .num_recorded = recording.samples().size(),
                .num_epochs = visits.epochs.back().epoch + 1};
  advice.methods = judge_methods(recording, measure_fidelity(recording, visits, {"batch-loss"}));
  ScoreReplay sample_loss({"sample-loss"}, recording);
  recording.read([&](const RecordedStep& step) { sample_loss.observe(step); });
  advice.mixture = fit_mixture(last_losses(recording, sample_loss));
  if (advice.mixture && advice.mixture->stands_out()) {
    advice.num_suspects = static_cast<std::uint64_t>(
        std::llround(advice.mixture->high_share * static_cast<double>(advice.num_samples)));
  }
  conclude(run, advice);
  return advice;
}

nlohmann::ordered_json to_json(const Advice& advice) {
  nlohmann::ordered_json methods = nlohmann::ordered_json::array();
  for (const MethodAdvice& one : advice.methods) {
    methods.push_back({{"method", one.method.name},
                       {"pruned_share", one.pruned_share},
                       {"spearman", one.fidelity ? nlohmann::ordered_json(*one.fidelity)
                                                 : nlohmann::ordered_json()}});
  }
  nlohmann::ordered_json json = {{"run", advice.name},
                                 {"num_samples", advice.num_samples},
                                 {"num_recorded", advice.num_recorded},
                                 {"num_epochs", advice.num_epochs},
                                 {"methods", methods},
                                 {"suspects", {{"number", advice.num_suspects}}},
                                 {"method", advice.method},
                                 {"reasons", advice.reasons},
                                 {"commands", advice.commands}};
  if (advice.mixture) {
    json["suspects"].update({{"low_mean", advice.mixture->low_mean},
                             {"high_mean", advice.mixture->high_mean},
                             {"high_share", advice.mixture->high_share},
                             {"separation", advice.mixture->separation}});
  }
  return json;
}

std::string to_text(const Advice& advice) {
  FactList facts;
  facts.add("run", advice.name);
  facts.add("recorded",
            fmt::format("{} epochs, the losses of {} of {} samples", advice.num_epochs,
                        with_commas(advice.num_recorded), with_commas(advice.num_samples)));
  facts.add("wrong labels", !advice.mixture ? std::string("no losses to tell from")
                            : advice.num_suspects == 0
                                ? std::string("no group of losses stands out")
                                : fmt::format("about {} samples have losses that stand out "
                                              "(around {:.2f}, the others around {:.2f})",
                                              with_commas(advice.num_suspects),
                                              advice.mixture->high_mean, advice.mixture->low_mean));
  std::vector<std::vector<std::string>> rows = {{"method", "would prune", "score and true losses"}};
  for (const MethodAdvice& one : advice.methods) {
    rows.push_back({one.method.name, fmt::format("{:.1f} %", 100.0 * one.pruned_share),
                    one.fidelity ? fmt::format("{:.2f}", *one.fidelity) : "-"});
  }
  std::string text = facts.text() + "\n" + format_table(rows) +
                     "would prune: share of a whole run, if the scores stayed as they are at the "
                     "end.\nscore and true losses: Spearman correlation, 1 is perfect.\n\n";
  text += fmt::format("Train with {}:\n", advice.method);
  for (const std::string& reason : advice.reasons) text += fmt::format("- {}\n", reason);
  for (const std::string& command : advice.commands) text += fmt::format("\n  {}", command);
  return text + "\n";
}

}  // namespace tamis::program
