// Parts of the page that show one run at a time.
import {h, select} from './dom';
import type {Run} from './model';

// What `show` makes of the first run, and a choice if there are several; null if there is none.
export function perRun<R extends Run>(runs: R[], show: (run: R) => HTMLElement[]): HTMLElement|
    null {
  const first = runs[0];
  if (first === undefined) return null;
  const content = h('div', {}, ...show(first));
  const names = runs.map((run) => `${run.method}, seed ${run.seed}`);
  const choose = (index: number) => {
    const chosen = runs[index];
    if (chosen !== undefined) content.replaceChildren(...show(chosen));
  };
  return h('div', {}, names.length > 1 ? select('run', names, choose) : null, content);
}
