import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv } from 'vite';

/**
 * Files below assets/ carry a hash of their content in the name, so browsers may keep them for ever. The server writes a
 * nonce in place of __NONCE__ into each page that it sends (api/dashboard.ts).
 */
export default defineConfig(({ mode }) => ({
  plugins: [react()],
  html: { cspNonce: '__NONCE__' },
  build: { target: 'es2022', emptyOutDir: true, assetsInlineLimit: 0, chunkSizeWarningLimit: 600 },
  server: { proxy: { '/api': loadEnv(mode, '.', 'TRUEUP_').TRUEUP_URL ?? 'http://localhost:3000' } },
}));
