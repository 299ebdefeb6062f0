// What the batch losses of a recorded run tell about its samples: the results of `tamis analyze`.
import {chartPanel} from '../charts/chart';
import {plainCurve, type Curve} from '../charts/curves';
import {lineChart, type LineChartSpec} from '../charts/line_chart';
import {h, segments} from '../dom';
import {count, fixed, percent, plural, significant} from '../format';
import {legend, Methods} from '../methods';
import type {Analysis, Run, ScoreFidelity} from '../model';
import {perRun} from '../per_run';
import type {Section} from '../section';

type Lines = Omit<LineChartSpec, 'curves'|'methods'>;

const digits = (value: number) => significant(value, 3);

// A chart of named lines with its own legend. `curves` is asked at every drawing.
function linesPanel(
    title: string, description: string, note: string, names: string[], curves: () => Curve[],
    lines: Lines, controls: (redraw: () => void) => HTMLElement[] = () => []): HTMLElement {
  const methods = new Methods(names, null);
  const panel = chartPanel({
    title,
    description,
    note,
    controls: [...controls(() => panel.redraw()), legend(methods)],
    option: () => lineChart({...lines, curves: curves(), methods}),
  });
  methods.onChange(panel.redraw);
  return panel.element;
}

function spectraChart(spectra: NonNullable<Analysis['spectra']>): HTMLElement {
  // Without frequency 0: the mean of every segment was taken away.
  const x = spectra.frequencies.slice(1);
  const all = [
    plainCurve('noise L \u2212 l/B', x, spectra.noise.slice(1)),
    plainCurve('signal l/B', x, spectra.signal.slice(1)),
  ];
  return linesPanel(
      'Spectra of signal and noise', 'Mean power spectral density of signal and noise.',
      `Mean over ${plural(spectra.num_samples, 'sample')}, Welch segments of ${
          spectra.segment_length} visits. The noise is above the signal at ${
          spectra.num_noise_above} of ${spectra.num_frequencies} frequencies. The filter\u2019s ` +
          `cut-off is at ${fixed(spectra.cutoff, 4)}.`,
      all.map((curve) => curve.method), () => all, {
        xName: 'cycles per visit',
        xTick: (value) => significant(value, 3),
        xRange: [0, 0.5],
        shared: true,
        yName: 'power density',
        yTick: (value) => value.toExponential(0),
        yFormat: digits,
        yLog: true,
      });
}

function seriesChart(series: NonNullable<Analysis['series']>): HTMLElement {
  const x = series.batch_loss.map((_, k) => k + 1);
  const all = [
    plainCurve('batch loss L', x, series.batch_loss),
    plainCurve('score', x, series.score),
    plainCurve('sample loss l', x, series.sample_loss),
    plainCurve('signal l/B', x, series.signal),
  ];
  return linesPanel(
      'One sample through training', 'Losses and score of one sample, visit by visit.',
      `Sample ${count(series.sample)}. The batch loss is all that the score sees; l/B is how ` +
          'much of it is the sample\u2019s own.',
      all.map((curve) => curve.method), () => all, {
        xName: 'visit',
        xTick: (value) => fixed(value, 0),
        shared: true,
        yName: 'loss',
        yTick: digits,
        yFormat: digits,
      });
}

function ratioChart(ratios: NonNullable<Analysis['signal_to_noise']>): HTMLElement {
  const x = ratios.after.map((one) => one.alpha);
  const all = [
    plainCurve('between samples', x, ratios.after.map((one) => one.between_samples)),
    plainCurve('over visits', x, ratios.after.map((one) => one.over_visits)),
  ];
  return linesPanel(
      'Signal-to-noise ratio by alpha', 'Signal over noise after the moving average, by alpha.',
      'Variance of the filtered signal over that of the filtered noise; alpha 0 is no filter. ' +
          'Between samples is what a ranking sees.',
      all.map((curve) => curve.method), () => all, {
        xName: 'alpha',
        xTick: digits,
        xRange: [0, 1],
        shared: true,
        yName: 'signal / noise',
        yTick: (value) => value.toExponential(0),
        yFormat: digits,
        yLog: true,
      });
}

type Measure = 'spearman'|'pearson'|'top_overlap';
const kMeasures: Measure[] = ['spearman', 'pearson', 'top_overlap'];

function fidelityChart(fidelity: Analysis['fidelity']): HTMLElement {
  let measure: Measure = 'spearman';
  const x = fidelity.epochs.map((epoch) => epoch + 1);
  const curve = (score: ScoreFidelity) => plainCurve(score.name, x, score[measure]);
  const names = (matches: (score: ScoreFidelity) => boolean) =>
      fidelity.scores.filter(matches).map((score) => score.name).join(', ');
  const gradients = names((score) => score.sees === 'output gradients');
  const own = names(
      (score) => score.sees !== 'batch losses' && score.sees !== 'output gradients');
  return linesPanel(
      'Agreement with the true loss', 'How well every score agrees with the true losses.',
      `True loss: ${
          fidelity.truth === 'measured' ? 'of every recorded sample, measured after the epoch' :
                                          'of each sample at its last visit'}. ${
          own} see the sample\u2019s loss, ${
          gradients ? `${gradients} the gradient of its output, ` : ''}the others ` +
          `only the mean of its batches. Chance gives 0, for the highest ${
              percent(fidelity.top_share, 0)} in common ${percent(fidelity.top_share, 0)}.`,
      fidelity.scores.map((score) => score.name), () => fidelity.scores.map(curve), {
        xName: 'epochs',
        xTick: (value) => fixed(value, 0),
        shared: true,
        yName: 'agreement',
        yTick: digits,
        yFormat: (value) => fixed(value, 3),
        yMax: 1,
      },
      (redraw) => [segments(
          'Which measure', ['Spearman', 'Pearson', `top ${percent(fidelity.top_share, 0)}`],
          (index) => {
            measure = kMeasures[index]!;
            redraw();
          })]);
}

function alphaChart(fidelity: Analysis['fidelity']): HTMLElement {
  const x = fidelity.alphas.map((score) => Number(score.options['alpha']));
  const last = fidelity.epochs.length - 1;
  const names: Record<Measure, string> = {
    spearman: 'Spearman',
    pearson: 'Pearson',
    top_overlap: `top ${percent(fidelity.top_share, 0)} in common`,
  };
  const all = kMeasures.map(
      (measure) => plainCurve(
          names[measure], x, fidelity.alphas.map((score) => score[measure][last] ?? null)));
  return linesPanel(
      'Batch loss score by alpha', 'Agreement of the batch loss score with the true loss.',
      `After epoch ${
          (fidelity.epochs[last] ?? 0) + 1}, for the same run replayed with every alpha.`,
      all.map((curve) => curve.method), () => all, {
        xName: 'alpha',
        xTick: digits,
        xRange: [0, 1],
        shared: true,
        yName: 'agreement',
        yTick: digits,
        yFormat: (value) => fixed(value, 3),
      });
}

function facts(found: Analysis): string {
  const {recording, decomposition} = found;
  const check = decomposition === null || decomposition.largest_error === null ?
      '' :
      ` Filtered signal, filtered noise and initial term add up to the score within ${
          decomposition.largest_error.toExponential(0)} of it.`;
  const missing = found.spectra === null ? ` No spectra: ${found.why_no_signal}.` : '';
  return `${count(recording.num_recorded)} of ${
             plural(recording.num_samples, 'sample')} recorded ` +
      `over ${plural(recording.num_epochs, 'epoch')} in batches of ${recording.batch_size}.` +
      check + missing;
}

function charts(found: Analysis): HTMLElement[] {
  const hasTruth = found.fidelity.epochs.length > 0;
  return [
    ...(found.spectra === null ? [] : [spectraChart(found.spectra)]),
    ...(found.series === null ? [] : [seriesChart(found.series)]),
    ...(found.signal_to_noise === null ? [] : [ratioChart(found.signal_to_noise)]),
    ...(hasTruth ? [fidelityChart(found.fidelity), alphaChart(found.fidelity)] : []),
  ];
}

export const analysis: Section = {
  id: 'analysis',
  title: 'What the batch loss tells',
  render: (comparison) => perRun(
      comparison.runs.filter((run): run is Run&{analysis: Analysis} => run.analysis !== null),
      (run) =>
          [h('p', {class: 'note'}, facts(run.analysis)),
           h('div', {class: 'charts'}, ...charts(run.analysis))]),
};
