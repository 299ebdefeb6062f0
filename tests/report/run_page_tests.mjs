// Bundles page/*.test.ts with the page's modules and runs them. Usage: node run_page_tests.mjs
// FOLDER
import {spawnSync} from 'node:child_process';
import {readdirSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const {build} = createRequire(join(here, '../../report/package.json'))('esbuild');
const out = process.argv[2];
if (out === undefined) throw new Error('usage: node run_page_tests.mjs FOLDER');

const names = readdirSync(join(here, 'page')).filter((name) => name.endsWith('.test.ts'));
await build({
  entryPoints: names.map((name) => join(here, 'page', name)),
  outdir: out,
  outExtension: {'.js': '.mjs'},
  bundle: true,
  format: 'esm',
  platform: 'node',
  logLevel: 'warning',
});
const files = names.map((name) => join(out, name.replace(/\.ts$/, '.mjs')));
process.exit(spawnSync(process.execPath, ['--test', ...files], {stdio: 'inherit'}).status ?? 1);
