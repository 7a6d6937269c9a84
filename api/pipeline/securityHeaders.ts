import type { Context } from 'koa';
import type { PipelineContext } from './pipelineContext.js';

/**
 * Answers of the API are data: nothing in them may load, run, be framed or post forms (OWASP REST security cheat
 * sheet).
 */
const DATA_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * Forbids browsers to guess the answer's type, to frame it, to send its address to other sites, and to share it with
 * their pages. ASVS 5 3.4 and 3.5 require these headers; X-Frame-Options is for browsers that do not support
 * frame-ancestors.
 */
export const SECURITY_HEADERS: readonly (readonly [string, string])[] = [
  ['Cache-Control', 'no-store'],
  ['Content-Security-Policy', DATA_POLICY],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Permissions-Policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
  ['Referrer-Policy', 'no-referrer'],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
];

/**
 * Sets the headers; a handler may override them, as the documentation page does. Strict-Transport-Security is sent only
 * over TLS (RFC 6797 7.2): the service speaks plain HTTP, so the proxy reports TLS in X-Forwarded-Proto. A client that
 * forges it gains nothing, because browsers ignore the header on plain HTTP.
 */
export function setSecurityHeaders(ctx: Context, hstsMaxAgeSeconds: number): void {
  for (const [name, value] of SECURITY_HEADERS) ctx.res.setHeader(name, value);
  setTransportSecurity(ctx, hstsMaxAgeSeconds);
}

/** Sets Strict-Transport-Security where the client speaks TLS. */
export function setTransportSecurity(
  ctx: Pick<PipelineContext, 'req' | 'set'>,
  hstsMaxAgeSeconds: number,
): void {
  if (isTls(ctx)) ctx.set('Strict-Transport-Security', `max-age=${hstsMaxAgeSeconds}`);
}

function isTls({ req }: Pick<PipelineContext, 'req'>): boolean {
  // With several proxies the first value is the one of the proxy that the client connected to.
  const header = req.headers['x-forwarded-proto'];
  if (header === undefined) return false;
  const [first = ''] = String(header).split(',', 1);
  return first.trim().toLowerCase() === 'https';
}
