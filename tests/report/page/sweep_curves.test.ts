import assert from 'node:assert/strict';
import {test} from 'node:test';

import {baselineCurve, finalValue, pruned, sweepCurve} from '../../../report/src/charts/sweep_curves';
import type {Comparison, Run, Sweep} from '../../../report/src/model';

function run(method: string, finished: boolean, last: number, samples: number[]): Run {
  return {
    method,
    finished,
    epochs: {values: {mAP: [0.1, last]}, pruned: samples.map((count) => 100 - count)},
    num_train: 100,
    num_epochs: 2,
  } as unknown as Run;
}

const accuracy = finalValue({name: 'mAP', unit: '', direction: 'higher', headline: true});

const swept: Sweep = {
  method: 'bls',
  option: 'alpha',
  points: [{value: 0.5, method: 'bls:alpha=0.5'}, {value: 0.9, method: 'bls:alpha=0.9'}],
};
const comparison = {
  baseline: 'full',
  runs: [
    run('full', true, 0.875, [100, 100]),
    run('bls:alpha=0.5', true, 0.5, [100, 50]),
    run('bls:alpha=0.5', true, 0.75, [100, 70]),
    run('bls:alpha=0.9', false, 0.9, [100]),
  ],
} as Comparison;

test('a point is the mean over the finished seeds of a value', () => {
  const curve = sweepCurve(comparison, swept, accuracy);
  assert.deepEqual(curve.x, [0.5]);
  assert.deepEqual([curve.mean, curve.low, curve.high], [[0.625], [0.5], [0.75]]);
  assert.equal(curve.numRuns, 2);
});

test('the pruned share is over all epochs', () => {
  const curve = sweepCurve(comparison, swept, pruned);
  assert.deepEqual(curve.low.map((value) => value?.toFixed(3)), ['0.150']);
  assert.deepEqual(curve.high.map((value) => value?.toFixed(3)), ['0.250']);
});

test('the baseline is level', () => {
  const [curve] = baselineCurve(comparison, [0.5, 0.9], accuracy);
  assert.deepEqual(curve!.mean, [0.875, 0.875]);
  assert.deepEqual(baselineCurve({...comparison, baseline: null}, [0.5], accuracy), []);
});
