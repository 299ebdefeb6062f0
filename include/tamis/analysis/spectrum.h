// Spectrum: how the power of a series is spread over frequencies.
#pragma once

#include <vector>

namespace tamis::analysis {

// A one-sided power spectral density. Bin k lies at frequencies[k] = k * resolution, from 0 to at
// most 0.5. Of a sample's visits: cycles per visit, and power per cycle per visit.
struct Spectrum {
  std::vector<double> frequencies;
  std::vector<double> density;
  double resolution = 0.0;  // distance of two bins: 1 / segment length
};

struct EnergySplit {
  double below = 0.0;
  double above = 0.0;

  // Share of the power at low frequencies, in [0, 1]; NaN if there is no power at all.
  double share_below() const { return below / (below + above); }
};

// Power on either side of `frequency`, such as a filter's cut-off.
// The power of a bin counts as spread evenly over the frequencies nearest to that bin, so that the
// split moves smoothly with `frequency`. Throws std::invalid_argument if frequency is negative or
// not finite, or if the spectrum has no bins or resolution.
EnergySplit split_energy(const Spectrum& spectrum, double frequency);

}  // namespace tamis::analysis
