// Opens the page in a real Chromium. Usage: node browser_test.mjs TAMIS WRITE_SHOWCASE FOLDER
// Screenshots stay in FOLDER. The browser is `chromium` on the PATH, or CHROMIUM if that is set.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdirSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {after, before, test} from 'node:test';
import {fileURLToPath, pathToFileURL} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const {chromium} = createRequire(join(here, '../../report/package.json'))('playwright-core');
const [tamis, writeShowcase, folder] = process.argv.slice(2);
assert.ok(folder, 'usage: node browser_test.mjs TAMIS WRITE_SHOWCASE FOLDER');

const kPhone = {
  width: 390,
  height: 844
};
const kDesktop = {
  width: 1280,
  height: 900
};
const kCharts = [
  'Difference to full',
  'Test accuracy against epochs',
  'Test accuracy against samples used',
  'Test accuracy against training time',
  'Pruned share per epoch',
  'Other metrics',
  'Scores over the epochs',
];

let browser;
// The data behind the page, as the program prints it.
let comparison;

function findChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  try {
    return execFileSync('sh', ['-c', 'command -v chromium'], {encoding: 'utf8'}).trim();
  } catch {
    throw new Error('no chromium on the PATH: install it (Debian: apt-get install chromium)');
  }
}

function report(...args) {
  return execFileSync(tamis, ['report', ...args], {encoding: 'utf8', maxBuffer: 1 << 28});
}

function launch() {
  return chromium.launch({
    executablePath: findChromium(),
    timeout: 120000,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

before(async () => {
  rmSync(folder, {recursive: true, force: true});
  mkdirSync(folder, {recursive: true});
  execFileSync(writeShowcase, [join(folder, 'showcase')]);
  comparison = JSON.parse(report('--json', join(folder, 'showcase'))).comparisons[0];
  report(join(folder, 'showcase'), '--out', join(folder, 'report.html'));
  browser = await launch();
});

after(async () => browser?.close());

// A browser that dies is not the page's fault the first time: it is started again once.
async function visit(file, settings, look) {
  try {
    await visitOnce(file, settings, look);
  } catch (error) {
    if (browser.isConnected()) throw error;
    console.error(`the browser ended by itself (${error.message.split('\n')[0]}); trying again`);
    browser = await launch();
    await visitOnce(file, settings, look);
  }
}

// Opens a page, lets `look` at it, and demands that it was quiet: no message, no error, no dialog,
// and no request but the one for the file.
async function visitOnce(file, {viewport = kDesktop, colorScheme = 'light'}, look) {
  const context = await browser.newContext({viewport, colorScheme, offline: true});
  try {
    const page = await context.newPage();
    const noise = [];
    const requests = [];
    page.on('console', (message) => noise.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => noise.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => {
      noise.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on('request', (request) => requests.push(request.url()));
    const url = pathToFileURL(join(folder, file)).href;
    await page.goto(url);
    await page.waitForSelector('html[data-state="ready"]');
    await page.waitForFunction(
        () => [...document.querySelectorAll('.canvas')].every((one) => one.querySelector('svg')));
    await look(page);
    assert.deepEqual(noise, []);
    assert.deepEqual(requests, [url]);
  } finally {
    await context.close();
  }
}

function chart(page, title) {
  return page.locator('figure.chart', {has: page.getByRole('heading', {name: title, exact: true})});
}

// Lines of one colour: how many, and how long their outlines are.
async function linesOf(figure, color) {
  const paths = figure.locator(`.canvas svg path[stroke="${color}"][fill="none"]`);
  return paths.evaluateAll(
      (all) => all.map((path) => path.getTotalLength()).filter((length) => length > 50));
}

async function swatchColor(page, method) {
  const button = page.locator('.legend button', {hasText: new RegExp(`^${method}$`)});
  return button.locator('line').getAttribute('stroke');
}

test('every chart is there and draws every method', async () => {
  await visit('report.html', {}, async (page) => {
    assert.deepEqual(await page.locator('figure.chart h3').allTextContents(), kCharts);
    for (const row of comparison.rows) {
      const color = await swatchColor(page, row.method);
      for (const title of kCharts.slice(1, -1)) {
        assert.equal(
            (await linesOf(chart(page, title), color)).length, 1, `${row.method} in ${title}`);
      }
    }
    for (const row of comparison.rows.filter((one) => one.difference !== null)) {
      const color = await swatchColor(page, row.method);
      assert.equal((await linesOf(chart(page, kCharts[0]), color)).length, 1, row.method);
    }
  });
});

test('the score map shows the bins of the run that is chosen', async () => {
  await visit('report.html', {}, async (page) => {
    const figure = chart(page, 'Scores over the epochs');
    const drawing = () => figure.locator('.canvas svg').innerHTML();
    const scored = comparison.runs.filter((run) => run.score_histograms !== null);
    assert.equal(await figure.locator('option').count(), scored.length);
    const first = await drawing();
    const fills = new Set(first.match(/fill="(#|rgb)[^"]*"/g));
    assert.ok(fills.size > 20, `${fills.size} shades`);
    const bins =
        scored[0].score_histograms.flatMap((one) => one.counts).filter((count) => count > 0).length;
    assert.ok(first.split('<path').length > bins / 2, `${bins} bins`);
    await figure.locator('select').selectOption({index: scored.length - 1});
    assert.notEqual(await drawing(), first);
  });
});

test('the table has every method and every figure', async () => {
  await visit('report.html', {}, async (page) => {
    const rows =
        await page.locator('table.comparison tbody tr')
            .evaluateAll(
                (all) => all.map(
                    (row) => [...row.children].map(
                        (cell) =>
                            cell.textContent.replaceAll('\u202f', ' ').replaceAll('\u2212', '-'))));
    assert.equal(rows.length, comparison.rows.length);
    for (const [k, row] of comparison.rows.entries()) {
      const [method, accuracy, difference, budget, pruned, time, saved, cost, seeds] = rows[k];
      const percent = (value, decimals) => `${(100 * value).toFixed(decimals)} %`;
      assert.equal(method, row.method);
      assert.equal(
          accuracy,
          `${(100 * row.mean).toFixed(2)} ± ${percent(row.deviation, 2)}`);
      assert.equal(pruned, percent(row.pruned_share, 1));
      assert.equal(time, `${row.train_seconds_mean.toFixed(1)} s`);
      assert.equal(cost, percent(row.prune_overhead, 3));
      assert.equal(seeds, String(row.num_seeds));
      if (row.method === comparison.baseline) {
        assert.equal(difference, 'baseline');
        continue;
      }
      assert.equal(
          saved, percent(row.time_saved, 1) + (row.more_saved_than_pruned ? ' more than pruned' : ''));
      const isJudged = row.equal_budget !== undefined;
      assert.match(budget, isJudged ? /^(yes|no: random-dynamic)$/ : /^–$/);
      const {mean, low, high, supported} = row.difference;
      for (const value of [mean, low, high])
        assert.ok(difference.includes((100 * value).toFixed(2)), difference);
      const word = supported ? (mean < 0 ? 'worse than full' : 'better than full') : 'within noise of full';
      assert.ok(difference.endsWith(word), difference);
    }
    const words = rows.map((row) => row[2]).join();
    assert.ok(words.includes('worse than full') && words.includes('within noise of full'), words);
  });
});

test('verdict, settings and runs are complete', async () => {
  await visit('report.html', {}, async (page) => {
    const verdict = (await page.locator('p.verdict').textContent()).replaceAll('\u202f', ' ');
    assert.equal(verdict, comparison.verdict.join(' '));
    const settings = await page.locator('section.settings').innerText();
    for (const text
             of ['A processor that does not exist', 'batch size', 'learning rate', '60,000',
                 'score alpha']) {
      assert.ok(settings.includes(text), text);
    }
    const runs = page.locator('details.run');
    assert.equal(await runs.count(), comparison.runs.length);
    assert.equal(await runs.first().locator('table').count(), 0);
    await runs.first().locator('summary').click();
    await runs.first().locator('table').waitFor();
    assert.equal(await runs.first().locator('tbody tr').count(), comparison.runs[0].num_epochs);
  });
});

test('the legend hides a method in all charts and brings it back', async () => {
  await visit('report.html', {}, async (page) => {
    const color = await swatchColor(page, 'seta');
    const button = page.locator('.legend button', {hasText: /^seta$/});
    const count = async () =>
        (await Promise.all(kCharts.slice(1, -1).map((title) => linesOf(chart(page, title), color))))
            .flat()
            .length;
    assert.equal(await count(), 5);
    await button.click();
    assert.equal(await count(), 0);
    assert.equal(await button.getAttribute('aria-pressed'), 'false');
    await button.click();
    assert.equal(await count(), 5);
  });
});

test('the last half of the epochs fills the chart', async () => {
  await visit('report.html', {}, async (page) => {
    const figure = chart(page, 'Test accuracy against epochs');
    const before = await figure.locator('.canvas svg').innerHTML();
    await figure.getByRole('button', {name: 'last half'}).click();
    const labels = await figure.locator('.canvas svg text').allTextContents();
    assert.notEqual(await figure.locator('.canvas svg').innerHTML(), before);
    assert.ok(labels.includes('11') && !labels.includes('0'), labels.join(' '));
  });
});

test('a point explains itself', async () => {
  await visit('report.html', {}, async (page) => {
    const canvas = chart(page, 'Test accuracy against epochs').locator('.canvas');
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const tooltip = canvas.locator('div', {hasText: 'epochs: '}).first();
    await tooltip.waitFor();
    const text = await tooltip.innerText();
    for (const row of comparison.rows) assert.ok(text.includes(row.method), text);
  });
});

// Luminance of what the reader sees, from 0 to 255.
async function brightness(page, selector) {
  return page.locator(selector).first().evaluate((element) => {
    const [r, g, b] = getComputedStyle(element).backgroundColor.match(/\d+/g).map(Number);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  });
}

for (const [colorScheme, isDark] of [['light', false], ['dark', true]]) {
  test(`the page is ${colorScheme} if the system is`, async () => {
    await visit('report.html', {colorScheme}, async (page) => {
      for (const selector of ['body', 'figure.chart', 'table.comparison']) {
        assert.equal(await brightness(page, selector) < 100, isDark, selector);
      }
      const label =
          await chart(page, 'Other metrics').locator('.canvas svg text').first().getAttribute('fill');
      assert.equal(label, isDark ? '#a0acbb' : '#586274');
      await page.screenshot({path: join(folder, `report-${colorScheme}.png`), fullPage: true});
    });
  });
}

test('the button chooses the theme', async () => {
  await visit('report.html', {colorScheme: 'light'}, async (page) => {
    const button = page.getByRole('button', {name: /Theme/});
    assert.equal(await button.textContent(), 'Theme: auto');
    await button.click();
    await button.click();
    assert.equal(await button.textContent(), 'Theme: dark');
    assert.ok(await brightness(page, 'body') < 100);
    const color = await swatchColor(page, 'seta');
    assert.equal((await linesOf(chart(page, 'Other metrics'), color)).length, 1, 'charts follow');
    await button.click();
    assert.ok(await brightness(page, 'body') > 200);
    await page.emulateMedia({colorScheme: 'dark'});
    assert.ok(await brightness(page, 'body') < 100, 'auto follows the system');
  });
});

// What sticks out of the window, other than inside boxes that scroll by themselves.
function overflowing(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const wrong = [...document.querySelectorAll('body *')].filter((element) => {
      if (element.closest('.scroll, .legend, .canvas')) return false;
      const box = element.getBoundingClientRect();
      return box.width > 0 && (box.right > width + 0.5 || box.left < -0.5);
    });
    return wrong.map((element) => `${element.tagName}.${element.className}`);
  });
}

for (const width of [320, kPhone.width, 700, 1000, kDesktop.width]) {
  test(`nothing sticks out at a width of ${width}`, async () => {
    await visit('report.html', {viewport: {width, height: kPhone.height}}, async (page) => {
      await page.locator('details.run summary').first().click();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      assert.deepEqual(await overflowing(page), []);
      const charts = await page.locator('.canvas svg')
                         .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width));
      assert.ok(charts.every((one) => one > 200 && one <= width), charts.join());
    });
  });
}

test('on a phone every figure of the table can be read', async () => {
  await visit('report.html', {viewport: kPhone}, async (page) => {
    const cells =
        await page.locator('table.comparison tbody td')
            .evaluateAll((all) => all.map((cell) => ({
                                            title: getComputedStyle(cell, '::before').content,
                                            isWhole: cell.scrollWidth <= cell.clientWidth,
                                          })));
    assert.equal(cells.length, 8 * comparison.rows.length);
    assert.ok(cells.every((cell) => cell.isWhole && cell.title.length > 2));
    await page.screenshot({path: join(folder, 'report-phone.png'), fullPage: true});
  });
});

test('charts follow the width of the window', async () => {
  await visit('report.html', {}, async (page) => {
    await page.setViewportSize(kPhone);
    await page.waitForFunction(
        () => [...document.querySelectorAll('.canvas svg')].every(
            (one) => one.getBoundingClientRect().width < 390));
    assert.deepEqual(await overflowing(page), []);
  });
});

test('names are text, whatever they contain', async () => {
  const title =
      '</script><script>alert(1)</script><img src="http://127.0.0.1:9/x" onerror="alert(2)">';
  report(join(folder, 'showcase'), '--title', title, '--out', join(folder, 'hostile.html'));
  await visit('hostile.html', {}, async (page) => {
    assert.equal(await page.locator('h1').textContent(), title);
    assert.equal(await page.title(), title);
    assert.equal(await page.locator('img').count(), 0);
  });
});

test('runs without a baseline or scores leave those parts out', async () => {
  report(join(folder, 'showcase/random-dynamic-seed1'), '--out', join(folder, 'single.html'));
  await visit('single.html', {viewport: kPhone}, async (page) => {
    assert.equal(await page.locator('section.difference, section.scores').count(), 0);
    assert.equal(await page.locator('figure.chart').count(), 5);
    assert.equal(await page.locator('table.comparison tbody tr').count(), 1);
    assert.deepEqual(await overflowing(page), []);
  });
});

const kAnalysisCharts = {
  'Spectra of signal and noise': 2,
  'One sample through training': 4,
  'Signal-to-noise ratio by alpha': 2,
  'Agreement with the true loss': 7,
  'Batch loss score by alpha': 3,
};

test('an analyzed run shows its spectra, ratios and the fidelity of every score', async () => {
  const run = join(folder, 'showcase-recorded');
  execFileSync(tamis, ['analyze', run]);
  report(run, '--out', join(folder, 'analysis.html'));
  const {analysis} = JSON.parse(report('--json', run)).comparisons[0].runs[0];
  kAnalysisCharts['Agreement with the true loss'] = analysis.fidelity.scores.length;
  for (const viewport of [kDesktop, kPhone]) {
    await visit('analysis.html', {viewport}, async (page) => {
      const section = page.locator('section.analysis');
      assert.deepEqual(
          await section.locator('figure.chart h3').allTextContents(), Object.keys(kAnalysisCharts));
      for (const [title, count] of Object.entries(kAnalysisCharts)) {
        const figure = chart(page, title);
        assert.equal(await figure.locator('.legend button').count(), count, title);
        for (const button of await figure.locator('.legend button').all()) {
          const color = await button.locator('line').getAttribute('stroke');
          const lines = await linesOf(figure, color);
          assert.ok(lines.length >= 1, `${title}: ${await button.textContent()}`);
        }
      }
      assert.ok((await section.locator('p.note').first().textContent()).includes('200 of 640'));
      assert.deepEqual(await overflowing(page), []);
      await page.screenshot({path: join(folder, `analysis-${viewport.width}.png`), fullPage: true});
    });
  }
});

test('the fidelity chart shows the measure that is chosen, and hides scores', async () => {
  await visit('analysis.html', {}, async (page) => {
    const figure = chart(page, 'Agreement with the true loss');
    const drawing = () => figure.locator('.canvas svg').innerHTML();
    const spearman = await drawing();
    await figure.getByRole('button', {name: 'Pearson'}).click();
    assert.notEqual(await drawing(), spearman);
    const button = figure.locator('.legend button', {hasText: /^sample-loss$/});
    const color = await button.locator('line').getAttribute('stroke');
    assert.equal((await linesOf(figure, color)).length, 1);
    await button.click();
    assert.equal((await linesOf(figure, color)).length, 0);
  });
});

test('a sweep shows accuracy and pruned share against its option', async () => {
  const run = join(folder, 'showcase-sweep');
  report(run, '--out', join(folder, 'sweep.html'));
  await visit('sweep.html', {}, async (page) => {
    for (const title of ['Test accuracy against alpha', 'Pruned share against alpha']) {
      const figure = chart(page, title);
      const labels = await figure.locator('.canvas svg text').allTextContents();
      for (const label of ['0.5', '0.9', 'alpha']) assert.ok(labels.includes(label), labels.join());
      for (const name of ['bls-infobatch', 'full']) {
        const button =
            page.locator('section.sweep .legend button', {hasText: new RegExp(`^${name}$`)});
        const color = await button.locator('line').getAttribute('stroke');
        assert.equal((await linesOf(figure, color)).length, 1, `${name} in ${title}`);
      }
    }
    assert.deepEqual(await overflowing(page), []);
  });
});

test('the samples of a run are shown with label, prediction and curve', async () => {
  report(join(folder, 'showcase-recorded'), '--out', join(folder, 'gallery.html'));
  for (const viewport of [kDesktop, kPhone]) {
    await visit('gallery.html', {viewport}, async (page) => {
      const groups = page.locator('section.gallery figure.pictures');
      assert.deepEqual(
          await groups.locator('h3').allTextContents(), ['Hardest', 'Easiest', 'Most forgotten']);
      assert.deepEqual(
          await groups.evaluateAll((all) => all.map((one) => one.querySelectorAll('li').length)),
          [12, 12, 4]);
      const first = groups.first().locator('li').first();
      await first.scrollIntoViewIfNeeded();
      assert.equal(
          await first.locator('img').evaluate(async (one) => {
            await one.decode();
            return one.naturalWidth;
          }),
          8);
      const text = await first.innerText();
      for (const part of ['coat, in truth the truth', '\u2717 something else', 'coat203'])
        assert.ok(text.includes(part), `${part} in ${text}`);
      // No value in the first of four epochs, so the curve begins at a third of its width.
      assert.match(await first.locator('.spark path').getAttribute('d'), /^M24\.7 /);
      assert.match(
          await page.locator('section.gallery .note').last().innerText(),
          /431 samples were learned and never forgotten. 1 was never right./);
      assert.deepEqual(await overflowing(page), []);
    });
  }
});

test('suspects of a recorded run are listed, hardest first', async () => {
  const found = JSON.parse(report('--json', join(folder, 'showcase-recorded')));
  const {suspects} = found.comparisons[0].runs[0].suspects;
  assert.equal(suspects.length, 24);
  report(join(folder, 'showcase-recorded'), '--out', join(folder, 'suspects.html'));
  for (const viewport of [kDesktop, kPhone]) {
    await visit('suspects.html', {viewport}, async (page) => {
      const rows = page.locator('table.suspects tbody tr');
      assert.equal(await rows.count(), 24);
      const numbers = await rows.evaluateAll((all) => all.map((row) => row.innerText));
      numbers.forEach(
          (text, k) => assert.ok(text.includes(suspects[k].rank.toFixed(4)), `${k}: ${text}`));
      assert.equal(await rows.locator('.spark').count(), 24);
      assert.deepEqual(await overflowing(page), []);
    });
  }
});

test('advice from a recorded run names every method and ends in commands', async () => {
  const found = JSON.parse(report('--json', join(folder, 'showcase-recorded')));
  const {methods, method, commands} = found.comparisons[0].runs[0].advice;
  report(join(folder, 'showcase-recorded'), '--out', join(folder, 'advice.html'));
  for (const viewport of [kDesktop, kPhone]) {
    await visit('advice.html', {viewport}, async (page) => {
      const names = await page.locator('table.advice tbody th').allInnerTexts();
      assert.deepEqual(names, methods.map((one) => one.method));
      const text = await page.locator('.advice-panel').innerText();
      for (const part of [`Train with ${method}`, ...commands]) assert.ok(text.includes(part), text);
      assert.deepEqual(await overflowing(page), []);
    });
  }
});

test('names of samples are text, whatever they contain', async () => {
  report(join(folder, 'showcase-hostile'), '--out', join(folder, 'hostile-gallery.html'));
  await visit('hostile-gallery.html', {}, async (page) => {
    const first = page.locator('figure.pictures li').first();
    assert.ok((await first.innerText()).includes('<img src=x onerror=alert(1)>"\'&'));
    const sources = await page.locator('img').evaluateAll((all) => all.map((one) => one.src));
    assert.ok(sources.length > 0);
    for (const source of sources) assert.match(source, /^data:image\/png;base64,[\w+/=]+$/);
  });
});

test('the page forbids itself to load anything', async () => {
  const context = await browser.newContext({offline: true});
  const page = await context.newPage();
  await page.goto(pathToFileURL(join(folder, 'report.html')).href);
  const blocked = await page.evaluate(() => new Promise((resolve) => {
                                        document.addEventListener(
                                            'securitypolicyviolation',
                                            (event) => resolve(event.violatedDirective));
                                        const picture = document.createElement('img');
                                        picture.src = 'http://127.0.0.1:9/picture.png';
                                        document.body.append(picture);
                                      }));
  assert.equal(blocked, 'img-src');
  await context.close();
});
