// All parts of the page in their order. A new part is a module of its own and one line here.
import type {Section} from './section';
import {advice} from './sections/advice';
import {analysis} from './sections/analysis';
import {trainingCurves} from './sections/curves';
import {difference} from './sections/difference';
import {gallery} from './sections/gallery';
import {runs} from './sections/runs';
import {scores} from './sections/scores';
import {settings} from './sections/settings';
import {suspects} from './sections/suspects';
import {sweep} from './sections/sweep';
import {table} from './sections/table';
import {verdict} from './sections/verdict';

export const kSections: Section[] = [
  verdict,
  table,
  difference,
  sweep,
  trainingCurves,
  scores,
  gallery,
  suspects,
  advice,
  analysis,
  settings,
  runs,
];
