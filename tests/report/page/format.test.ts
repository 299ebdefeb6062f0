import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  duration,
  escapeHtml,
  fixed,
  MetricFormat,
  metricTitle,
  percent,
  round,
  settingValue,
  short,
  significant,
  timeUnit,
} from '../../../report/src/format';
import type {Metric} from '../../../report/src/model';

const accuracy: Metric =
    {name: 'test_accuracy', unit: 'fraction', direction: 'higher', headline: true};

test('a share is shown in per cent, and one that is not known as a dash', () => {
  assert.equal(percent(0.91523), '91.52\u202f%');
  assert.equal(percent(-0.005, 1), '\u22120.5\u202f%');
  assert.equal(percent(null), '\u2013');
});

test('a difference has a sign unless it rounds to zero', () => {
  const format = new MetricFormat(accuracy, [0.9]);
  assert.equal(format.difference(0.0012), '+0.12');
  assert.equal(format.difference(-0.0012), '\u22120.12');
  assert.equal(format.difference(0.00001), '0.00');
  assert.equal(format.difference(-0.00001), '0.00');
});

test('a value has the unit of its metric and four digits', () => {
  const format = new MetricFormat(accuracy, [0.9]);
  assert.equal(format.value(0.91523), '91.52\u202f%');
  assert.equal(format.differenceUnit, 'points');
  assert.equal(format.tick(0.9), '90\u202f%');
  const caption = new MetricFormat({...accuracy, unit: ''}, [null, 112.44, null]);
  assert.equal(caption.value(112.44), '112.4');
  assert.equal(caption.value(null), '\u2013');
  const distance = new MetricFormat({...accuracy, unit: 'mm'}, [0.5]);
  assert.equal(distance.value(0.12345), '0.1235\u202fmm');
  assert.equal(metricTitle(accuracy), 'Test accuracy');
});

test('times have the unit that fits', () => {
  assert.equal(duration(0), '0\u202fs');
  assert.equal(duration(0.0123), '12.3\u202fms');
  assert.equal(duration(61.04), '61.0\u202fs');
  assert.equal(duration(119.6), '2\u202fmin 0\u202fs');
  assert.equal(duration(3725), '1\u202fh 2\u202fmin');
  assert.equal(duration(null), '\u2013');
});

test('all times of an axis have one unit', () => {
  assert.equal(timeUnit(60).tick(60), '60\u202fs');
  const minutes = timeUnit(400);
  assert.deepEqual(
      [0, 150, 300].map((seconds) => minutes.tick(seconds / minutes.seconds)),
      ['0\u202fmin', '2.5\u202fmin', '5\u202fmin']);
  assert.equal(timeUnit(36000).tick(10), '10\u202fh');
});

test('numbers on axes are short and have no trailing zeros', () => {
  assert.equal(short(0), '0');
  assert.equal(short(1200000), '1.2\u202fM');
  assert.equal(short(60000), '60\u202fk');
  assert.equal(round(78, 2), '78');
  assert.equal(round(0.1 + 0.2, 6), '0.3');
  assert.equal(significant(0.000012345, 3), '1.23e\u22125');
  assert.equal(significant(-0.5, 3), '\u22120.5');
  assert.equal(fixed(-0.0001, 2), '0.00');
});

test('settings are shown as a person would write them', () => {
  assert.equal(settingValue(60000), '60,000');
  assert.equal(settingValue(0.0005), '0.0005');
  assert.equal(settingValue(true), 'yes');
  assert.equal(settingValue(null), '\u2013');
  assert.equal(settingValue(['a', 2]), 'a, 2');
});

test('names cannot become markup in a tooltip', () => {
  assert.equal(
      escapeHtml('<img src=x onerror="a(\'b\')">&'),
      '&lt;img src=x onerror=&quot;a(&#39;b&#39;)&quot;&gt;&amp;');
});
