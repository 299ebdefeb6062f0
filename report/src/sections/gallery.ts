// Pictures of the training samples that were hardest, easiest and most often forgotten.
import {rangeOf, sparkline, type Range} from '../charts/sparkline';
import {h} from '../dom';
import {count, plural, significant} from '../format';
import type {Gallery, GallerySample, Run} from '../model';
import {perRun} from '../per_run';
import type {Section} from '../section';

type GroupName = keyof Gallery['groups'];

const kGroups: {name: GroupName, title: string, note: string}[] = [
  {
    name: 'hardest',
    title: 'Hardest',
    note: 'Highest over the epochs, by mean rank. Wrong labels and bad data end up here.',
  },
  {
    name: 'easiest',
    title: 'Easiest',
    note: 'Lowest over the epochs: what the model knows from the start.',
  },
  {
    name: 'forgotten',
    title: 'Most forgotten',
    note: 'Most often right at one visit and wrong at the next.',
  },
];

// The picture alone, for other sections too.
export function picture(sample: GallerySample): HTMLImageElement {
  return h('img', {
    src: `data:image/png;base64,${sample.picture}`,
    alt: sample.label === undefined ? `sample ${sample.sample}` : sample.label,
  });
}

// Loss by loss, for those who do not see the curve.
export function curveLabel(score: string, scores: (number|null)[]): string {
  const known = scores.filter((value): value is number => value !== null);
  const first = known[0];
  if (first === undefined) return `${score}: none yet`;
  return `${score}: from ${significant(first, 3)} to ${significant(known.at(-1)!, 3)}`;
}

function labelLine(sample: GallerySample): HTMLElement|null {
  if (sample.label === undefined) return null;
  const isWrong = sample.true_label !== undefined;
  return h(
      'div', {class: 'label'}, h('b', {}, sample.label),
      isWrong ? h('span', {class: 'muted'}, `, in truth ${sample.true_label}`) : null);
}

function predictionLine(sample: GallerySample): HTMLElement|null {
  if (sample.predicted === undefined) return null;
  const isRight = sample.predicted === sample.label;
  return h(
      'div', {
        class: isRight ? 'prediction right' : 'prediction wrong',
        title: `predicted ${sample.predicted}`,
      },
      `${isRight ? '\u2713' : '\u2717'} ${sample.predicted}`);
}

function card(sample: GallerySample, gallery: Gallery, range: Range): HTMLElement {
  const times = sample.forgotten ?? 0;
  return h(
      'li', {},
      h('div', {}, picture(sample),
        sparkline(sample.scores, range, curveLabel(gallery.score, sample.scores))),
      h('div', {class: 'who'}, labelLine(sample), predictionLine(sample),
        h('div', {class: 'muted'}, /^\d+$/.test(sample.place) ? `#${sample.place}` : sample.place),
        times > 0 ? h('div', {class: 'muted'}, `forgotten ${times}\u00d7`) : null));
}

function groupPanel(
    group: typeof kGroups[number], gallery: Gallery, byNumber: Map<number, GallerySample>,
    range: Range): HTMLElement|null {
  const samples = (gallery.groups[group.name] ?? [])
                      .map((number) => byNumber.get(number))
                      .filter((sample): sample is GallerySample => sample !== undefined);
  if (samples.length === 0) return null;
  return h(
      'figure', {class: `pictures ${group.name}`},
      h('figcaption', {}, h('h3', {}, group.title), h('span', {class: 'muted'}, group.note)),
      h('ul', {}, ...samples.map((sample) => card(sample, gallery, range))));
}

function facts(gallery: Gallery): string {
  const parts = [
    'Label, and behind \u2713 or \u2717 what the model predicts in the end.',
    `Curves: ${gallery.score}, after ${plural(gallery.epochs.length, 'epoch')}, all on one scale ` +
        'from 0.'
  ];
  if (gallery.num_never_forgotten !== undefined) {
    parts.push(`${plural(gallery.num_never_forgotten, 'sample')} ${
        gallery.num_never_forgotten === 1 ? 'was' : 'were'} learned and never forgotten.`);
  }
  if (gallery.num_never_learned !== undefined) {
    parts.push(`${count(gallery.num_never_learned)} ${
        gallery.num_never_learned === 1 ? 'was' : 'were'} never right.`);
  }
  return parts.join(' ');
}

function content(gallery: Gallery): HTMLElement[] {
  const byNumber = new Map(gallery.samples.map((sample) => [sample.sample, sample]));
  const range = rangeOf(gallery.samples.map((sample) => sample.scores));
  return kGroups.map((group) => groupPanel(group, gallery, byNumber, range))
      .filter((panel): panel is HTMLElement => panel !== null);
}

export const gallery: Section = {
  id: 'gallery',
  title: 'Samples',
  render: (comparison) => perRun(
      comparison.runs.filter((run): run is Run&{gallery: Gallery} => run.gallery !== null),
      (run) => [...content(run.gallery), h('p', {class: 'note'}, facts(run.gallery))]),
};
