import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type Router from '@koa/router';
import type { Context } from 'koa';
import { DomainError } from '../domain/errors.js';
import { PROJECT_ROOT } from '../platform/projectRoot.js';

/** Written by `npm start` from web/. */
const FOLDER = path.join(PROJECT_ROOT, 'dist-web');
const YEAR_SECONDS = 31_536_000;
const NONCE = /__NONCE__/g;
/** Names that the build writes; nothing else is read from the disk. */
const ASSET_NAME = /^[\w.-]+\.(js|css|svg|woff2|map)$/;
const ROOT_FILES = ['icon.svg', 'theme.js'];
const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
  map: 'application/json',
};
/** Paths whose unknown addresses answer as the API does, to browsers too. */
const NOT_SCREENS = /^\/(?:api|docs|v1|assets|sdk|healthz|readyz|metrics|openapi\.json)(?:\/|$)/;

/**
 * Content-Security-Policy of the dashboard: files of this server only. react-aria adds one style element, which carries
 * the page's nonce.
 */
export function dashboardPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "font-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "object-src 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

interface WebFile {
  content: Buffer;
  etag: string;
}

const files = new Map<string, Promise<WebFile | undefined>>();

/** A file of the build, kept in memory. Undefined if it does not exist. */
function webFile(name: string): Promise<WebFile | undefined> {
  let file = files.get(name);
  if (!file) {
    file = readWebFile(name);
    files.set(name, file);
    // A file that is not there yet may be built later, and names that do not exist must not fill the memory.
    void file.then((found) => found ?? files.delete(name));
  }
  return file;
}

async function readWebFile(name: string): Promise<WebFile | undefined> {
  let content: Buffer;
  try {
    content = await readFile(path.join(FOLDER, name));
  } catch {
    return undefined;
  }
  const etag = `"${createHash('sha256').update(content).digest('hex').slice(0, 16)}"`;
  return { content, etag };
}

/** Serves the files of the dashboard: hashed ones for a year, the others with an ETag. */
export function dashboardRoutes(router: Router): void {
  router.get('/assets/:name', async (ctx) => {
    ctx.state.operation = 'dashboardFile';
    const name = ctx.params.name ?? '';
    const file = ASSET_NAME.test(name) ? await webFile(`assets/${name}`) : undefined;
    if (!file) throw notThere(ctx);
    const twin = ctx.acceptsEncodings('br') ? await webFile(`assets/${name}.br`) : undefined;
    if (twin) {
      ctx.vary('Accept-Encoding');
      ctx.set('Content-Encoding', 'br');
    }
    ctx.set('Cache-Control', `public, max-age=${YEAR_SECONDS}, immutable`);
    sendFile(ctx, name, twin ?? file);
  });
  for (const name of ROOT_FILES) {
    router.get(`/${name}`, async (ctx) => {
      ctx.state.operation = 'dashboardFile';
      const file = await webFile(name);
      if (!file) throw notThere(ctx);
      ctx.set('Cache-Control', 'no-cache');
      sendFile(ctx, name, file);
    });
  }
}

const notThere = (ctx: Context) =>
  new DomainError('route_not_found', `there is nothing at ${ctx.path.slice(0, 200)}`);

function sendFile(ctx: Context, name: string, file: WebFile): void {
  ctx.set('Content-Type', TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream');
  ctx.set('ETag', file.etag);
  ctx.status = 200;
  if (ctx.headers['if-none-match'] === file.etag) ctx.status = 304;
  else ctx.body = file.content;
}

/**
 * Answers a browser's visit to a screen with the dashboard's page; which screen it is, the page decides. Returns false
 * for every other request, and where the dashboard is not built.
 */
export async function answerScreen(ctx: Context): Promise<boolean> {
  if ((ctx.method !== 'GET' && ctx.method !== 'HEAD') || NOT_SCREENS.test(ctx.path)) return false;
  if (!(ctx.headers.accept ?? '').includes('text/html')) return false;
  const page = await webFile('index.html');
  if (!page) return false;
  const nonce = randomBytes(16).toString('base64url');
  ctx.state.operation = 'dashboard';
  ctx.status = 200;
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Security-Policy', dashboardPolicy(nonce));
  ctx.body = page.content.toString('utf8').replace(NONCE, nonce);
  return true;
}
