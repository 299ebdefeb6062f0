// Accuracy, pruned share and loss while training.
import {chartPanel} from '../charts/chart';
import {cumulative, curves, lastHalf, type Series} from '../charts/curves';
import {lineChart, type LineChartSpec} from '../charts/line_chart';
import {h, segments} from '../dom';
import {axisDuration, fixed, percent, round, short, significant} from '../format';
import {legend, type Methods} from '../methods';
import type {Comparison} from '../model';
import type {Section} from '../section';

const epochsDone: Series = (metrics) => metrics.samples.map((_, e) => e + 1);
const accuracy: Series = (metrics) => metrics.test_accuracy;

type Axis = Pick<LineChartSpec, 'xName'|'xTick'|'shared'>&{x: Series};

const percentTick = (value: number) => round(100 * value, 2) + '\u202f%';

const kEpochs: Axis = {
  x: epochsDone,
  xName: 'epochs',
  xTick: (value) => fixed(value, 0),
  shared: true
};
const kSamples: Axis = {
  x: (metrics) => cumulative(metrics.samples),
  xName: 'samples used',
  xTick: short,
  shared: false,
};
const kTime: Axis = {
  x: (metrics) => cumulative(metrics.train_seconds),
  xName: 'training time',
  xTick: axisDuration,
  shared: false,
};

function bands(comparison: Comparison): string {
  return comparison.rows.some((row) => row.num_seeds > 1) ?
      ' Line: mean over the seeds; band: lowest to highest seed.' :
      '';
}

function accuracyChart(
    comparison: Comparison, methods: Methods, axis: Axis, title: string,
    note: string): HTMLElement {
  const all = curves(methods.names, comparison.runs, axis.x, accuracy);
  let isHalf = false;
  const panel = chartPanel({
    title,
    description: `Test accuracy of each method against ${axis.xName}.`,
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
      yName: 'test accuracy',
      yTick: percentTick,
      yFormat: percent,
    }),
  });
  methods.onChange(panel.redraw);
  return panel.element;
}

function prunedChart(comparison: Comparison, methods: Methods): HTMLElement {
  const share: Series = (metrics, run) => metrics.samples.map((used) => 1 - used / run.num_train);
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

function lossChart(comparison: Comparison, methods: Methods): HTMLElement {
  const kinds: Series[] = [(metrics) => metrics.train_loss, (metrics) => metrics.test_loss];
  const all = kinds.map((kind) => curves(methods.names, comparison.runs, epochsDone, kind));
  let chosen = 0;
  const panel = chartPanel({
    title: 'Loss',
    description: 'Mean loss of each method against epochs.',
    note:
        'The training loss is over the samples that the epoch used: a method that leaves out ' +
        'easy samples shows a higher one without being worse.' + bands(comparison),
    controls: [segments(
        'Which loss', ['training', 'test'],
        (index) => {
          chosen = index;
          panel.redraw();
        })],
    option: () => lineChart({
      ...kEpochs,
      curves: all[chosen] ?? [],
      methods,
      yName: 'mean loss',
      yTick: (value) => round(value, 6),
      yFormat: (value) => significant(value, 4),
    }),
  });
  methods.onChange(panel.redraw);
  return panel.element;
}

export const trainingCurves: Section = {
  id: 'curves',
  title: 'Training',
  render: (comparison, methods) => {
    if (!comparison.runs.some((run) => run.metrics.samples.length > 0)) return null;
    return h(
        'div', {}, legend(methods),
        h('div', {class: 'charts'},
          accuracyChart(
              comparison, methods, kEpochs, 'Accuracy against epochs',
              'After as many epochs, a pruned run has seen fewer samples.'),
          accuracyChart(
              comparison, methods, kSamples, 'Accuracy against samples used',
              'Summed over the epochs: what was learned from as much work.'),
          accuracyChart(
              comparison, methods, kTime, 'Accuracy against training time',
              'Testing is not counted.'),
          prunedChart(comparison, methods), lossChart(comparison, methods)));
  },
};
