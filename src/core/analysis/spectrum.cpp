#include "tamis/analysis/spectrum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace tamis::analysis {

EnergySplit split_energy(const Spectrum& spectrum, double frequency) {
  detail::require(std::isfinite(frequency) && frequency >= 0.0, "split_energy", "frequency",
                  "at least 0 and finite", frequency);
  detail::require(!spectrum.density.empty(), "split_energy", "number of bins", "at least 1",
                  spectrum.density.size());
  detail::require(spectrum.resolution > 0.0, "split_energy", "resolution", "above 0",
                  spectrum.resolution);

  constexpr double kNyquist = 0.5;
  EnergySplit split;
  for (std::size_t k = 0; k < spectrum.density.size(); ++k) {
    // Half a bin to either side; 0 and the Nyquist frequency have only one side.
    const double center = static_cast<double>(k) * spectrum.resolution;
    const double low = std::max(center - 0.5 * spectrum.resolution, 0.0);
    const double high = std::min(center + 0.5 * spectrum.resolution, kNyquist);
    const double share = std::clamp((frequency - low) / (high - low), 0.0, 1.0);
    const double power = spectrum.density[k] * spectrum.resolution;
    split.below += share * power;
    split.above += (1.0 - share) * power;
  }
  return split;
}

}  // namespace tamis::analysis
