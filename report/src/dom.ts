// Elements without markup in strings: text is always text.

type Child = Node|string|null;

// Properties that are functions become listeners ("onclick"); all others attributes.
export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K, properties: Record<string, string|boolean|EventListener> = {},
    ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') {
      element.addEventListener(name.slice(2), value);
    } else if (value !== false) {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.filter((child): child is Node|string => child !== null));
  return element;
}

// A choice among a few, as buttons. Calls `choose` with the index of the one that was pressed.
export function segments(
    label: string, names: string[], choose: (index: number) => void): HTMLElement {
  const buttons = names.map(
      (name, index) =>
          h('button', {
            'type': 'button',
            'aria-pressed': String(index === 0),
            'onclick': () => {
              buttons.forEach(
                  (button, k) => button.setAttribute('aria-pressed', String(k === index)));
              choose(index);
            },
          },
            name));
  return h('div', {class: 'segments', role: 'group', 'aria-label': label}, ...buttons);
}

// A choice among many.
export function select(
    label: string, names: string[], choose: (index: number) => void): HTMLElement {
  const list =
      h('select', {onchange: () => choose(list.selectedIndex)},
        ...names.map((name) => h('option', {}, name)));
  return h('label', {class: 'select'}, label, list);
}
