// Histograms of scores as numbers.
import type {Histogram} from '../model';

// The score below which `share` of the samples lie, as far as bins can tell.
export function quantile(histogram: Histogram, share: number): number {
  const total = histogram.counts.reduce((sum, one) => sum + one, 0);
  const width = (histogram.high - histogram.low) / histogram.counts.length;
  let below = 0;
  for (const [bin, one] of histogram.counts.entries()) {
    if (one > 0 && below + one >= share * total) {
      return histogram.low + width * (bin + Math.max(0, share * total - below) / one);
    }
    below += one;
  }
  return histogram.high;
}

// From the centres of the bins.
export function meanScore(histogram: Histogram): number {
  const width = (histogram.high - histogram.low) / histogram.counts.length;
  let sum = 0;
  let total = 0;
  for (const [bin, one] of histogram.counts.entries()) {
    sum += one * (histogram.low + width * (bin + 0.5));
    total += one;
  }
  return total === 0 ? NaN : sum / total;
}

// Columns of the rows below. Epochs are 1-based here, as on the other charts.
export const kEpoch = 0, kLow = 1, kHigh = 2, kShade = 3, kCount = 4, kShare = 5;

// One row per bin that holds a sample. The shade is a root: tails stay visible beside the peak.
export function binRows(histograms: (Histogram|null)[]): number[][] {
  const rows: number[][] = [];
  for (const [epoch, histogram] of histograms.entries()) {
    if (histogram === null) continue;
    const total = histogram.counts.reduce((sum, one) => sum + one, 0);
    const fullest = Math.max(...histogram.counts);
    const width = (histogram.high - histogram.low) / histogram.counts.length;
    for (const [bin, one] of histogram.counts.entries()) {
      if (one === 0) continue;
      const low = histogram.low + width * bin;
      rows.push([epoch + 1, low, low + width, Math.sqrt(one / fullest), one, one / total]);
    }
  }
  return rows;
}

// All but half a per cent at each end of the widest epoch, so that one far sample does not flatten
// all.
export function scoreLimits(histograms: Histogram[]): [number, number] {
  const low = Math.min(...histograms.map((one) => quantile(one, 0.005)));
  const high = Math.max(...histograms.map((one) => quantile(one, 0.995)));
  const room = 0.04 * (high - low) || 0.5 * Math.abs(high) || 1;
  return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
}
