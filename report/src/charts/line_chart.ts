// Lines with bands over a value axis, one per method.
import type {Methods} from '../methods';
import {escapeHtml} from '../format';
import {token} from '../theme';
import {frame, valueAxis, type Option} from './chart';
import type {Curve} from './curves';

export interface LineChartSpec {
  curves: Curve[];
  methods: Methods;
  xName: string;
  yName: string;
  xTick: (value: number) => string;
  yTick: (value: number) => string;
  // In the tooltip, with more digits.
  yFormat: (value: number) => string;
  yMin?: number;
  yMax?: number;
  // Every step of the axis is ten times the last; values must be positive.
  yLog?: boolean;
  // Ends of the x axis where x is not a count.
  xRange?: [number, number];
  // True if all curves have the same x, so that one tooltip can compare them.
  shared: boolean;
}

// More points than this are a line without marks.
const kMaxMarks = 40;

function meanSeries(curve: Curve, spec: LineChartSpec): Option {
  const style = spec.methods.style(curve.method);
  return {
    id: `mean ${curve.method}`,
    name: curve.method,
    type: 'line',
    data: curve.x.map((x, e) => [x, curve.mean[e] ?? null]),
    color: style.color,
    lineStyle: {color: style.color, width: style.width, type: style.dash},
    symbol: style.symbol,
    symbolSize: 6,
    showSymbol: curve.x.length <= kMaxMarks,
    emphasis: {focus: 'series'},
    z: 3,
  };
}

// From the lowest to the highest seed: an invisible line, and on top of it the height of the band.
function bandSeries(curve: Curve, spec: LineChartSpec): Option[] {
  if (curve.numRuns < 2) return [];
  const height = curve.x.map((x, e) => {
    const low = curve.low[e] ?? null;
    const high = curve.high[e] ?? null;
    return [x, low === null || high === null ? null : high - low];
  });
  const shared = {
    type: 'line',
    stack: `band ${curve.method}`,
    stackStrategy: 'all',
    symbol: 'none',
    silent: true,
    lineStyle: {opacity: 0},
    tooltip: {show: false},
    z: 1,
  };
  return [
    {...shared, id: `low ${curve.method}`, data: curve.x.map((x, e) => [x, curve.low[e] ?? null])},
    {
      ...shared,
      id: `band ${curve.method}`,
      data: height,
      areaStyle: {color: spec.methods.style(curve.method).color, opacity: 0.13},
    },
  ];
}

interface TooltipItem {
  seriesId: string;
  marker: string;
  dataIndex: number;
}

// One line of the tooltip: the mean, and where the seeds lie.
function tooltipLine(curve: Curve, item: TooltipItem, spec: LineChartSpec): string {
  const value = curve.mean[item.dataIndex] ?? null;
  if (value === null) return '';
  const low = curve.low[item.dataIndex] ?? null;
  const high = curve.high[item.dataIndex] ?? null;
  const range = curve.numRuns > 1 && low !== null && high !== null && low !== high ?
      ` <span style="color:${token('muted')}">(${spec.yFormat(low)} to ${
          spec.yFormat(high)})</span>` :
      '';
  return `<div>${item.marker}${escapeHtml(curve.method)} <b>${spec.yFormat(value)}</b>${
      range}</div>`;
}

function tooltipText(items: TooltipItem[], shown: Curve[], spec: LineChartSpec): string {
  const means = items.filter((item) => item.seriesId.startsWith('mean '));
  const first = means[0];
  if (first === undefined) return '';
  const curveOf = (item: TooltipItem) =>
      shown.find((curve) => `mean ${curve.method}` === item.seriesId);
  const x = curveOf(first)?.x[first.dataIndex] ?? 0;
  const lines = means.map((item) => {
    const curve = curveOf(item);
    return curve === undefined ? '' : tooltipLine(curve, item, spec);
  });
  return `<div>${escapeHtml(spec.xName)}: ${spec.xTick(x)}</div>${lines.join('')}`;
}

export function lineChart(spec: LineChartSpec): Option {
  const shown = spec.curves.filter((curve) => spec.methods.isShown(curve.method));
  const base = frame();
  const xs = shown.flatMap((curve) => curve.x);
  return {
    ...base,
    tooltip: {
      ...(base['tooltip'] as object),
      trigger: spec.shared ? 'axis' : 'item',
      formatter: (items: TooltipItem|TooltipItem[]) =>
          tooltipText(Array.isArray(items) ? items : [items], shown, spec),
    },
    xAxis: {
      ...valueAxis(spec.xName, true, spec.xTick),
      // Epochs from 0 for round steps, or from where the part that is shown begins.
      min: spec.xRange        ? spec.xRange[0] :
          !spec.shared        ? null :
          Math.min(...xs) > 1 ? Math.min(...xs) :
                                0,
      max: spec.xRange ? spec.xRange[1] :
          !spec.shared ? null :
                         Math.max(...xs, 1),
      scale: true,
      minInterval: spec.shared && !spec.xRange ? 1 : 0,
    },
    yAxis: {
      ...valueAxis(spec.yName, false, spec.yTick),
      type: spec.yLog ? 'log' : 'value',
      scale: true,
      min: spec.yMin ?? null,
      max: spec.yMax ?? null,
    },
    series: shown.flatMap((curve) => [...bandSeries(curve, spec), meanSeries(curve, spec)]),
  };
}
