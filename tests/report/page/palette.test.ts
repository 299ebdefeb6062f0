import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  baselineStyle,
  kBaselineColor,
  kMethodColors,
  kPanelColor,
  methodStyle,
} from '../../../report/src/palette';

type Triple = [number, number, number];

// Linear light of "#rrggbb" (sRGB).
function light(color: string): Triple {
  return [1, 3, 5].map((at) => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Triple;
}

// Contrast as WCAG 2 defines it.
function contrast(a: string, b: string): number {
  const [low, high] = [a, b]
                          .map((color) => {
                            const [r, g, blue] = light(color);
                            return 0.2126 * r + 0.7152 * g + 0.0722 * blue + 0.05;
                          })
                          .sort((x, y) => x - y);
  return high! / low!;
}

// Machado, Oliveira and Fernandes 2009, severity 1.
const kSights: Record<string, Triple[]> = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [
    [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998]
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]
  ],
};

// CIE L*a*b* of a colour as somebody with that sight sees it.
function seen(color: string, sight: Triple[]): Triple {
  const from = light(color);
  const [r, g, b] = sight.map((row) => {
    const value = row.reduce((sum, factor, k) => sum + factor * from[k]!, 0);
    return Math.min(1, Math.max(0, value));
  }) as Triple;
  const f = (t: number) => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

for (const theme of ['light', 'dark'] as const) {
  const colors = [...kMethodColors[theme], kBaselineColor[theme]];

  test(`every line has a contrast of 3 to 1 on the ${theme} panel`, () => {
    for (const color of colors) assert.ok(contrast(color, kPanelColor[theme]) >= 3, color);
  });

  test(`any two ${theme} colours stay apart for every kind of sight`, () => {
    for (const [name, sight] of Object.entries(kSights)) {
      for (const [k, a] of colors.entries()) {
        for (const b of colors.slice(k + 1)) {
          const [p, q] = [seen(a, sight), seen(b, sight)];
          const distance = Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
          assert.ok(
              distance >= 25, `${a} and ${b} are ${distance.toFixed(1)} apart for ${name} sight`);
        }
      }
    }
  });
}

test('methods look different also when colours repeat', () => {
  const looks = new Set([JSON.stringify(baselineStyle('light'))]);
  for (let index = 0; index < 30; ++index) looks.add(JSON.stringify(methodStyle('light', index)));
  assert.equal(looks.size, 31);
});
