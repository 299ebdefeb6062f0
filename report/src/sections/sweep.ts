// The headline metric and the pruned share against the option that a sweep varies.
import {chartPanel} from '../charts/chart';
import {lineChart} from '../charts/line_chart';
import {baselineCurve, finalValue, pruned, sweepCurve, type Figure} from '../charts/sweep_curves';
import {h} from '../dom';
import {MetricFormat, metricName, metricTitle, significant} from '../format';
import {legend, Methods} from '../methods';
import type {Comparison, Metric, Sweep} from '../model';
import type {Section} from '../section';

const kPruned: Metric = {name: 'pruned', unit: 'fraction', direction: 'higher', headline: false};

function sweepChart(
    comparison: Comparison, swept: Sweep, methods: Methods, title: string, metric: Metric,
    figure: Figure): HTMLElement {
  const curve = sweepCurve(comparison, swept, figure);
  const format = new MetricFormat(metric, curve.mean);
  const option = swept.option.replace(/_/g, ' ');
  const panel = chartPanel({
    title,
    description: `${title} of ${swept.method}, mean over the seeds at every value.`,
    note: 'Line: mean over the seeds; band: lowest to highest seed.',
    option: () => lineChart({
      curves: [curve, ...baselineCurve(comparison, curve.x, figure)],
      methods,
      xName: option,
      xTick: (value) => significant(value, 4),
      xRange: [Math.min(...curve.x), Math.max(...curve.x)],
      shared: true,
      yName: metricName(metric),
      yTick: (value) => format.tick(value),
      yFormat: (value) => format.value(value),
    }),
  });
  methods.onChange(panel.redraw);
  return panel.element;
}

export const sweep: Section = {
  id: 'sweep',
  title: 'Sweep',
  render: (comparison) => {
    const swept = comparison.sweep;
    if (swept === null || sweepCurve(comparison, swept, pruned).x.length === 0) return null;
    const names = [swept.method, ...(comparison.baseline === null ? [] : [comparison.baseline])];
    const methods = new Methods(names, comparison.baseline);
    const option = swept.option.replace(/_/g, ' ');
    const headline = comparison.metrics[0];
    return h(
        'div', {}, legend(methods),
        h('div', {class: 'charts'},
          sweepChart(
              comparison, swept, methods, `${metricTitle(headline)} against ${option}`, headline,
              finalValue(headline)),
          sweepChart(
              comparison, swept, methods, `Pruned share against ${option}`, kPruned, pruned)));
  },
};
