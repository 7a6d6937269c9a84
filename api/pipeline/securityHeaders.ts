import type { Context } from 'koa';

/** An answer of the API is data: nothing in it may load, run, be framed or be posted (OWASP REST security cheat sheet). */
const DATA_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * Asks browsers not to guess the answer's type, not to frame it, not to send its address to other sites, and not to
 * pass it to their pages. ASVS 5 3.4 and 3.5 ask for them; X-Frame-Options is for browsers that do not know
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
 * Sets them; a handler may set its own over them, as the page of the documents does. Strict-Transport-Security goes only
 * with an answer that travels by TLS, as RFC 6797 7.2 has it: the service speaks plain HTTP, so the proxy in front says
 * so by X-Forwarded-Proto. A client that says so itself gains nothing: browsers ignore the header on plain HTTP.
 */
export function setSecurityHeaders(ctx: Context, hstsMaxAgeSeconds: number): void {
  for (const [name, value] of SECURITY_HEADERS) ctx.res.setHeader(name, value);
  if (isTls(ctx)) ctx.res.setHeader('Strict-Transport-Security', `max-age=${hstsMaxAgeSeconds}`);
}

function isTls({ req }: Context): boolean {
  // Of several proxies the first one, which the client spoke to, comes first.
  const [first = ''] = String(req.headers['x-forwarded-proto'] ?? '').split(',', 1);
  return first.trim().toLowerCase() === 'https';
}
