// How the scores of one run spread and move.
import {chartPanel} from '../charts/chart';
import {scoreMap} from '../charts/score_map';
import {select} from '../dom';
import type {Section} from '../section';

export const scores: Section = {
  id: 'scores',
  title: 'Scores',
  render: (comparison) => {
    const scored = comparison.runs.filter((run) => run.score_histograms !== null);
    let chosen = scored[0];
    if (chosen === undefined) return null;
    const panel = chartPanel({
      title: 'Scores over the epochs',
      description: 'How many samples have which score, epoch by epoch, for one run.',
      note:
          'Each column is the histogram of one epoch in its own bins; the line is the mean ' +
          'score. The scale of scores leaves out half a per cent at both ends.',
      controls: [select(
          'run', scored.map((run) => `${run.method}, seed ${run.seed}`),
          (index) => {
            chosen = scored[index];
            panel.redraw();
          })],
      height: 420,
      option: () => scoreMap(chosen?.score_histograms ?? []),
    });
    return panel.element;
  },
};
