// Colours, dashes and marks of the methods. No two methods are told apart by colour alone.
import type {ThemeName} from './theme';

export interface MethodStyle {
  color: string;
  dash: 'solid'|number[];
  symbol: string;
  width: number;
}

// Chosen so that any two of them, and the baseline's, stay apart for readers with normal sight and
// with each kind of colour blindness, and so that each has a contrast of 3 to 1 with the panel
// behind it. palette.test.ts checks both.
export const kMethodColors: Record<ThemeName, string[]> = {
  light: ['#193cb9', '#dc7107', '#029fa0', '#9e0f00', '#9a75d4', '#5a2676', '#8f4e4b'],
  dark: ['#1acef7', '#f5d14f', '#99c69c', '#cb564e', '#806eda', '#008d92', '#a38601'],
};
export const kBaselineColor: Record<ThemeName, string> = {
  light: '#1c2430',
  dark: '#f4f6f8'
};
export const kPanelColor: Record<ThemeName, string> = {
  light: '#ffffff',
  dark: '#181d25'
};

// From few to many, dark on light or light on dark.
export const kHeatColors: Record<ThemeName, string[]> = {
  light: ['#eef3fa', '#a9cde8', '#4a97cf', '#1561a5', '#08306b'],
  dark: ['#1d2430', '#2c3f74', '#5a6a7d', '#a69c5f', '#ffe945'],
};

const kSymbols = ['circle', 'rect', 'triangle', 'diamond', 'roundRect', 'pin'];
const kDashes: MethodStyle['dash'][] = ['solid', [9, 4], [9, 3, 2, 3], [3, 3], [14, 5]];

// `index` counts the methods other than the baseline.
export function methodStyle(theme: ThemeName, index: number): MethodStyle {
  const colors = kMethodColors[theme];
  return {
    color: colors[index % colors.length]!,
    dash: kDashes[index % kDashes.length]!,
    symbol: kSymbols[index % kSymbols.length]!,
    width: 2,
  };
}

export function baselineStyle(theme: ThemeName): MethodStyle {
  return {color: kBaselineColor[theme], dash: 'solid', symbol: 'emptyCircle', width: 2.5};
}
