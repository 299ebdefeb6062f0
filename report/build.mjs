// Builds the page without data: one HTML file, and the same as a C++ source for the program.
// Usage: node build.mjs HTML CPP
import {build} from 'esbuild';
import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const [htmlPath, cppPath] = process.argv.slice(2);
if (cppPath === undefined) {
  console.error('usage: node build.mjs HTML CPP');
  process.exit(2);
}

const kMaxBytes = 1.5e6;

function read(path) {
  return readFileSync(join(folder, path), 'utf8').trim();
}

// The licences of what is bundled, which ask to be kept with it.
function licences() {
  const texts = ['echarts/NOTICE', 'echarts/LICENSE', 'zrender/LICENSE', 'tslib/LICENSE.txt'].map(
      (path) => `${path}\n\n${read(`node_modules/${path}`)}`);
  return `<!--\n${texts.join('\n\n\n').replaceAll('--', '- -')}\n-->`;
}

async function bundle() {
  const result = await build({
    absWorkingDir: folder,
    entryPoints: ['src/main.ts'],
    outdir: 'out',
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['chrome100', 'firefox100', 'safari15.4'],
    charset: 'utf8',
    legalComments: 'none',
    define: {'process.env.NODE_ENV': '"production"'},
    logLevel: 'warning',
  });
  const text = (ending) =>
      result.outputFiles.find((file) => file.path.endsWith(ending)).text.trim();
  const parts = {script: text('.js'), style: text('.css')};
  // Nothing in them may end the element they stand in.
  if (/<\/script|<!--/i.test(parts.script))
    parts.script = parts.script.replace(/<(?=\/script|!--)/gi, '\\x3c');
  if (/<\/style/i.test(parts.style)) throw new Error('the style sheet contains </style');
  return parts;
}

function page({script, style}) {
  const hash = createHash('sha256').update(script, 'utf8').digest('base64');
  const parts = {'script-hash': `sha256-${hash}`, script, style};
  const html = read('src/page.html')
                   .replace(/\{\{(script-hash|script|style)\}\}/g, (_, name) => parts[name]);
  for (const place of ['{{tamis-title}}', '{{tamis-data}}']) {
    if (html.split(place).length !== 2) throw new Error(`the page must have ${place} once`);
  }
  return html.replace('<head>', () => `<head>\n${licences()}`) + '\n';
}

// One string literal, in pieces of a length that compilers accept. Octal escapes end after three
// digits, whatever follows; a question mark could begin a trigraph.
function cppSource(html) {
  const lines = [];
  const bytes = Buffer.from(html, 'utf8');
  for (let start = 0; start < bytes.length; start += 4096) {
    let line = '';
    for (const byte of bytes.subarray(start, start + 4096)) {
      const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x3f && byte !== 0x5c;
      line += plain ? String.fromCharCode(byte) : '\\' + byte.toString(8).padStart(3, '0');
    }
    lines.push(`    "${line}"`);
  }
  return '// Made from report/ by build.mjs.\n#include "program/report/template.h"\n\n' +
      'namespace tamis::program {\n\n' +
      'namespace {\n\n' +
      `constexpr char kPage[] =\n${lines.join('\n')};\n\n` +
      '}  // namespace\n\n' +
      'std::string_view report_template() { return {kPage, sizeof(kPage) - 1}; }\n\n' +
      '}  // namespace tamis::program\n';
}

function write(path, text) {
  mkdirSync(dirname(path), {recursive: true});
  writeFileSync(path, text);
}

const html = page(await bundle());
const size = Buffer.byteLength(html);
if (size > kMaxBytes) throw new Error(`the page must have at most ${kMaxBytes} bytes, got ${size}`);
write(htmlPath, html);
write(cppPath, cppSource(html));
