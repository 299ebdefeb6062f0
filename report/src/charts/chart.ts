// A chart in its panel: drawn by ECharts, redrawn when the theme, the width or the chosen methods
// change.
import {CustomChart, LineChart} from 'echarts/charts';
import {
  GridComponent,
  MarkLineComponent,
  TooltipComponent,
  VisualMapContinuousComponent,
} from 'echarts/components';
import * as echarts from 'echarts/core';
import {SVGRenderer} from 'echarts/renderers';

import {h} from '../dom';
import {onThemeChange, token} from '../theme';

echarts.use([
  CustomChart,
  GridComponent,
  LineChart,
  MarkLineComponent,
  SVGRenderer,
  TooltipComponent,
  VisualMapContinuousComponent,
]);

export type Option = echarts.EChartsCoreOption;

export interface ChartSpec {
  title: string;
  // One sentence for those who do not see the chart.
  description: string;
  // What a reader needs in order not to misread it.
  note?: string;
  controls?: HTMLElement[];
  height?: number;
  // `narrow` is true on a phone.
  option: (narrow: boolean) => Option;
}

export interface ChartPanel {
  element: HTMLElement;
  redraw: () => void;
}

const kNarrow = 560;

export function chartPanel(spec: ChartSpec): ChartPanel {
  const canvas =
      h('div', {class: 'canvas', role: 'img', 'aria-label': `${spec.title}. ${spec.description}`});
  canvas.style.height = `${spec.height ?? 340}px`;
  const element =
      h('figure', {class: 'chart'},
        h('figcaption', {}, h('h3', {}, spec.title), ...(spec.controls ?? [])), canvas,
        spec.note ? h('p', {class: 'note'}, spec.note) : null);

  let chart: echarts.ECharts|null = null;
  const redraw = () =>
      chart?.setOption(spec.option(canvas.clientWidth < kNarrow), {notMerge: true});
  // The first report comes once the panel is on the page and has a size.
  new ResizeObserver(() => {
    if (canvas.clientWidth === 0) return;
    if (chart === null) {
      chart = echarts.init(canvas, null, {renderer: 'svg'});
    } else {
      chart.resize();
    }
    redraw();
  }).observe(canvas);
  onThemeChange(redraw);
  return {element, redraw};
}

// What all charts share. The names of the axes stand above the y axis and below the x axis.
export function frame(): Option {
  return {
    animation: false,
    textStyle: {fontFamily: token('font'), color: token('text')},
    grid: {left: 12, right: 24, top: 40, bottom: 32, containLabel: true},
    tooltip: {
      confine: true,
      backgroundColor: token('panel-raised'),
      borderColor: token('line'),
      textStyle: {color: token('text'), fontSize: 13},
      axisPointer: {lineStyle: {color: token('muted')}},
    },
  };
}

export function valueAxis(
    name: string, isX: boolean, format: (value: number) => string): Record<string, unknown> {
  return {
    type: 'value',
    name,
    nameLocation: isX ? 'middle' : 'end',
    nameGap: isX ? 30 : 14,
    nameTextStyle: {color: token('muted'), align: isX ? 'center' : 'left'},
    axisLabel: {color: token('muted'), formatter: format, hideOverlap: true},
    axisLine: {show: isX, lineStyle: {color: token('line-strong')}},
    axisTick: {show: isX, lineStyle: {color: token('line-strong')}},
    splitLine: {show: !isX, lineStyle: {color: token('line')}},
  };
}
