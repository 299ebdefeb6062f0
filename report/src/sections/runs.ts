// Every run with all its epochs, folded away.
import {h} from '../dom';
import {count, duration, kNone, MetricFormat, metricTitle, percent, plural, significant} from '../format';
import {swatch, type Methods} from '../methods';
import type {Metric, Run} from '../model';
import type {Section} from '../section';

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

interface Column {
  title: string;
  cell: (e: number) => string;
}

function metricColumn(run: Run, metric: Metric): Column {
  const values = run.epochs.values[metric.name] ?? [];
  const format = new MetricFormat(metric, values);
  return {title: metricTitle(metric), cell: (e) => format.value(values[e] ?? null)};
}

function columnsOf(run: Run, metrics: Metric[]): Column[] {
  const {epochs} = run;
  const columns: Column[] = [
    {title: 'Epoch', cell: (e) => String(e + 1)},
    {title: 'Samples', cell: (e) => count(epochs.samples[e]!)},
    {title: 'Pruned', cell: (e) => percent(epochs.pruned[e]! / run.num_train, 1)},
  ];
  if (epochs.steps.some((steps) => steps > 0))
    columns.push({title: 'Steps', cell: (e) => count(epochs.steps[e]!)});
  columns.push(...metrics.map((metric) => metricColumn(run, metric)));
  if (epochs.learning_rate.some((rate) => rate !== null)) {
    columns.push({
      title: 'Learning rate',
      cell: (e) => epochs.learning_rate[e] === null ? kNone :
                                                      significant(epochs.learning_rate[e]!, 3),
    });
  }
  columns.push(
      {title: 'Training', cell: (e) => duration(epochs.train_seconds[e]!)},
      {title: 'of it pruning', cell: (e) => duration(epochs.prune_seconds[e]!)},
      {title: 'Testing', cell: (e) => duration(epochs.test_seconds[e]!)});
  return columns;
}

function epochTable(run: Run, metrics: Metric[]): HTMLElement {
  const columns = columnsOf(run, metrics);
  const rows = run.epochs.samples.map(
      (_, e) => h('tr', {}, ...columns.map((column) => h('td', {}, column.cell(e)))));
  return h(
      'div', {
        class: 'scroll',
        tabindex: '0',
        role: 'region',
        'aria-label': `Epochs of ${run.method}, seed ${run.seed}`
      },
      h('table', {class: 'epochs'},
        h('thead', {}, h('tr', {}, ...columns.map(({title}) => h('th', {scope: 'col'}, title)))),
        h('tbody', {}, ...rows)));
}

function details(run: Run, metrics: Metric[]): HTMLElement[] {
  const date = run.config.environment?.['date'];
  const facts = [
    run.folder, run.name === run.method ? '' : run.name,
    typeof date === 'string' ? `started ${date}` : ''
  ];
  return [
    h('p', {class: 'note'}, facts.filter((fact) => fact !== '').join(' · ')),
    epochTable(run, metrics)
  ];
}

function runItem(run: Run, methods: Methods, metrics: [Metric, ...Metric[]]): HTMLElement {
  const last = run.epochs.values[metrics[0].name]?.at(-1) ?? null;
  const done = run.epochs.samples.length;
  const state = run.finished ? '' : `, ${done} of ${plural(run.num_epochs, 'epoch')}`;
  const summary =
      h('summary', {}, swatch(methods, run.method), h('b', {}, run.method),
        ` seed ${run.seed}${state}`,
        h('span', {class: 'muted'},
          done === 0 ? 'no epoch yet' :
                       `${new MetricFormat(metrics[0], [last]).value(last)} · ${
                           duration(sum(run.epochs.train_seconds))}`));
  const item =
      h('details', {
        class: 'run',
        ontoggle: () => {
          // Filled when it is first opened: many runs of many epochs are a large page.
          if (item.open && item.childElementCount === 1) item.append(...details(run, metrics));
        }
      },
        summary);
  return item;
}

export const runs: Section = {
  id: 'runs',
  title: 'Runs',
  render: (comparison, methods) => {
    if (comparison.runs.length === 0) return null;
    return h('div', {}, ...comparison.runs.map((run) => runItem(run, methods, comparison.metrics)));
  },
};
