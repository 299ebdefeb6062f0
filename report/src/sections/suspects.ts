// The samples of a recorded run that are hard most often and most lastingly.
import {rangeOf, sparkline, type Range} from '../charts/sparkline';
import {h} from '../dom';
import {count, fixed, percent, plural, significant} from '../format';
import type {GallerySample, Run, Suspect, Suspects} from '../model';
import {perRun} from '../per_run';
import type {Section} from '../section';
import {curveLabel, picture} from './gallery';

type SuspectRun = Run&{suspects: Suspects};

interface Column {
  title: string;
  cell: (suspect: Suspect) => Node|string;
}

function name(label: number|undefined, text: string|undefined): string {
  return text ?? (label === undefined ? '' : String(label));
}

function columnsOf(run: SuspectRun): Column[] {
  const {suspects} = run.suspects;
  const pictures = new Map<number, GallerySample>(
      run.gallery?.samples.map((sample) => [sample.sample, sample]) ?? []);
  const range: Range = rangeOf(suspects.map((suspect) => suspect.scores ?? []));
  const has = (key: keyof Suspect) => suspects.some((suspect) => suspect[key] !== undefined);
  const columns: Column[] = [];
  if (suspects.some((suspect) => pictures.has(suspect.sample))) {
    columns.push({
      title: '',
      cell: (suspect) => {
        const sample = pictures.get(suspect.sample);
        return sample === undefined ? '' : picture(sample);
      },
    });
  }
  columns.push({title: 'Sample', cell: (suspect) => String(suspect.sample)});
  if (has('index'))
    columns.push({title: 'Index in the data', cell: (suspect) => String(suspect.index ?? '')});
  if (has('file')) columns.push({title: 'File', cell: (suspect) => suspect.file ?? ''});
  if (has('label'))
    columns.push({title: 'Label', cell: (suspect) => name(suspect.label, suspect.class)});
  if (has('true_label')) {
    columns.push({
      title: 'True label',
      cell: (suspect) => suspect.true_label === suspect.label ?
          'the same' :
          h('b', {class: 'wrong'}, name(suspect.true_label, suspect.true_class)),
    });
  }
  columns.push(
      {
        title: 'Score',
        cell: (suspect) => sparkline(
            suspect.scores ?? [], range, curveLabel('score', suspect.scores ?? [])),
      },
      {title: 'at the end', cell: (suspect) => significant(suspect.score, 3)},
      {title: 'Mean rank', cell: (suspect) => fixed(suspect.rank, 4)},
      {title: 'In the hardest tenth', cell: (suspect) => percent(suspect.hard_share, 0)},
      {title: 'In a row', cell: (suspect) => String(suspect.hard_in_a_row)});
  return columns;
}

function suspectTable(run: SuspectRun): HTMLElement {
  const columns = columnsOf(run);
  const rows = run.suspects.suspects.map(
      (suspect) => h('tr', {}, ...columns.map((column) => h('td', {}, column.cell(suspect)))));
  return h(
      'div', {
        class: 'scroll',
        tabindex: '0',
        role: 'region',
        'aria-label': `Suspects of ${run.method}, seed ${run.seed}`
      },
      h('table', {class: 'epochs suspects'},
        h('thead', {}, h('tr', {}, ...columns.map(({title}) => h('th', {scope: 'col'}, title)))),
        h('tbody', {}, ...rows)));
}

function facts({suspects: found}: SuspectRun): string {
  const wrong = found.wrong_labels;
  const known = wrong === undefined ?
      '' :
      ` Labels were made wrong on purpose: ${wrong.here} of these ${
          found.suspects.length}, ${count(wrong.in_all)} of all.`;
  return `By ${found.score.name} after ${plural(found.epochs.length, 'epoch')}: the mean rank of ` +
      `a sample among the ${count(found.num_scored)} that have a score, 0 for the lowest, 1 for ` +
      `the highest.${known} tamis suspects lists more.`;
}

export const suspects: Section = {
  id: 'suspects',
  title: 'Suspects',
  render: (comparison) => perRun(
      comparison.runs.filter(
          (run): run is SuspectRun => run.suspects !== null && run.suspects.suspects.length > 0),
      (run) =>
          [h('div', {class: 'suspects-panel'}, suspectTable(run)),
           h('p', {class: 'note'}, facts(run))]),
};
