import assert from 'node:assert/strict';
import {test} from 'node:test';

import {rangeOf, sparkPath} from '../../../report/src/charts/sparkline';

test('curves of one range begin at zero and can be compared', () => {
  assert.deepEqual(rangeOf([[1, null], [3]]), {low: 0, high: 3});
  assert.deepEqual(rangeOf([[-1, 2]]), {low: -1, high: 2});
  assert.deepEqual(rangeOf([]), {low: 0, high: 0});
});

test('the curve spans its width, high values above low ones', () => {
  assert.equal(sparkPath([0, 2], {low: 0, high: 2}), 'M2.0 18.0 L70.0 2.0');
});

test('the curve is interrupted where there is no value, and a single value is a dot', () => {
  assert.equal(
      sparkPath([1, null, 1, 1], {low: 0, high: 1}), 'M2.0 2.0 L2.0 2.0 M47.3 2.0 L70.0 2.0');
  assert.equal(sparkPath([1], {low: 0, high: 1}), 'M36.0 2.0 L36.0 2.0');
  assert.equal(sparkPath([null, null], {low: 0, high: 1}), '');
});

test('values that are all zero lie on the ground', () => {
  assert.equal(sparkPath([0, 0], {low: 0, high: 0}), 'M2.0 18.0 L70.0 18.0');
});
