// Builds the page from the document in it.
import './page.css';

import {h} from './dom';
import {plural} from './format';
import {Methods} from './methods';
import {readDocument, type Comparison, type ReportDocument} from './model';
import {kSections} from './sections';
import {nextTheme, onThemeChange, startTheme, themeChoice} from './theme';

function themeButton(): HTMLElement {
  const label = () =>
      ({auto: 'Theme: auto', light: 'Theme: light', dark: 'Theme: dark'})[themeChoice()];
  const button = h('button', {type: 'button', class: 'theme', onclick: nextTheme}, label());
  onThemeChange(() => button.textContent = label());
  return button;
}

function subtitle(report: ReportDocument): string {
  const runs = report.comparisons.reduce((sum, comparison) => sum + comparison.runs.length, 0);
  const methods =
      new Set(report.comparisons.flatMap((comparison) => comparison.rows.map((row) => row.method)));
  const date =
      new Date(report.created)
          .toLocaleString('en-GB', {dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC'});
  return `${plural(methods.size, 'method')}, ${plural(runs, 'run')} · ${date} UTC · tamis ${
      report.tamis}`;
}

function comparisonArticle(
    comparison: Comparison, index: number, hasHeading: boolean): HTMLElement {
  const methods = new Methods(comparison.rows.map((row) => row.method), comparison.baseline);
  const sections = kSections.flatMap((section) => {
    const content = section.render(comparison, methods);
    if (content === null) return [];
    const id = index === 0 ? section.id : `${section.id}-${index + 1}`;
    const heading = section.title === '' ? null : h('h2', {}, section.title);
    return [h('section', {id, class: section.id}, heading, content)];
  });
  return h(
      'article', {id: `comparison-${index + 1}`},
      hasHeading ? h('h2', {class: 'comparison-name'}, comparison.name) : null, ...sections);
}

function navigation(report: ReportDocument): HTMLElement|null {
  if (report.comparisons.length < 2) return null;
  return h(
      'nav', {'aria-label': 'Comparisons'},
      ...report.comparisons.map(
          (comparison, index) => h('a', {href: `#comparison-${index + 1}`}, comparison.name)));
}

function build(report: ReportDocument): void {
  const hasHeadings = report.comparisons.length > 1;
  document.body.replaceChildren(
      h('header', {},
        h('div', {}, h('h1', {}, report.title), h('p', {class: 'muted'}, subtitle(report))),
        themeButton()),
      h('main', {}, navigation(report),
        ...report.comparisons.map(
            (comparison, index) => comparisonArticle(comparison, index, hasHeadings))),
      h('footer', {}, `Written by tamis ${report.tamis}. Charts by Apache ECharts.`));
}

startTheme();
try {
  build(readDocument());
  document.documentElement.dataset['state'] = 'ready';
} catch (error) {
  document.body.replaceChildren(
      h('p', {class: 'failure'}, `This report cannot be shown: ${String(error)}`));
  throw error;
}
