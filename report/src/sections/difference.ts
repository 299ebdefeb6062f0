// Differences to the baseline with their intervals.
import {chartPanel, frame, valueAxis, type Option} from '../charts/chart';
import {escapeHtml, fixed, points} from '../format';
import type {Methods} from '../methods';
import type {Comparison, Difference} from '../model';
import type {Section} from '../section';
import {token} from '../theme';

interface Judged {
  method: string;
  difference: Difference;
}

// The ends of the interval as bars, the mean as a dot, and a line through all three.
function intervalSeries(judged: Judged, row: number, methods: Methods): Option {
  const {low, high, mean} = judged.difference;
  const color = methods.style(judged.method).color;
  const end = {symbol: 'rect', symbolSize: [2, 14]};
  const dot = {
    value: [100 * mean, row],
    symbol: low === null ? 'emptyCircle' : 'circle',
    symbolSize: 11
  };
  const data = low === null || high === null ?
      [dot] :
      [{value: [100 * low, row], ...end}, dot, {value: [100 * high, row], ...end}];
  return {name: judged.method, type: 'line', data, color, lineStyle: {color, width: 2.5}};
}

function option(all: Judged[], methods: Methods, baseline: string, narrow: boolean): Option {
  const base = frame();
  const ends = all.flatMap(
      ({difference}) => [difference.low ?? difference.mean, difference.high ?? difference.mean]);
  const reach = 110 * Math.max(...ends.map(Math.abs), 0.0005);
  return {
    ...base,
    grid: {...(base['grid'] as object), top: 20},
    tooltip: {
      ...(base['tooltip'] as object),
      trigger: 'item',
      formatter: (item: {seriesName: string}) => {
        const found = all.find((one) => one.method === item.seriesName);
        if (found === undefined) return '';
        const {mean, low, high, num_pairs: pairs} = found.difference;
        const interval = low !== null && high !== null ?
            `<br>95 % interval ${points(low)} to ${points(high)}` :
            '';
        return `${escapeHtml(found.method)} <b>${points(mean)} points</b>${interval}<br>${
            pairs} paired seeds`;
      },
    },
    xAxis: {
      ...valueAxis(
          `${narrow ? 'points' : 'accuracy'} minus ${baseline}${
              narrow ? '' : ', percentage points'}`,
          true, (value) => fixed(value, 2)),
      min: -reach,
      max: reach,
      axisLabel: {
        color: token('muted'),
        hideOverlap: true,
        showMinLabel: false,
        showMaxLabel: false,
        formatter: (value: number) => (value > 0 ? '+' : '') + fixed(value, reach < 0.5 ? 2 : 1),
      },
      splitLine: {show: true, lineStyle: {color: token('line')}},
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: all.map((one) => one.method),
      axisLine: {show: false},
      axisTick: {show: false},
      axisLabel: {color: token('text'), width: narrow ? 112 : 200, overflow: 'break'},
    },
    series: [
      ...all.map((judged, row) => intervalSeries(judged, row, methods)),
      {
        type: 'line',
        data: [],
        markLine: {
          silent: true,
          symbol: 'none',
          lineStyle: {color: token('text'), type: 'solid', width: 1.5},
          label: {formatter: baseline, color: token('text'), position: 'start', distance: 4},
          data: [{xAxis: 0}],
        },
      },
    ],
  };
}

function judgedMethods(comparison: Comparison): Judged[] {
  return comparison.rows.flatMap(
      (row) => row.difference === null ? [] : [{method: row.method, difference: row.difference}]);
}

const kNote = 'Dot: mean over the paired seeds. Bar: 95\u202f% interval; one that crosses zero ' +
    'does not support a difference.';
const kSingleNote = 'A hollow dot without a bar comes from a single seed.';

export const difference: Section = {
  id: 'difference',
  title: '',
  render: (comparison, methods) => {
    const all = judgedMethods(comparison);
    const baseline = comparison.baseline;
    if (baseline === null || all.length === 0) return null;
    const panel = chartPanel({
      title: `Difference to ${baseline}`,
      description: 'Mean difference in test accuracy and its 95 % interval, for each method.',
      note: `${kNote} ${kSingleNote}`,
      height: 86 + 38 * all.length,
      option: (narrow) => option(all, methods, baseline, narrow),
    });
    return panel.element;
  },
};
