// Differences to the baseline with their intervals.
import {chartPanel, frame, valueAxis, type Option} from '../charts/chart';
import {escapeHtml, fixed, MetricFormat, metricName, metricTitle, significant} from '../format';
import type {Methods} from '../methods';
import type {Comparison, Difference, Metric} from '../model';
import type {Section} from '../section';
import {token} from '../theme';

interface Judged {
  method: string;
  difference: Difference;
}

function unitText(metric: Metric, format: MetricFormat): string {
  if (metric.unit === 'fraction') return ', percentage points';
  return format.differenceUnit === '' ? '' : `, ${format.differenceUnit}`;
}

// The ends of the interval as bars, the mean as a dot, and a line through all three.
function intervalSeries(
    judged: Judged, row: number, methods: Methods, factor: number): Option {
  const {low, high, mean} = judged.difference;
  const color = methods.style(judged.method).color;
  const end = {symbol: 'rect', symbolSize: [2, 14]};
  const dot = {
    value: [factor * mean, row],
    symbol: low === null ? 'emptyCircle' : 'circle',
    symbolSize: 11
  };
  const data = low === null || high === null ?
      [dot] :
      [{value: [factor * low, row], ...end}, dot, {value: [factor * high, row], ...end}];
  return {name: judged.method, type: 'line', data, color, lineStyle: {color, width: 2.5}};
}

function option(
    all: Judged[], methods: Methods, comparison: Comparison, narrow: boolean): Option {
  const metric = comparison.metrics[0];
  const baseline = comparison.baseline ?? '';
  const format = new MetricFormat(metric, comparison.rows.map((row) => row.mean));
  const base = frame();
  const ends = all.flatMap(
      ({difference}) => [difference.low ?? difference.mean, difference.high ?? difference.mean]);
  const reach = 1.1 * Math.max(...ends.map((end) => format.factor * Math.abs(end))) || 1;
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
            `<br>95 % interval ${format.difference(low)} to ${format.difference(high)}` :
            '';
        return `${escapeHtml(found.method)} <b>${format.difference(mean)} ${
            escapeHtml(format.differenceUnit)}</b>${interval}<br>${
            pairs} paired seeds`;
      },
    },
    xAxis: {
      ...valueAxis(
          `${narrow ? 'value' : metricName(metric)} minus ${baseline}${
              narrow ? '' : unitText(metric, format)}`,
          true, (value) => fixed(value, 2)),
      min: -reach,
      max: reach,
      axisLabel: {
        color: token('muted'),
        hideOverlap: true,
        showMinLabel: false,
        showMaxLabel: false,
        formatter: (value: number) => (value > 0 ? '+' : '') +
            significant(Math.abs(value) < 1e-9 * reach ? 0 : value, 3),
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
      ...all.map((judged, row) => intervalSeries(judged, row, methods, format.factor)),
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
    'does not support a difference, and neither do fewer than three seeds.';
const kSingleNote = 'A hollow dot without a bar comes from a single seed.';

export const difference: Section = {
  id: 'difference',
  title: '',
  render: (comparison, methods) => {
    const all = judgedMethods(comparison);
    const baseline = comparison.baseline;
    const metric = comparison.metrics[0];
    if (baseline === null || all.length === 0) return null;
    const panel = chartPanel({
      title: `Difference to ${baseline}`,
      description: `Mean difference in ${
          metricName(metric)} and its 95 % interval, for each method.`,
      note: `${metricTitle(metric)}: ${metric.direction} is better. ${kNote} ${kSingleNote}`,
      height: 86 + 38 * all.length,
      option: (narrow) => option(all, methods, comparison, narrow),
    });
    return panel.element;
  },
};
