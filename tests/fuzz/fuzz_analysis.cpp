// analysis.json with edits, as tamis report checks it before it becomes part of a page.
#include <stdexcept>

#include "edited_json.h"
#include "memory_file.h"
#include "program/report/analysis_check.h"

namespace {

using tamis::runs::Json;

constexpr const char* kAnalysis = R"({"format": "tamis-analysis", "format_version": 1,
  "recording": {"num_samples": 70, "num_recorded": 20, "num_epochs": 2, "batch_size": 8},
  "why_no_signal": "",
  "spectra": {"segment_length": 16, "num_samples": 20, "cutoff": 0.1, "num_frequencies": 2,
    "num_noise_above": 1, "frequencies": [0, 0.5], "signal": [1, 0.5], "noise": [0.5, null]},
  "signal_to_noise": {"after": [{"alpha": 0.7, "over_visits": 2.5, "between_samples": null}]},
  "decomposition": {"largest_error": 1e-7},
  "series": {"sample": 3, "batch_loss": [1, 2], "sample_loss": [1, 2], "signal": [1, 2],
    "score": [1, 1.5]},
  "fidelity": {"truth": "true losses", "top_share": 0.1, "epochs": [0, 1],
    "scores": [{"name": "batch-loss", "sees": "mean", "spearman": [0.5, null],
                "pearson": [0.5, 0.6], "top_overlap": [0.2, 0.3]}],
    "alphas": [{"options": {"alpha": 0.5}, "spearman": [0.5, 0.5], "pearson": [0.5, 0.6],
                "top_overlap": [0.2, 0.3]}]}})";

// What the page does with a document that was accepted: it takes these for numbers and texts.
void use(const Json& analysis) {
  for (const Json& value : analysis.at("fidelity").at("epochs")) {
    if (!value.is_number() && !value.is_null()) std::abort();
  }
  for (const Json& score : analysis.at("fidelity").at("scores")) {
    if (!score.at("name").is_string() || !score.at("spearman").is_array()) std::abort();
  }
  if (const Json& spectra = analysis.at("spectra"); !spectra.is_null()) {
    if (!spectra.at("signal").is_array()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The document without edits is accepted.
  static const bool is_right =
      (tamis::program::check_analysis(Json::parse(kAnalysis), "analysis.json"), true);
  static_cast<void>(is_right);
  tamis::fuzz::Source source(data, size);
  const Json analysis = tamis::fuzz::edited(kAnalysis, source);
  tamis::fuzz::attempt([&] {
    tamis::program::check_analysis(analysis, "analysis.json");
    use(analysis);
  });
  return 0;
}
