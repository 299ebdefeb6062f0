// The comparison table. On a phone every row becomes a card.
import {h} from '../dom';
import {duration, fixed, kNone, percent, plural, points} from '../format';
import {swatch, type Methods} from '../methods';
import type {Comparison, Row} from '../model';
import type {Section} from '../section';

interface Column {
  title: string;
  // In a card, where the unit and the interval explain themselves.
  short?: string;
  cell: (row: Row, comparison: Comparison, methods: Methods) => (Node | string)[];
}

function accuracy(row: Row): string {
  if (row.accuracy_mean === null) return kNone;
  if (row.accuracy_deviation === null) return percent(row.accuracy_mean);
  return `${fixed(100 * row.accuracy_mean, 2)} ± ${percent(row.accuracy_deviation)}`;
}

// The word for what the interval supports, never more.
export function judgement(row: Row, baseline: string): {text: string, kind: string} {
  const difference = row.difference;
  if (difference === null || difference.num_pairs < 2)
    return {text: 'one seed, not judged', kind: 'open'};
  if (!difference.supported) return {text: `within noise of ${baseline}`, kind: 'noise'};
  return difference.mean < 0 ? {text: `below ${baseline}`, kind: 'below'} :
                               {text: `above ${baseline}`, kind: 'above'};
}

function differenceCell(row: Row, comparison: Comparison): (Node|string)[] {
  if (comparison.baseline === null) return [kNone];
  if (row.method === comparison.baseline) return [h('span', {class: 'muted'}, 'baseline')];
  const difference = row.difference;
  if (difference === null) return [kNone];
  const interval = difference.low !== null && difference.high !== null ?
      ` (${points(difference.low)} to ${points(difference.high)})` :
      '';
  const {text, kind} = judgement(row, comparison.baseline);
  return [
    h('span', {class: 'nowrap'}, h('b', {}, points(difference.mean)), interval),
    ' ',
    h('span', {class: `tag ${kind}`}, text),
  ];
}

const kColumns: Column[] = [
  {title: 'Test accuracy', cell: (row) => [accuracy(row)]},
  {title: 'Difference, points (95\u202f% interval)', short: 'Difference', cell: differenceCell},
  {title: 'Pruned', cell: (row) => [percent(row.pruned_share, 1)]},
  {title: 'Training time', cell: (row) => [duration(row.train_seconds_mean)]},
  {title: 'Time saved', cell: (row) => [percent(row.time_saved, 1)]},
  {title: 'Cost of pruning', cell: (row) => [percent(row.prune_overhead, 3)]},
  {title: 'Seeds', cell: (row) => [String(row.num_seeds)]},
];

function bodyRow(row: Row, comparison: Comparison, methods: Methods): HTMLElement {
  const cells = kColumns.map(
      (column) =>
          h('td', {'data-title': column.short ?? column.title},
            h('span', {}, ...column.cell(row, comparison, methods))));
  return h(
      'tr', {class: row.method === comparison.baseline ? 'baseline' : ''},
      h('th', {scope: 'row'}, swatch(methods, row.method), row.method), ...cells);
}

function note(comparison: Comparison): string {
  const seeds = Math.max(...comparison.rows.map((row) => row.num_seeds));
  return [
    `Accuracy after the last epoch, mean ± sample deviation over ${plural(seeds, 'seed')}.`,
    'Differences and time saved are paired by seed;',
    'the interval is Student\u2019s, for each method by itself.',
    '\u201cWithin noise\u201d means that the interval includes zero,',
    'not that there is no difference. Cost of pruning is the share of the training time',
    'that planning and scoring took.',
  ].join(' ');
}

export const table: Section = {
  id: 'table',
  title: 'Comparison',
  render: (comparison, methods) => {
    if (comparison.rows.length === 0) return null;
    const head =
        h('tr', {}, h('th', {scope: 'col'}, 'Method'),
          ...kColumns.map((column) => h('th', {scope: 'col'}, column.title)));
    const body = comparison.rows.map((row) => bodyRow(row, comparison, methods));
    return h(
        'div', {}, h('table', {class: 'comparison'}, h('thead', {}, head), h('tbody', {}, ...body)),
        h('p', {class: 'note'}, note(comparison)));
  },
};
