// The comparison table. On a phone every row becomes a card.
import {h} from '../dom';
import {duration, kNone, MetricFormat, metricTitle, percent, plural} from '../format';
import {swatch, type Methods} from '../methods';
import type {Comparison, Row} from '../model';
import type {Section} from '../section';

interface Column {
  title: string;
  // In a card, where the unit and the interval explain themselves.
  short?: string;
  cell: (row: Row) => (Node | string)[];
}

// Fewer support no difference.
const kLeastSeeds = 3;

function headlineFormat(comparison: Comparison): MetricFormat {
  return new MetricFormat(comparison.metrics[0], comparison.rows.map((row) => row.mean));
}

function headline(row: Row, comparison: Comparison): string {
  const format = headlineFormat(comparison);
  if (row.mean === null || row.deviation === null) return format.value(row.mean);
  return `${format.number(row.mean)} ± ${format.value(row.deviation)}`;
}

// The word for what the interval supports, never more.
export function judgement(row: Row, comparison: Comparison): {text: string, kind: string} {
  const difference = row.difference;
  if (difference === null || difference.num_pairs < kLeastSeeds)
    return {text: 'too few seeds, not judged', kind: 'open'};
  if (difference.low === null) return {text: 'the seeds change nothing, not judged', kind: 'open'};
  if (!difference.supported)
    return {text: `within noise of ${comparison.baseline}`, kind: 'noise'};
  const isBetter = (difference.mean > 0) === (comparison.metrics[0].direction === 'higher');
  return isBetter ? {text: `better than ${comparison.baseline}`, kind: 'better'} :
                    {text: `worse than ${comparison.baseline}`, kind: 'worse'};
}

function differenceCell(row: Row, comparison: Comparison): (Node|string)[] {
  if (comparison.baseline === null) return [kNone];
  if (row.method === comparison.baseline) return [h('span', {class: 'muted'}, 'baseline')];
  const difference = row.difference;
  if (difference === null) return [kNone];
  const format = headlineFormat(comparison);
  const interval = difference.low !== null && difference.high !== null ?
      ` (${format.difference(difference.low)} to ${format.difference(difference.high)})` :
      '';
  const {text, kind} = judgement(row, comparison);
  return [
    h('span', {class: 'nowrap'}, h('b', {}, format.difference(difference.mean)), interval),
    ' ',
    h('span', {class: `tag ${kind}`}, text),
  ];
}

// Whether the row is better than each that trained on as few samples without choosing them.
function budgetCell(row: Row, comparison: Comparison): (Node|string)[] {
  const all = row.equal_budget ?? [];
  if (all.length === 0) return [kNone];
  if (all.some(({difference}) => difference.num_pairs < kLeastSeeds)) return ['not judged'];
  const isHigherBetter = comparison.metrics[0].direction === 'higher';
  const unbeaten = all.filter(
      ({difference}) => !difference.supported || (difference.mean > 0) !== isHigherBetter);
  if (unbeaten.length === 0) return [h('span', {class: 'tag better'}, 'yes')];
  return [h('span', {class: 'tag noise'}, `no: ${unbeaten.map((one) => one.baseline).join(', ')}`)];
}

function reachCell(row: Row, comparison: Comparison): string {
  const reach = row.reach;
  if (reach === undefined) return kNone;
  if (reach.num_reached === 0) return 'never';
  const seeds =
      reach.num_reached < row.num_seeds ? ` (${reach.num_reached} of ${row.num_seeds} seeds)` : '';
  const isShare = row.method !== comparison.baseline && reach.share_of_baseline !== null;
  return (isShare ? percent(reach.share_of_baseline, 1) : duration(reach.seconds)) + seeds;
}

function timeCell(row: Row): string {
  const scoring = row.score_seconds_mean === undefined ?
      '' :
      `, ${duration(row.score_seconds_mean)} of it scoring`;
  return duration(row.train_seconds_mean) + ((row.num_disturbed ?? 0) > 0 ? ' (disturbed)' : '') +
      scoring;
}

// Columns that only some comparisons need.
function budgetColumns(comparison: Comparison): Column[] {
  if (comparison.rows.every((row) => row.equal_budget === undefined)) return [];
  return [{
    title: 'Beats equal budget',
    cell: (row) => budgetCell(row, comparison),
  }];
}

function reachColumns(comparison: Comparison): Column[] {
  if (comparison.reach === null) return [];
  return [{
    title: `Time to ${headlineFormat(comparison).value(comparison.reach)}`,
    cell: (row) => [reachCell(row, comparison)],
  }];
}

function savedCell(row: Row): (Node|string)[] {
  const saved = percent(row.time_saved, 1);
  return row.more_saved_than_pruned ?
      [saved, ' ', h('span', {class: 'tag open'}, 'more than pruned')] :
      [saved];
}

function columnsOf(comparison: Comparison): Column[] {
  const unit = headlineFormat(comparison).differenceUnit;
  return [
    {
      title: metricTitle(comparison.metrics[0]),
      cell: (row) => [headline(row, comparison)],
    },
    {
      title: `Difference${unit === '' ? '' : `, ${unit}`} (95\u202f% interval)`,
      short: 'Difference',
      cell: (row) => differenceCell(row, comparison),
    },
    ...budgetColumns(comparison),
    {title: 'Pruned', cell: (row) => [percent(row.pruned_share, 1)]},
    {title: 'Training time', cell: (row) => [timeCell(row)]},
    {title: 'Time saved', cell: (row) => savedCell(row)},
    ...reachColumns(comparison),
    {title: 'Cost of pruning', cell: (row) => [percent(row.prune_overhead, 3)]},
    {title: 'Seeds', cell: (row) => [String(row.num_seeds)]},
  ];
}

function bodyRow(row: Row, comparison: Comparison, methods: Methods): HTMLElement {
  const cells = columnsOf(comparison).map(
      (column) =>
          h('td', {'data-title': column.short ?? column.title},
            h('span', {}, ...column.cell(row))));
  return h(
      'tr', {class: row.method === comparison.baseline ? 'baseline' : ''},
      h('th', {scope: 'row'}, swatch(methods, row.method), row.method), ...cells);
}

function note(comparison: Comparison): string {
  const seeds = Math.max(...comparison.rows.map((row) => row.num_seeds));
  const metric = comparison.metrics[0];
  return [
    `${metricTitle(metric)} after the last epoch (${metric.direction} is better),`,
    `mean ± sample deviation over ${plural(seeds, 'seed')}.`,
    'Differences and time saved are paired by seed;',
    'the interval is Student\u2019s, for each method by itself.',
    '\u201cWithin noise\u201d means that the interval includes zero,',
    'not that there is no difference. Cost of pruning is the share of the training time',
    'that planning and scoring took.',
    comparison.time_saved_of === 'processor_seconds' ?
        'Time saved is of the processor\u2019s time, which other programs hardly change.' :
        '',
  ].join(' ');
}

export const table: Section = {
  id: 'table',
  title: 'Comparison',
  render: (comparison, methods) => {
    if (comparison.rows.length === 0) return null;
    const head =
        h('tr', {}, h('th', {scope: 'col'}, 'Method'),
          ...columnsOf(comparison).map((column) => h('th', {scope: 'col'}, column.title)));
    const body = comparison.rows.map((row) => bodyRow(row, comparison, methods));
    return h(
        'div', {},
        h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Comparison of methods'},
          h('table', {class: 'comparison'}, h('thead', {}, head), h('tbody', {}, ...body))),
        h('p', {class: 'note'}, note(comparison)));
  },
};
