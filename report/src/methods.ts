// The methods of one comparison: their looks, and which of them the charts show.
import {h} from './dom';
import {baselineStyle, methodStyle, type MethodStyle} from './palette';
import {onThemeChange, themeName} from './theme';

export class Methods {
  private readonly hidden = new Set<string>();
  private readonly listeners: (() => void)[] = [];

  constructor(readonly names: string[], private readonly baseline: string|null) {}

  style(name: string): MethodStyle {
    if (name === this.baseline) return baselineStyle(themeName());
    const others = this.names.filter((other) => other !== this.baseline);
    return methodStyle(themeName(), others.indexOf(name));
  }

  isShown(name: string): boolean {
    return !this.hidden.has(name);
  }

  toggle(name: string): void {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    for (const listener of this.listeners) listener();
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }
}

const kSvg = 'http://www.w3.org/2000/svg';

// A piece of the method's line, for legends and tables.
export function swatch(methods: Methods, name: string): SVGSVGElement {
  const picture = document.createElementNS(kSvg, 'svg');
  picture.setAttribute('viewBox', '0 0 28 10');
  picture.setAttribute('class', 'swatch');
  picture.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS(kSvg, 'line');
  for (const [key, value] of Object.entries({x1: '1', y1: '5', x2: '27', y2: '5'}))
    line.setAttribute(key, value);
  const paint = () => {
    const style = methods.style(name);
    line.setAttribute('stroke', style.color);
    line.setAttribute('stroke-width', String(style.width + 0.5));
    line.setAttribute(
        'stroke-dasharray', Array.isArray(style.dash) ? style.dash.join(' ') : 'none');
  };
  paint();
  onThemeChange(paint);
  picture.append(line);
  return picture;
}

// The legend of all charts of a comparison: one button per method.
export function legend(methods: Methods): HTMLElement {
  const buttons = methods.names.map((name) => {
    const button =
        h('button', {
          type: 'button',
          'aria-pressed': 'true',
          onclick: () => {
            methods.toggle(name);
            button.setAttribute('aria-pressed', String(methods.isShown(name)));
          }
        },
          swatch(methods, name), name);
    return button;
  });
  return h(
      'div', {class: 'legend', role: 'group', 'aria-label': 'Methods shown in the charts'},
      ...buttons);
}
