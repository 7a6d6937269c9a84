import type { Context } from 'koa';
import { z } from 'zod';
import type { PendingSignIn } from '../../adapters/identity/identityProvider.js';
import { SESSION_DAYS } from '../../domain/access/sessionRules.js';
import { DomainError } from '../../domain/errors.js';

const DAY_SECONDS = 86_400;

const isHttps = (baseUrl: string) => new URL(baseUrl).protocol === 'https:';

/** Over TLS the prefix keeps other hosts and plain HTTP from setting the cookie (RFC 6265bis, 4.1.3). */
const nameOf = (baseUrl: string) => (isHttps(baseUrl) ? '__Host-session' : 'session');

/** The value of Set-Cookie that begins a session. Scripts cannot read it, and other sites' requests lack it. */
export function sessionCookie(baseUrl: string, secret: string, seconds = SESSION_DAYS * DAY_SECONDS): string {
  const secure = isHttps(baseUrl) ? '; Secure' : '';
  return `${nameOf(baseUrl)}=${secret}; Path=/; Max-Age=${seconds}; HttpOnly${secure}; SameSite=Strict`;
}

/** The value of Set-Cookie that removes the session. */
export function endedSessionCookie(baseUrl: string): string {
  return sessionCookie(baseUrl, '', 0);
}

/** Seconds for which a person may take to sign in at the identity provider. */
const PENDING_SECONDS = 600;
const pendingName = (baseUrl: string) => (isHttps(baseUrl) ? '__Host-sign-in' : 'sign-in');

/**
 * The value of Set-Cookie that ties the return from the identity provider to its start. Lax, because the return comes
 * from the provider's site.
 */
export function pendingCookie(baseUrl: string, pending: PendingSignIn, seconds = PENDING_SECONDS): string {
  const value = Buffer.from(JSON.stringify(pending)).toString('base64url');
  const secure = isHttps(baseUrl) ? '; Secure' : '';
  return `${pendingName(baseUrl)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly${secure}; SameSite=Lax`;
}

/** The value of Set-Cookie that removes it: it is used once. */
export function endedPendingCookie(baseUrl: string): string {
  return pendingCookie(baseUrl, { state: '', nonce: '', verifier: '' }, 0);
}

/** The state that the browser kept at the start; undefined: none, or none of ours. */
export function findPendingSignIn(header: string | undefined, baseUrl: string): PendingSignIn | undefined {
  const text = Buffer.from(findCookie(header, pendingName(baseUrl)) ?? '', 'base64url').toString();
  const parsed = pendingSchema.safeParse(parsedJson(text));
  return parsed.success ? parsed.data : undefined;
}

const pendingSchema = z.strictObject({
  state: z.string().min(1),
  nonce: z.string().min(1),
  verifier: z.string().min(1),
});

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A cookie of a request; undefined: it has none of this name. */
export function findCookie(header: string | undefined, name: string): string | undefined {
  const found = header?.split(';').find((pair) => pair.trimStart().startsWith(`${name}=`));
  return found?.slice(found.indexOf('=') + 1).trim() || undefined;
}

/** The secret of a request's session; undefined: it has none. */
export function findSessionSecret(header: string | undefined, baseUrl: string): string | undefined {
  return findCookie(header, nameOf(baseUrl));
}

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Refuses a change that another site's page may have sent with the browser's cookie: by Sec-Fetch-Site, by Origin where
 * a browser does not send that, and by a header that a form cannot have. Error: cross_site_request.
 */
export function assertOwnPage(ctx: Context, baseUrl: string): void {
  if (SAFE_METHODS.has(ctx.method)) return;
  if (ctx.get('X-Requested-With') !== 'dashboard') throw crossSite();
  if (ctx.headers['sec-fetch-site'] === undefined && ctx.headers.origin === undefined) throw crossSite();
  assertNotForeign(ctx, baseUrl);
}

/**
 * Refuses a request that a browser reports as another site's. A client that is no browser reports nothing. Error:
 * cross_site_request.
 */
export function assertNotForeign(ctx: Context, baseUrl: string): void {
  const site = ctx.headers['sec-fetch-site'];
  const { origin } = ctx.headers;
  const isOwn =
    site === undefined
      ? origin === undefined || isOwnOrigin(ctx, origin, baseUrl)
      : site === 'same-origin' || site === 'none';
  if (!isOwn) throw crossSite();
}

/** The origin of BASE_URL, or of the address by which this request came: its Host header names an allowed host. */
function isOwnOrigin(ctx: Context, origin: string, baseUrl: string): boolean {
  const { protocol, origin: own } = new URL(baseUrl);
  return origin === own || (ctx.headers.host !== undefined && origin === `${protocol}//${ctx.headers.host}`);
}

function crossSite(): DomainError {
  return new DomainError(
    'cross_site_request',
    'a page of another site may have sent this: requests with a session come from this service’s own pages, with X-Requested-With: dashboard',
  );
}
