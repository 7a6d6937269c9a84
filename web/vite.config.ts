import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv, type Plugin } from 'vite';

/** Texts of react-aria in a language that the dashboard does not speak. */
const OTHER_LANGUAGE =
  /\/react-(?:aria|stately|aria-components)\/dist\/.*intl\/.*[a-z]{2}-[A-Z]{2}\.[cm]?js$/;
const COMPRESSIBLE = /\.(?:js|css)$/;

/** react-aria falls back to its English texts where a language has none. */
const englishAlone: Plugin = {
  name: 'english-alone',
  enforce: 'pre',
  load: (id) => (OTHER_LANGUAGE.test(id) && !id.includes('en-US') ? 'export default {};' : undefined),
};

/** Writes each file a second time, compressed as far as it goes: api/dashboard.ts sends that one. */
const compressedTwins: Plugin = {
  name: 'compressed-twins',
  apply: 'build',
  async writeBundle({ dir = '' }) {
    const folder = join(dir, 'assets');
    const names = (await readdir(folder)).filter((name) => COMPRESSIBLE.test(name));
    await Promise.all(
      names.map(async (name) => {
        const path = join(folder, name);
        await writeFile(`${path}.br`, await promisify(brotliCompress)(await readFile(path)));
      }),
    );
  },
};

/**
 * Files below assets/ carry a hash of their content in the name, so browsers may keep them for ever. The server writes a
 * nonce in place of __NONCE__ into each page that it sends (api/dashboard.ts).
 */
export default defineConfig(({ mode }) => ({
  plugins: [englishAlone, react(), compressedTwins],
  html: { cspNonce: '__NONCE__' },
  build: { target: 'es2022', emptyOutDir: true, assetsInlineLimit: 0, chunkSizeWarningLimit: 600 },
  server: { proxy: { '/api': loadEnv(mode, '.', 'TRUEUP_').TRUEUP_URL ?? 'http://localhost:3000' } },
}));
