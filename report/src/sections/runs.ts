// Every run with all its epochs, folded away.
import {h} from '../dom';
import {count, duration, kNone, percent, significant} from '../format';
import {swatch, type Methods} from '../methods';
import type {Run} from '../model';
import type {Section} from '../section';

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function loss(value: number|null|undefined): string {
  return value === null || value === undefined ? kNone : significant(value, 4);
}

const kColumns: [string, (run: Run, e: number) => string][] = [
  ['Epoch', (_, e) => String(e + 1)],
  ['Samples', (run, e) => count(run.metrics.samples[e]!)],
  ['Pruned', (run, e) => percent(1 - run.metrics.samples[e]! / run.num_train, 1)],
  ['Steps', (run, e) => count(run.metrics.steps[e]!)],
  ['Train loss', (run, e) => loss(run.metrics.train_loss[e])],
  ['Train acc.', (run, e) => percent(run.metrics.train_accuracy[e]!)],
  ['Test loss', (run, e) => loss(run.metrics.test_loss[e])],
  ['Test acc.', (run, e) => percent(run.metrics.test_accuracy[e]!)],
  ['Learning rate', (run, e) => significant(run.metrics.learning_rate[e]!, 3)],
  ['Training', (run, e) => duration(run.metrics.train_seconds[e]!)],
  ['of it pruning', (run, e) => duration(run.metrics.prune_seconds[e]!)],
  ['Testing', (run, e) => duration(run.metrics.test_seconds[e]!)],
];

function epochTable(run: Run): HTMLElement {
  const rows = run.metrics.samples.map(
      (_, e) => h('tr', {}, ...kColumns.map(([, cell]) => h('td', {}, cell(run, e)))));
  return h(
      'div', {
        class: 'scroll',
        tabindex: '0',
        role: 'region',
        'aria-label': `Epochs of ${run.method}, seed ${run.seed}`
      },
      h('table', {class: 'epochs'},
        h('thead', {}, h('tr', {}, ...kColumns.map(([title]) => h('th', {scope: 'col'}, title)))),
        h('tbody', {}, ...rows)));
}

function details(run: Run): HTMLElement[] {
  const date = run.config.environment?.['date'];
  const facts = [
    run.folder, run.name === run.method ? '' : run.name,
    typeof date === 'string' ? `started ${date}` : ''
  ];
  return [
    h('p', {class: 'note'}, facts.filter((fact) => fact !== '').join(' · ')), epochTable(run)
  ];
}

function runItem(run: Run, methods: Methods): HTMLElement {
  const last = run.metrics.test_accuracy[run.metrics.test_accuracy.length - 1];
  const done = run.metrics.samples.length;
  const state = run.finished ? '' : `, ${done} of ${run.num_epochs} epochs`;
  const summary =
      h('summary', {}, swatch(methods, run.method), h('b', {}, run.method),
        ` seed ${run.seed}${state}`,
        h('span', {class: 'muted'},
          last === undefined ? 'no epoch yet' :
                               `${percent(last)} · ${duration(sum(run.metrics.train_seconds))}`));
  const item =
      h('details', {
        class: 'run',
        ontoggle: () => {
          // Filled when it is first opened: many runs of many epochs are a large page.
          if (item.open && item.childElementCount === 1) item.append(...details(run));
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
    return h('div', {}, ...comparison.runs.map((run) => runItem(run, methods)));
  },
};
