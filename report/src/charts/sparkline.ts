// A curve of a few numbers in the size of a word.

const kSvg = 'http://www.w3.org/2000/svg';
const kWidth = 72;
const kHeight = 20;
const kMargin = 2;

export interface Range {
  low: number;
  high: number;
}

// From 0, or the lowest value below it, to the highest: curves with one range can be compared.
export function rangeOf(curves: (number|null)[][]): Range {
  const values = curves.flat().filter((value): value is number => value !== null);
  return {low: Math.min(0, ...values), high: Math.max(0, ...values)};
}

// The path of the curve; where there is no value it is interrupted. A single value is a dot.
export function sparkPath(values: (number|null)[], range: Range): string {
  const span = range.high - range.low;
  const parts: string[] = [];
  let isDrawing = false;
  values.forEach((value, k) => {
    if (value === null) {
      isDrawing = false;
      return;
    }
    const share = values.length > 1 ? k / (values.length - 1) : 0.5;
    const x = kMargin + share * (kWidth - 2 * kMargin);
    const height = span > 0 ? (value - range.low) / span : 0;
    const y = kHeight - kMargin - height * (kHeight - 2 * kMargin);
    const point = `${x.toFixed(1)} ${y.toFixed(1)}`;
    const isAlone = !isDrawing && (values[k + 1] ?? null) === null;
    parts.push(`${isDrawing ? 'L' : 'M'}${point}${isAlone ? ` L${point}` : ''}`);
    isDrawing = true;
  });
  return parts.join(' ');
}

export function sparkline(values: (number|null)[], range: Range, label: string): SVGSVGElement {
  const picture = document.createElementNS(kSvg, 'svg');
  picture.setAttribute('viewBox', `0 0 ${kWidth} ${kHeight}`);
  picture.setAttribute('class', 'spark');
  picture.setAttribute('role', 'img');
  picture.setAttribute('aria-label', label);
  const path = document.createElementNS(kSvg, 'path');
  path.setAttribute('d', sparkPath(values, range));
  picture.append(path);
  return picture;
}
