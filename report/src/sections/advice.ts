// What to prune with, from a recorded run: the results of `tamis advise`.
import {h} from '../dom';
import {count, fixed, kNone, percent, plural} from '../format';
import type {Advice, Run} from '../model';
import {perRun} from '../per_run';
import type {Section} from '../section';

type AdvisedRun = Run&{advice: Advice};

function methodTable(run: AdvisedRun): HTMLElement {
  const titles = ['Method', 'Would prune', 'Score and true losses'];
  const rows = run.advice.methods.map(
      (one) => h(
          'tr', {}, h('th', {scope: 'row'}, one.method), h('td', {}, percent(one.pruned_share, 1)),
          h('td', {}, one.spearman === null ? kNone : fixed(one.spearman, 2))));
  return h(
      'div', {
        class: 'scroll',
        tabindex: '0',
        role: 'region',
        'aria-label': `Advice from ${run.method}, seed ${run.seed}`
      },
      h('table', {class: 'epochs advice'},
        h('thead', {}, h('tr', {}, ...titles.map((title) => h('th', {scope: 'col'}, title)))),
        h('tbody', {}, ...rows)));
}

function facts({advice: found}: AdvisedRun): string {
  const {number, low_mean, high_mean} = found.suspects;
  const labels = number === 0 || low_mean === undefined || high_mean === undefined ?
      'No group of losses stands out as those of wrong labels do.' :
      `About ${plural(number, 'sample')} have losses that stand out (around ${
          fixed(high_mean, 2)}, the others around ${fixed(low_mean, 2)}).`;
  return `From ${plural(found.num_epochs, 'epoch')} and the losses of ${
             count(found.num_recorded)} of ${plural(found.num_samples, 'sample')}: the share of ` +
      'a whole run that each method would leave out if the scores stayed as they are, and ' +
      `Spearman\u2019s correlation of its score with the true losses, 1 at best. ${labels}`;
}

function conclusion({advice: found}: AdvisedRun): HTMLElement[] {
  return [
    h('h3', {}, `Train with ${found.method}`),
    h('ul', {}, ...found.reasons.map((reason) => h('li', {}, reason))),
    h('pre', {}, found.commands.join('\n')),
  ];
}

export const advice: Section = {
  id: 'advice',
  title: 'What to prune with',
  render: (comparison) => perRun(
      comparison.runs.filter((run): run is AdvisedRun => run.advice !== null),
      (run) =>
          [h('div', {class: 'advice-panel'}, methodTable(run), ...conclusion(run)),
           h('p', {class: 'note'}, facts(run))]),
};
