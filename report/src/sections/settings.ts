// Settings and environment: what all runs share, and where the methods differ.
import {h} from '../dom';
import {kNone, settingValue} from '../format';
import {swatch, type Methods} from '../methods';
import type {Comparison, Setting, Value} from '../model';
import type {Section} from '../section';

function withoutGroup(key: string): string {
  return key.slice(key.indexOf('.') + 1);
}

// "method.score.options.alpha" as "score alpha".
function readable(key: string): string {
  return withoutGroup(key)
      .replace(/\boptions\./g, '')
      .replace(/\.name$/, '')
      .replace(/_/g, ' ')
      .replace(/\./g, ' ');
}

// Names before what they name, and a score before the policy that uses it.
function inOrder(settings: Setting[]): Setting[] {
  const groupOf = (setting: Setting) => setting.key.slice(0, setting.key.indexOf('.'));
  const groups = [...new Set(settings.map(groupOf))];
  const rank = (setting: Setting) => setting.key.replace(/name$/, '')
                                         .replace('method.score', 'method.0')
                                         .replace('method.policy', 'method.1');
  const before = (a: string, b: string) => a < b ? -1 : a > b ? 1 : 0;
  return [...settings].sort(
      (a, b) =>
          groups.indexOf(groupOf(a)) - groups.indexOf(groupOf(b)) || before(rank(a), rank(b)));
}

function facts(title: string, entries: [string, string][]): HTMLElement {
  return h(
      'div', {class: 'facts'}, h('h3', {}, title),
      h('dl', {}, ...entries.flatMap(([key, value]) => [h('dt', {}, key), h('dd', {}, value)])));
}

function commonFacts(settings: Setting[]): HTMLElement[] {
  const groups = new Map<string, [string, string][]>();
  for (const setting of settings) {
    if (setting.value === undefined) continue;
    const group = setting.key.slice(0, setting.key.indexOf('.'));
    const entries = groups.get(group) ?? [];
    entries.push([readable(setting.key), settingValue(setting.value)]);
    groups.set(group, entries);
  }
  return [...groups].map(([group, entries]) => facts(group, entries));
}

function methodRow(method: string, settings: Setting[], methods: Methods): HTMLElement {
  const entries: [string, Value][] = settings.flatMap((setting) => {
    const value = setting.values?.[method] ?? null;
    return value === null ? [] : [[readable(setting.key), value] as [string, Value]];
  });
  const items = entries.map(
      ([key, value]) => h('span', {class: 'setting'}, `${key} `, h('b', {}, settingValue(value))));
  return h(
      'tr', {}, h('th', {scope: 'row'}, swatch(methods, method), method),
      h('td', {}, ...(items.length > 0 ? items : [kNone])));
}

function methodTable(comparison: Comparison, ordered: Setting[], methods: Methods): HTMLElement|
    null {
  const different = ordered.filter((setting) => setting.values !== undefined);
  if (different.length === 0) return null;
  const names = methods.names.filter((name) => comparison.runs.some((run) => run.method === name));
  return h(
      'table', {class: 'methods'},
      h('thead', {},
        h('tr', {}, h('th', {scope: 'col'}, 'Method'),
          h('th', {scope: 'col'}, 'Its own settings'))),
      h('tbody', {}, ...names.map((name) => methodRow(name, different, methods))));
}

export const settings: Section = {
  id: 'settings',
  title: 'Settings and environment',
  render: (comparison, methods) => {
    if (comparison.settings.length === 0) return null;
    const ordered = inOrder(comparison.settings);
    return h(
        'div', {}, methodTable(comparison, ordered, methods),
        h('div', {class: 'fact-groups'}, ...commonFacts(ordered)));
  },
};
