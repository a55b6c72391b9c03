// Bundles main.tsx with Grafana's packages into one script and one style sheet: node build.mjs DIRECTORY

import { readFile } from 'node:fs/promises';
import esbuild from 'esbuild';

const inline = ['svg', 'png', 'woff', 'woff2', 'ttf', 'gif', 'wasm'];

// Editors and maps, which no panel here has.
const unused = {
  name: 'unused',
  setup(build) {
    build.onResolve({ filter: /^(monaco-editor|@monaco-editor\/react|monaco-promql|ol|ol\/.*|fs|path|crypto|util|os|stream)$/ }, ({ path }) => ({ path, namespace: 'unused' }));
    build.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({
      contents: 'module.exports = new Proxy(function () { return null; }, { get: (target, key) => (key === "__esModule" ? false : target) });',
      loader: 'js',
    }));
  },
};

// @grafana/ui imports a value that @grafana/schema only has as a type.
const missing = {
  name: 'missing',
  setup(build) {
    build.onLoad({ filter: /composable\/table\/panelcfg\/x\/types\.gen\.(mjs|js)$/ }, async ({ path }) => ({
      contents: `${await readFile(path, 'utf8')}\nexport const defaultOptions = {};`,
      loader: 'js',
    }));
  },
};

await esbuild.build({
  entryPoints: ['main.tsx'],
  outfile: `${process.argv[2]}/app.js`,
  bundle: true,
  minify: true,
  format: 'iife',
  platform: 'browser',
  jsx: 'automatic',
  mainFields: ['browser', 'module', 'main'],
  define: { 'process.env.NODE_ENV': '"production"', 'process.env': '{}', global: 'window' },
  loader: Object.fromEntries(inline.map((ending) => [`.${ending}`, 'dataurl'])),
  alias: { 'react-router-dom-v5-compat': 'react-router-dom' },
  plugins: [unused, missing],
  logLevel: 'warning',
});
