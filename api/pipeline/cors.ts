import type { Context } from 'koa';

/** Headers that a page may send. Authorization is included: a key is sent in this header, never in a cookie. */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Encoding',
  'Content-Type',
  'Idempotency-Key',
  'If-None-Match',
  'Prefer',
  'X-Request-Id',
].join(', ');
/** Response headers that a page may read besides those that CORS always permits. */
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
/** Seconds for which browsers cache a preflight answer. */
const PREFLIGHT_SECONDS = 600;

/**
 * Permits pages of the listed origins to read the answer, always without cookies. Origins are compared whole:
 * `https://a.example` does not include its subdomains, and `null` cannot be listed.
 */
export function allowOrigin(ctx: Context, origins: ReadonlySet<string>): void {
  if (origins.size === 0) return;
  // A shared cache must not return one origin's answer to another origin, or to a request without one.
  ctx.vary('Origin');
  const origin = ctx.headers.origin;
  if (origin === undefined || !origins.has(origin)) return;
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
}

/** Answers a preflight request with the methods and headers that the path accepts from the page. */
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
