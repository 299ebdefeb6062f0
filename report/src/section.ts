// The parts of the page. A part is one module; it renders if its data is there.
import type {Comparison} from './model';
import type {Methods} from './methods';

export interface Section {
  // Of the element, and of links to it.
  id: string;
  title: string;
  // Null if the comparison has nothing to show here.
  render: (comparison: Comparison, methods: Methods) => HTMLElement | null;
}
