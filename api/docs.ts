import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import type Router from '@koa/router';

const ASSETS = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
} as const;

const BOOT = `window.addEventListener('load', () => {
  window.SwaggerUIBundle({ url: '/openapi.json', dom_id: '#docs', deepLinking: true, validatorUrl: null, docExpansion: 'list', defaultModelsExpandDepth: 0 });
});`;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Trueup API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<script src="/docs/swagger-ui-bundle.js" defer></script>
<script src="/docs/boot.js" defer></script>
</head>
<body><main id="docs"></main><noscript>The API is described in <a href="/openapi.json">openapi.json</a>.</noscript></body>
</html>
`;

/**
 * Content-Security-Policy of /docs: the page may load files of this server only, and nothing inline. A file starts the
 * viewer, and the viewer sets styles through the DOM, which no policy forbids. Its style sheet embeds its icons as data
 * URLs.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const DAY_SECONDS = 86_400;

function taggedText(document: object): { text: string; etag: string } {
  const text = JSON.stringify(document);
  return { text, etag: `"${createHash('sha256').update(text).digest('hex').slice(0, 16)}"` };
}

/**
 * Serves `/openapi.json` and the documentation page at `/docs`; every file comes from this server. The first request
 * builds the document, so that it does not delay the start.
 */
export function docsRoutes(router: Router, makeDocument: () => object): void {
  let made: { text: string; etag: string } | undefined;
  router.get('/openapi.json', (ctx) => {
    ctx.state.operation = 'openapi';
    made ??= taggedText(makeDocument());
    const { text, etag } = made;
    ctx.set('Content-Type', 'application/json');
    ctx.set('Cache-Control', 'no-cache');
    ctx.set('ETag', etag);
    ctx.status = 200;
    if (ctx.headers['if-none-match'] === etag) ctx.status = 304;
    else ctx.body = text;
  });
  router.get('/docs', (ctx) => {
    ctx.state.operation = 'docs';
    ctx.set('Content-Security-Policy', POLICY);
    ctx.set('Content-Type', 'text/html; charset=utf-8');
    ctx.body = PAGE;
  });
  router.get('/docs/boot.js', (ctx) => {
    ctx.state.operation = 'docs';
    ctx.set('Content-Type', 'text/javascript; charset=utf-8');
    ctx.body = BOOT;
  });
  const folder = path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  for (const [name, type] of Object.entries(ASSETS)) {
    router.get(`/docs/${name}`, async (ctx) => {
      ctx.state.operation = 'docs';
      ctx.set('Content-Type', type);
      ctx.set('Cache-Control', `public, max-age=${DAY_SECONDS}`);
      ctx.body = await readFile(path.join(folder, name));
    });
  }
}
