// Equation "Decomposition of Batch Loss" and the proposition "BLS Score as Low-Pass Filtered
// Estimate" of the paper. Its B is constant; here every visit has its own.
#include "tamis/analysis/decomposition.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "tamis/analysis/ema_filter.h"

namespace tamis::analysis {
namespace {

void require_usable(const Visit& visit, std::size_t k) {
  const auto fail = [k](const char* field, const char* rule, auto value) {
    throw std::invalid_argument(
        detail::concat("decompose: visits[", k, "].", field, " must be ", rule, ", got ", value));
  };
  if (!std::isfinite(visit.batch_loss)) fail("batch_loss", "a finite number", visit.batch_loss);
  if (!std::isfinite(visit.sample_loss)) fail("sample_loss", "a finite number", visit.sample_loss);
  if (visit.batch_size == 0) fail("batch_size", "at least 1", visit.batch_size);
}

}  // namespace

SignalAndNoise split_visits(std::span<const Visit> visits) {
  SignalAndNoise parts;
  parts.signal.reserve(visits.size());
  parts.noise.reserve(visits.size());
  for (std::size_t k = 0; k < visits.size(); ++k) {
    require_usable(visits[k], k);
    const double signal = visits[k].sample_loss / visits[k].batch_size;
    parts.signal.push_back(signal);
    parts.noise.push_back(visits[k].batch_loss - signal);
  }
  return parts;
}

Decomposition decompose(std::span<const Visit> visits, double alpha, double initial_score) {
  const EmaFilter filter(alpha);
  detail::require(std::isfinite(initial_score), "decompose", "initial_score", "a finite number",
                  initial_score);
  SignalAndNoise parts = split_visits(visits);

  Decomposition result;
  result.filtered_signal = filter.apply(parts.signal);
  result.filtered_noise = filter.apply(parts.noise);
  result.signal = std::move(parts.signal);
  result.noise = std::move(parts.noise);
  result.initial_term.reserve(visits.size());
  result.score.reserve(visits.size());
  double score = initial_score;
  for (std::size_t k = 0; k < visits.size(); ++k) {
    result.initial_term.push_back(std::pow(alpha, static_cast<double>(k + 1)) * initial_score);
    score = alpha * score + (1.0 - alpha) * visits[k].batch_loss;
    result.score.push_back(score);
  }
  return result;
}

std::vector<double> sum_of_parts(const Decomposition& decomposition) {
  std::vector<double> sum(decomposition.score.size());
  for (std::size_t k = 0; k < sum.size(); ++k) {
    sum[k] = decomposition.filtered_signal[k] + decomposition.filtered_noise[k] +
             decomposition.initial_term[k];
  }
  return sum;
}

}  // namespace tamis::analysis
