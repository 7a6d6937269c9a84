import type { Context } from 'koa';
import { perSecond, type Rate } from '../../domain/access/rate.js';

/**
 * The fields RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11): lists of structured fields
 * (RFC 9651), each item a policy's name as a String with Integer parameters.
 */

/** What the documents say of the fields; an answer to a request without a valid key has none. */
export const RATE_LIMIT_HEADER_DOCS: Record<string, string> = {
  'RateLimit-Policy': 'The limits that count this request: `"default";q=600;w=60`',
  RateLimit: 'What is left of them, and in how many seconds as much comes back: `"default";r=87;t=9`',
};
export const RETRY_AFTER_DOC: Record<string, string> = {
  'Retry-After': 'Seconds until the same can succeed',
};

/** The state of a policy after a request. */
interface ServiceLimit {
  name: string;
  policy: string;
  remaining: number;
  /** undefined: a number of requests at once, which no time brings back. */
  windowSeconds: number | undefined;
}

/** Notes the state of a rate for the answer's fields; what was noted of the same policy before is replaced. */
export function noteRate(
  ctx: Context,
  name: string,
  rate: Rate,
  state: { remaining: number; waitSeconds: number },
): void {
  const { remaining } = state;
  note(ctx, {
    name,
    policy: `"${name}";q=${rate.quota};w=${rate.windowSeconds}`,
    remaining,
    // What is left, in the time in which it comes back: a client that spreads it so never meets the limit.
    windowSeconds: wholeSeconds(remaining > 0 ? remaining / perSecond(rate) : state.waitSeconds),
  });
}

/** Notes how many more requests of a kind may go on at once. */
export function noteConcurrency(ctx: Context, name: string, max: number, remaining: number): void {
  const policy = `"${name}";q=${max};qu="concurrent-requests"`;
  note(ctx, { name, policy, remaining, windowSeconds: undefined });
}

/** Whole seconds that are surely over, at least one: what Retry-After and `t` are given in. */
export function wholeSeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}

function note(ctx: Context, limit: ServiceLimit): void {
  const noted = notedIn(ctx);
  ctx.state.serviceLimits = [...noted.filter(({ name }) => name !== limit.name), limit];
}

function notedIn(ctx: Context): readonly ServiceLimit[] {
  return (ctx.state.serviceLimits ?? []) as ServiceLimit[];
}

/**
 * Writes what was noted into the answer. Where it also says Retry-After, no window reaches beyond that time: within a
 * shorter one the client can use no more than is left either.
 */
export function writeRateLimitFields(ctx: Context): void {
  const limits = notedIn(ctx);
  if (limits.length === 0) return;
  const retryAfter = Number(ctx.response.get('Retry-After') || Number.POSITIVE_INFINITY);
  ctx.set('RateLimit-Policy', limits.map(({ policy }) => policy).join(', '));
  ctx.set(
    'RateLimit',
    limits
      .map(({ name, remaining, windowSeconds }) =>
        windowSeconds === undefined
          ? `"${name}";r=${remaining}`
          : `"${name}";r=${remaining};t=${Math.min(windowSeconds, retryAfter)}`,
      )
      .join(', '),
  );
}
