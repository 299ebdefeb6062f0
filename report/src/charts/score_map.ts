// Histograms of scores over the epochs, as a map: every bin at its own scores, coloured by how many
// samples it holds beside the fullest bin of its epoch.
import {count, percent, significant} from '../format';
import type {Histogram} from '../model';
import {kHeatColors} from '../palette';
import {themeName, token} from '../theme';
import {frame, valueAxis, type Option} from './chart';
import {
  binRows,
  kCount,
  kEpoch,
  kHigh,
  kLow,
  kShade,
  kShare,
  meanScore,
  scoreLimits,
} from './histograms';

// What ECharts hands to the function that draws one bin; it knows the axes' scales.
interface BinApi {
  value: (dimension: number) => number;
  coord: (point: [number, number]) => [number, number];
  visual: (name: string) => string;
}

function drawBin(_: unknown, api: BinApi): Option {
  const epoch = api.value(kEpoch);
  const [left, top] = api.coord([epoch - 0.5, api.value(kHigh)]);
  const [right, bottom] = api.coord([epoch + 0.5, api.value(kLow)]);
  // Half a pixel over the edge, or the background shows between the bins.
  const shape =
      {x: left, y: top, width: right - left + 0.5, height: Math.max(1.5, bottom - top + 0.5)};
  return {type: 'rect', shape, style: {fill: api.visual('color')}};
}

function tooltipText(row: number[]): string {
  return `epoch ${row[kEpoch]}, scores ${significant(row[kLow]!, 4)} to ${
             significant(row[kHigh]!, 4)}<br>` +
      `<b>${count(row[kCount]!)} samples</b>, ${percent(row[kShare]!, 1)} of those scored`;
}

export function scoreMap(histograms: (Histogram|null)[]): Option {
  const scored = histograms.filter((one): one is Histogram => one !== null);
  const [low, high] = scoreLimits(scored);
  const base = frame();
  const muted = token('muted');
  const scale = Math.max(Math.abs(low), Math.abs(high));
  return {
    ...base,
    grid: {left: 12, right: 24, top: 40, bottom: 78, containLabel: true},
    tooltip: {
      ...(base['tooltip'] as object),
      trigger: 'item',
      formatter: (item: {seriesType: string, value: number[]}) => item.seriesType === 'custom' ?
          tooltipText(item.value) :
          `epoch ${item.value[0]}: mean score ${significant(item.value[1]!, 4)}`,
    },
    xAxis: {
      ...valueAxis('epoch', true, (value) => Number.isInteger(value) ? String(value) : ''),
      min: 0.5,
      max: histograms.length + 0.5,
      minInterval: 1,
      axisLabel: {color: muted, hideOverlap: true, showMinLabel: false, showMaxLabel: false},
    },
    yAxis: {
      ...valueAxis(
          'score', false, (value) => significant(Math.abs(value) < 1e-9 * scale ? 0 : value, 3)),
      min: low,
      max: high,
      axisLabel: {
        color: muted,
        showMinLabel: false,
        showMaxLabel: false,
        formatter: (value: number) => significant(value, 3),
      },
      splitLine: {show: false},
    },
    visualMap: {
      type: 'continuous',
      min: 0,
      max: 1,
      dimension: kShade,
      seriesIndex: 0,
      calculable: false,
      orient: 'horizontal',
      left: 'center',
      bottom: 0,
      itemHeight: 140,
      itemWidth: 12,
      text: ['as many as the fullest bin', 'none'],
      textStyle: {color: muted},
      inRange: {color: kHeatColors[themeName()]},
    },
    series: [
      {
        type: 'custom',
        data: binRows(histograms),
        renderItem: drawBin,
        clip: true,
        encode: {x: kEpoch, y: [kLow, kHigh]},
        progressive: 0,
      },
      {
        type: 'line',
        name: 'mean',
        data: histograms.flatMap((one, epoch) => one === null ? [] : [[epoch + 1, meanScore(one)]]),
        color: token('mark'),
        lineStyle: {color: token('mark'), width: 2},
        symbol: 'circle',
        symbolSize: 5,
        showSymbol: histograms.length <= 60,
        clip: true,
        z: 5,
      },
    ],
  };
}
