import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  binRows,
  kCount,
  kEpoch,
  kHigh,
  kLow,
  kShade,
  kShare,
  meanScore,
  quantile,
  scoreLimits,
} from '../../../report/src/charts/histograms';

const even = {
  low: 0,
  high: 4,
  counts: [10, 10, 10, 10]
};

test('quantiles of an even histogram lie evenly', () => {
  for (const share of [0, 0.25, 0.5, 0.9, 1])
    assert.ok(Math.abs(quantile(even, share) - 4 * share) < 1e-12);
});

test('a far sample does not move a quantile that it is not part of', () => {
  const tail = {low: 0, high: 100, counts: [999, 0, 0, 1]};
  assert.ok(quantile(tail, 0.995) < 25);
  assert.equal(quantile(tail, 1), 100);
});

test('the mean is that of the bins', () => {
  assert.equal(meanScore(even), 2);
  assert.equal(meanScore({low: 1, high: 3, counts: [0, 7]}), 2.5);
});

test('every bin with samples becomes one row, with its own edges and counts', () => {
  const rows = binRows([null, {low: 0, high: 2, counts: [3, 0]}, even]);
  assert.equal(rows.length, 5);
  const [first] = rows;
  assert.deepEqual([first![kEpoch], first![kLow], first![kHigh]], [2, 0, 1]);
  assert.deepEqual([first![kShade], first![kCount], first![kShare]], [1, 3, 1]);
  const total = rows.filter((row) => row[kEpoch] === 3).reduce((sum, row) => sum + row[kShare]!, 0);
  assert.ok(Math.abs(total - 1) < 1e-12);
});

test('limits hold nearly all scores and keep positive ones positive', () => {
  const [low, high] = scoreLimits([even, {low: 0, high: 100, counts: [999, 0, 0, 1]}]);
  assert.ok(low >= 0 && high > 20 && high < 30);
});

test('equal scores still have an axis', () => {
  const [low, high] = scoreLimits([{low: 0.7, high: 0.7, counts: [5]}]);
  assert.ok(low < 0.7 && high > 0.7);
});
