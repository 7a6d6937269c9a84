import type { Context } from 'koa';

/** What a page may send. Authorization is among them: a key goes in the header, never in a cookie. */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Encoding',
  'Content-Type',
  'Idempotency-Key',
  'If-None-Match',
  'Prefer',
  'X-Request-Id',
].join(', ');
/** What a page may read besides the headers that it always may. */
const EXPOSED_HEADERS = [
  'Content-Disposition',
  'Deprecation',
  'ETag',
  'Idempotency-Replayed',
  'Link',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Sunset',
  'X-Export-Snapshot',
  'X-Request-Id',
].join(', ');
/** Browsers ask again after ten minutes. */
const PREFLIGHT_SECONDS = 600;

/**
 * Lets pages of the listed origins read the answer; of no others, and never with cookies. An origin is compared as a
 * whole: `https://a.example` says nothing of its subdomains, and `null` cannot be listed.
 */
export function allowOrigin(ctx: Context, origins: ReadonlySet<string>): void {
  if (origins.size === 0) return;
  // A shared cache must not hand one origin's answer to another, nor to those that send none.
  ctx.vary('Origin');
  const origin = ctx.headers.origin;
  if (origin === undefined || !origins.has(origin)) return;
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
}

/** Answers a browser's question before a request: which methods and headers this address takes from its page. */
export function answerPreflight(
  ctx: Context,
  methods: readonly string[],
  origins: ReadonlySet<string>,
): void {
  if (ctx.headers['access-control-request-method'] === undefined) return;
  if (!origins.has(ctx.headers.origin ?? '')) return;
  ctx.set('Access-Control-Allow-Methods', methods.join(', '));
  ctx.set('Access-Control-Allow-Headers', REQUEST_HEADERS);
  ctx.set('Access-Control-Max-Age', String(PREFLIGHT_SECONDS));
}
