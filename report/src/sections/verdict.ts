// What the comparison shows, in words that the program made from the numbers.
import {h} from '../dom';
import type {Section} from '../section';

// The text with the methods' names set off. Longer names first: one may be part of another.
function emphasize(text: string, names: string[]): (Node|string)[] {
  const escaped = [...names]
                      .sort((a, b) => b.length - a.length)
                      .map((name) => name.replace(/[^\w\s]/g, '\\$&'));
  const pattern = new RegExp(`(^|[ (])(${escaped.join('|')})(?![\\w-])`, 'g');
  const parts: (Node|string)[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const start = (match.index ?? 0) + match[1]!.length;
    parts.push(text.slice(end, start), h('b', {}, match[2]!));
    end = start + match[2]!.length;
  }
  return [...parts, text.slice(end)];
}

export const verdict: Section = {
  id: 'verdict',
  title: 'Verdict',
  render: (comparison) => {
    if (comparison.verdict.length === 0) return null;
    const text = comparison.verdict.join(' ').replace(/ %/g, '\u202f%');
    const names = comparison.rows.map((row) => row.method);
    const cautions = comparison.cautions.map((text) => h('li', {}, text));
    return h(
        'div', {}, h('p', {class: 'verdict'}, ...emphasize(text, names)),
        cautions.length > 0 ? h('ul', {class: 'cautions'}, ...cautions) : null);
  },
};
