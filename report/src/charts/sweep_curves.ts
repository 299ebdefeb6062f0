// A sweep as curves: one figure of its runs against the option that varies.
import type {Comparison, Metric, Run, Sweep} from '../model';
import type {Curve} from './curves';

export type Figure = (run: Run) => number;

// A metric after the last epoch.
export function finalValue(metric: Metric): Figure {
  return (run) => run.epochs.values[metric.name]?.at(-1) ?? NaN;
}
export const pruned: Figure = (run) =>
    run.epochs.pruned.reduce((sum, n) => sum + n, 0) / (run.num_train * run.num_epochs);

function finishedRuns(comparison: Comparison, method: string): Run[] {
  return comparison.runs.filter((run) => run.method === method && run.finished);
}

// One point per value that has a finished run: mean, lowest and highest seed.
export function sweepCurve(comparison: Comparison, swept: Sweep, figure: Figure): Curve {
  const curve: Curve = {method: swept.method, numRuns: 0, x: [], mean: [], low: [], high: []};
  for (const point of swept.points) {
    const values = finishedRuns(comparison, point.method).map(figure);
    if (values.length === 0) continue;
    curve.numRuns = Math.max(curve.numRuns, values.length);
    curve.x.push(point.value);
    curve.mean.push(values.reduce((sum, value) => sum + value, 0) / values.length);
    curve.low.push(Math.min(...values));
    curve.high.push(Math.max(...values));
  }
  return curve;
}

// The same at every value.
export function baselineCurve(comparison: Comparison, x: number[], figure: Figure): Curve[] {
  if (comparison.baseline === null) return [];
  const values = finishedRuns(comparison, comparison.baseline).map(figure);
  if (values.length === 0) return [];
  const level = (value: number) => x.map(() => value);
  return [{
    method: comparison.baseline,
    numRuns: values.length,
    x,
    mean: level(values.reduce((sum, value) => sum + value, 0) / values.length),
    low: level(Math.min(...values)),
    high: level(Math.max(...values)),
  }];
}
