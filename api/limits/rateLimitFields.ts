import { perSecond, type Rate } from '../../domain/access/rate.js';
import type { PipelineContext } from '../pipeline/pipelineContext.js';

/**
 * The fields RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11): lists of structured fields
 * (RFC 9651), each item a policy's name as a String with Integer parameters.
 */

/** Descriptions of the fields in the OpenAPI document; an answer to a request without a valid key has none of them. */
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
  /** undefined: a limit of concurrent requests, which has no window. */
  windowSeconds: number | undefined;
}

/** Records the state of a rate for the answer's fields; it replaces the earlier state of the same policy. */
export function noteRate(
  ctx: PipelineContext,
  name: string,
  rate: Rate,
  state: { remaining: number; waitSeconds: number },
): void {
  const { remaining } = state;
  note(ctx, {
    name,
    policy: `"${name}";q=${rate.quota};w=${rate.windowSeconds}`,
    remaining,
    // The remaining requests, and the time in which they refill: a client that spreads them over this time never meets
    // the limit.
    windowSeconds: wholeSeconds(remaining > 0 ? remaining / perSecond(rate) : state.waitSeconds),
  });
}

/** Records how many more requests of a kind may run at once. */
export function noteConcurrency(ctx: PipelineContext, name: string, max: number, remaining: number): void {
  const policy = `"${name}";q=${max};qu="concurrent-requests"`;
  note(ctx, { name, policy, remaining, windowSeconds: undefined });
}

/** Seconds rounded up, at least one: the unit of Retry-After and `t`. */
export function wholeSeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}

function note(ctx: PipelineContext, limit: ServiceLimit): void {
  const noted = notedIn(ctx);
  ctx.state.serviceLimits = [...noted.filter(({ name }) => name !== limit.name), limit];
}

function notedIn(ctx: PipelineContext): readonly ServiceLimit[] {
  return (ctx.state.serviceLimits ?? []) as ServiceLimit[];
}

/**
 * Writes the recorded fields to the answer. With Retry-After no window exceeds that time: the client cannot use more
 * than the rest in a shorter one either.
 */
export function writeRateLimitFields(ctx: PipelineContext): void {
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
