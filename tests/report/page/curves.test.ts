import assert from 'node:assert/strict';
import {test} from 'node:test';

import {cumulative, curves, lastHalf, type Series} from '../../../report/src/charts/curves';
import type {Epochs, Run} from '../../../report/src/model';

function run(
    method: string, seed: number, finished: boolean, accuracy: number[], samples: number[]): Run {
  const epochs = {values: {accuracy}, samples} as unknown as Epochs;
  return {
    method,
    seed,
    finished,
    epochs,
    name: method,
    folder: '',
    num_train: 100,
    num_epochs: 3,
    score_histograms: null,
    analysis: null,
    config: {},
  };
}

const used: Series = (epochs) => cumulative(epochs.samples);
const accuracy: Series = (epochs) => epochs.values['accuracy']!;

test('a curve is the mean over the seeds between the lowest and the highest', () => {
  const runs = [
    run('seta', 1, true, [0.5, 0.75], [100, 50]),
    run('seta', 2, true, [0.25, 1], [100, 70]),
  ];
  const [curve] = curves(['full', 'seta'], runs, used, accuracy);
  assert.equal(curve!.method, 'seta');
  assert.equal(curve!.numRuns, 2);
  assert.deepEqual(curve!.mean, [0.375, 0.875]);
  assert.deepEqual(curve!.low, [0.25, 0.75]);
  assert.deepEqual(curve!.high, [0.5, 1]);
  assert.deepEqual(curve!.x, [100, 160]);
});

test('an unfinished run does not bend the mean of finished ones', () => {
  const runs =
      [run('full', 1, true, [0.5, 0.6, 0.7], [9, 9, 9]), run('full', 2, false, [0.1], [9])];
  assert.deepEqual(curves(['full'], runs, used, accuracy)[0]!.mean, [0.5, 0.6, 0.7]);
});

test('unfinished runs alone are shown as far as all of them got', () => {
  const runs = [run('full', 1, false, [0.5, 0.75], [9, 9]), run('full', 2, false, [0.25], [9])];
  assert.deepEqual(curves(['full'], runs, used, accuracy)[0]!.mean, [0.375]);
});

test('a run without an epoch has no curve', () => {
  assert.deepEqual(curves(['full'], [run('full', 1, false, [], [])], used, accuracy), []);
});

test('a value that is missing is a gap', () => {
  const losses: Series = () => [0.5, null];
  const [curve] = curves(['full'], [run('full', 1, true, [1, 1], [9, 9])], used, losses);
  assert.deepEqual(curve!.mean, [0.5, null]);
  assert.deepEqual(curve!.high, [0.5, null]);
});

test('the last half ends where the curve ends', () => {
  const [curve] =
      curves(['full'], [run('full', 1, true, [1, 2, 3, 4, 5], [1, 1, 1, 1, 1])], used, accuracy);
  assert.deepEqual(lastHalf(curve!).mean, [3, 4, 5]);
  assert.deepEqual(lastHalf(curve!).x, [3, 4, 5]);
});
