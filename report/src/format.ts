// Numbers and words as the page shows them.
import type {Metric, Value} from './model';

const kMinus = '\u2212';
const kThinSpace = '\u202f';
export const kNone = '\u2013';

export function fixed(value: number, decimals: number): string {
  const text = Math.abs(value).toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? kMinus + text : text;
}

// 0.91523 as "91.52 %".
export function percent(fraction: number|null, decimals = 2): string {
  return fraction === null ? kNone : fixed(100 * fraction, decimals) + kThinSpace + '%';
}

// "test accuracy" for test_accuracy.
export function metricName(metric: Metric): string {
  return metric.name.replace(/_/g, ' ');
}

// The same at the beginning of a title.
export function metricTitle(metric: Metric): string {
  const words = metricName(metric);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

// Values of one metric. Fractions in per cent with two decimals, others with the decimals that give
// the last one of `examples` four digits.
export class MetricFormat {
  readonly factor: number;
  readonly unit: string;
  readonly differenceUnit: string;
  private readonly decimals: number;

  constructor(metric: Metric, examples: (number|null)[]) {
    const typical = examples.filter((value) => value !== null).at(-1);
    const isFraction = metric.unit === 'fraction';
    this.factor = isFraction ? 100 : 1;
    this.unit = isFraction ? '%' : metric.unit;
    this.differenceUnit = isFraction ? 'points' : metric.unit;
    this.decimals = isFraction ? 2 : typical ? fourDigits(typical) : 3;
  }

  number(value: number): string {
    return fixed(this.factor * value, this.decimals);
  }

  // With its unit.
  value(value: number|null): string {
    if (value === null) return kNone;
    return this.number(value) + (this.unit === '' ? '' : kThinSpace + this.unit);
  }

  // With its sign, without a unit.
  difference(value: number): string {
    const text = this.number(value);
    return value > 0 && Number(text) !== 0 ? '+' + text : text;
  }

  // On axes: no decimals that are zero.
  tick(value: number): string {
    return round(this.factor * value, Math.max(this.decimals, 2)) +
        (this.unit === '%' ? kThinSpace + '%' : '');
  }
}

function fourDigits(typical: number): number {
  return Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(typical)))));
}

export function duration(seconds: number|null): string {
  if (seconds === null) return kNone;
  if (seconds === 0) return '0' + kThinSpace + 's';
  if (seconds < 0.1) return fixed(1000 * seconds, 1) + kThinSpace + 'ms';
  if (seconds < 100) return fixed(seconds, 1) + kThinSpace + 's';
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  if (hours > 0) return `${hours}${kThinSpace}h ${minutes}${kThinSpace}min`;
  return `${minutes}${kThinSpace}min ${whole % 60}${kThinSpace}s`;
}

// The one unit of all values of an axis that ends at `longest`; ticks are round numbers of it.
export function timeUnit(longest: number): {seconds: number, tick: (value: number) => string} {
  const [seconds, name]: [number, string] =
      longest < 300 ? [1, 's'] : longest < 18000 ? [60, 'min'] : [3600, 'h'];
  return {seconds, tick: (value) => round(value, 2) + kThinSpace + name};
}

// At most `decimals` decimals, and none that are zero.
export function round(value: number, decimals: number): string {
  return String(Number(value.toFixed(decimals))).replace('-', kMinus);
}

// 1234567 as "1,234,567".
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

// 12300000 as "12.3 M", for axes.
export function short(value: number): string {
  const units: [number, string][] = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  for (const [size, unit] of units) {
    if (Math.abs(value) >= size) return significant(value / size, 3) + kThinSpace + unit;
  }
  return significant(value, 3);
}

export function significant(value: number, digits: number): string {
  if (value === 0) return '0';
  const text = Number(value.toPrecision(digits));
  const size = Math.abs(text);
  return (size >= 1e-4 && size < 1e6 ? String(text) : text.toExponential()).replace('-', kMinus);
}

export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}

export function settingValue(value: Value): string {
  if (value === null) return kNone;
  if (Array.isArray(value)) return value.map(settingValue).join(', ');
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'number') return value;
  return Number.isInteger(value) ? count(value) : significant(value, 6);
}

export function escapeHtml(text: string): string {
  const codes: Record<string, string> =
      {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\'': '&#39;'};
  return text.replace(/[&<>"']/g, (c) => codes[c] ?? c);
}
