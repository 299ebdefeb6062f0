// Curves of several seeds as one line and a band.
import type {Epochs, Run} from '../model';

// The runs of one method, epoch by epoch. `low` and `high` are the lowest and the highest seed.
export interface Curve {
  method: string;
  numRuns: number;
  x: number[];
  mean: (number|null)[];
  low: (number|null)[];
  high: (number|null)[];
}

export type Series = (epochs: Epochs, run: Run) => (number|null)[];

export function cumulative(values: number[]): number[] {
  let sum = 0;
  return values.map((value) => sum += value);
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

// Finished runs if there are any: a mean over seeds that stop at different epochs would jump.
function comparable(runs: Run[]): Run[] {
  const finished = runs.filter((run) => run.finished);
  return (finished.length > 0 ? finished : runs).filter((run) => run.epochs.samples.length > 0);
}

// One curve per method that has an epoch. x is the mean over the seeds too: they may have used
// different numbers of samples.
export function curves(methods: string[], runs: Run[], x: Series, y: Series): Curve[] {
  const all: Curve[] = [];
  for (const method of methods) {
    const chosen = comparable(runs.filter((run) => run.method === method));
    if (chosen.length === 0) continue;
    const xs = chosen.map((run) => x(run.epochs, run));
    const ys = chosen.map((run) => y(run.epochs, run));
    const length = Math.min(...ys.map((values) => values.length));
    const curve: Curve = {method, numRuns: chosen.length, x: [], mean: [], low: [], high: []};
    for (let e = 0; e < length; ++e) {
      const values =
          ys.map((one) => one[e] ?? null).filter((value): value is number => value !== null);
      const complete = values.length === chosen.length;
      curve.x.push(mean(xs.map((one) => one[e] ?? NaN)));
      curve.mean.push(complete ? mean(values) : null);
      curve.low.push(complete ? Math.min(...values) : null);
      curve.high.push(complete ? Math.max(...values) : null);
    }
    all.push(curve);
  }
  return all;
}

// One line without a band.
export function plainCurve(name: string, x: number[], y: (number|null)[]): Curve {
  return {method: name, numRuns: 1, x, mean: y, low: y, high: y};
}

// The second half of the epochs, where methods that learn at different speeds come together.
export function lastHalf(curve: Curve): Curve {
  const from = Math.floor(curve.x.length / 2);
  return {
    ...curve,
    x: curve.x.slice(from),
    mean: curve.mean.slice(from),
    low: curve.low.slice(from),
    high: curve.high.slice(from),
  };
}
