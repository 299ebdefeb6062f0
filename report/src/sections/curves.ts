// The metrics and the pruned share while training.
import {chartPanel} from '../charts/chart';
import {cumulative, curves, lastHalf, type Series} from '../charts/curves';
import {lineChart, type LineChartSpec} from '../charts/line_chart';
import {h, segments, select} from '../dom';
import {
  fixed,
  MetricFormat,
  metricName,
  metricTitle,
  percent,
  round,
  short,
  timeUnit,
} from '../format';
import {legend, type Methods} from '../methods';
import type {Comparison, Metric} from '../model';
import type {Section} from '../section';

const epochsDone: Series = (epochs) => epochs.samples.map((_, e) => e + 1);

function valuesOf(metric: Metric): Series {
  return (epochs) => epochs.values[metric.name] ?? epochs.samples.map(() => null);
}

type Axis = Pick<LineChartSpec, 'xName'|'xTick'|'shared'>&{x: Series};

const percentTick = (value: number) => round(100 * value, 2) + '\u202f%';

const kEpochs: Axis = {
  x: epochsDone,
  xName: 'epochs',
  xTick: (value) => fixed(value, 0),
  shared: true
};
const kSamples: Axis = {
  x: (epochs) => cumulative(epochs.samples),
  xName: 'samples used',
  xTick: short,
  shared: false,
};
function timeAxis(comparison: Comparison): Axis {
  const totals = comparison.runs.map((run) => cumulative(run.epochs.train_seconds).at(-1) ?? 0);
  const unit = timeUnit(Math.max(...totals));
  return {
    x: (epochs) => cumulative(epochs.train_seconds).map((seconds) => seconds / unit.seconds),
    xName: 'training time',
    xTick: unit.tick,
    shared: false,
  };
}

function bands(comparison: Comparison): string {
  return comparison.rows.some((row) => row.num_seeds > 1) ?
      ' Line: mean over the seeds; band: lowest to highest seed.' :
      '';
}

function formatOf(metric: Metric, comparison: Comparison): MetricFormat {
  return new MetricFormat(
      metric, comparison.runs.flatMap((run) => run.epochs.values[metric.name] ?? []));
}

function headlineChart(
    comparison: Comparison, methods: Methods, axis: Axis, note: string): HTMLElement {
  const metric = comparison.metrics[0];
  const title = metricTitle(metric);
  const format = formatOf(metric, comparison);
  const all = curves(methods.names, comparison.runs, axis.x, valuesOf(metric));
  let isHalf = false;
  const panel = chartPanel({
    title: `${title} against ${axis.xName}`,
    description: `${title} of each method against ${axis.xName}.`,
    note: note + bands(comparison),
    controls: [segments(
        'Part of the training', ['all epochs', 'last half'],
        (index) => {
          isHalf = index === 1;
          panel.redraw();
        })],
    option: () => lineChart({
      ...axis,
      curves: isHalf ? all.map(lastHalf) : all,
      methods,
      yName: axisName(metric, format),
      yTick: (value) => format.tick(value),
      yFormat: (value) => format.value(value),
    }),
  });
  methods.onChange(panel.redraw);
  return panel.element;
}

// With the unit, unless the ticks have it.
function axisName(metric: Metric, format: MetricFormat): string {
  return metricName(metric) +
      (format.unit === '' || format.unit === '%' ? '' : `, ${format.unit}`);
}

function prunedChart(comparison: Comparison, methods: Methods): HTMLElement {
  const share: Series = (epochs, run) => epochs.pruned.map((pruned) => pruned / run.num_train);
  const all = curves(methods.names, comparison.runs, epochsDone, share);
  const panel = chartPanel({
    title: 'Pruned share per epoch',
    description: 'Share of the training samples that each method left out, epoch by epoch.',
    note: 'Share of the training samples that an epoch left out.',
    option: () => lineChart({
      ...kEpochs,
      xName: 'epoch',
      curves: all,
      methods,
      yName: 'pruned',
      yTick: percentTick,
      yFormat: (value) => percent(value, 1),
      yMin: 0,
    }),
  });
  methods.onChange(panel.redraw);
  return panel.element;
}

// All metrics but the headline, one at a time.
function otherChart(comparison: Comparison, methods: Methods): HTMLElement|null {
  const others = comparison.metrics.slice(1);
  if (others.length === 0) return null;
  const all = others.map(
      (metric) => curves(methods.names, comparison.runs, epochsDone, valuesOf(metric)));
  let chosen = 0;
  const names = others.map(metricTitle);
  const panel = chartPanel({
    title: 'Other metrics',
    description: 'The other metrics of each method against epochs.',
    note: 'What is measured on the samples of the epoch is not comparable between methods: one ' +
        'that leaves out easy samples shows a higher training loss without being worse.' +
        bands(comparison),
    controls: [(names.length > 4 ? select : segments)('metric', names, (index) => {
      chosen = index;
      panel.redraw();
    })],
    option: () => {
      const metric = others[chosen]!;
      const format = formatOf(metric, comparison);
      return lineChart({
        ...kEpochs,
        curves: all[chosen]!,
        methods,
        yName: axisName(metric, format),
        yTick: (value) => format.tick(value),
        yFormat: (value) => format.value(value),
      });
    },
  });
  methods.onChange(panel.redraw);
  return panel.element;
}

export const trainingCurves: Section = {
  id: 'curves',
  title: 'Training',
  render: (comparison, methods) => {
    if (!comparison.runs.some((run) => run.epochs.samples.length > 0)) return null;
    return h(
        'div', {}, legend(methods),
        h('div', {class: 'charts'},
          headlineChart(
              comparison, methods, kEpochs,
              'After as many epochs, a pruned run has seen fewer samples.'),
          headlineChart(
              comparison, methods, kSamples,
              'Summed over the epochs: what was learned from as much work.'),
          headlineChart(
              comparison, methods, timeAxis(comparison), 'Testing is not counted.'),
          prunedChart(comparison, methods), otherChart(comparison, methods)));
  },
};
