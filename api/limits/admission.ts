import type { Context } from 'koa';
import { LimitError } from '../../domain/access/rate.js';
import { DomainError } from '../../domain/errors.js';
import type { Metrics } from '../../platform/metrics.js';

/** Requests under way at once, of those that store calls and of all others: what is beyond would only wait to fail. */
export const REQUESTS_MAX = { ingest: 1_024, other: 512 } as const;
/** Bytes of bodies that are under way at once: what the memory must hold. One body may be larger, alone. */
export const BODY_BYTES_UNDER_WAY_MAX = 268_435_456;
/** What a body counts for at first that does not say its length. */
const UNDECLARED_BODY_BYTES = 1_048_576;
const RETRY_AFTER_SECONDS = 1;

/** Answered whatever else is under way: who asks here wants to know just that. */
const ALWAYS = /^\/(?:healthz|readyz|metrics)\/?$/;
const INGEST = /^\/(?:api\/v1\/ingest\/|v1\/traces|api\/public\/otel\/)/;

type Lane = keyof typeof REQUESTS_MAX;

/** What a request's body counts for. */
interface HeldBody {
  bytes: number;
  /** It has been answered, and counts no more. */
  isOver: boolean;
}

interface LaneState {
  count: number;
  byOrganization: Map<string, number>;
}

/**
 * Refuses what there is no room for before anything of it is read: an admitted request is served in time, and memory is
 * bounded. Of what is free an organization may take half, so that one alone never closes the door on the others.
 */
export class Admission {
  readonly #lanes: Record<Lane, LaneState> = { ingest: emptyLane(), other: emptyLane() };
  readonly #requestsMax: Record<Lane, number>;
  readonly #metrics: Pick<Metrics, 'requestsInFlight' | 'requestsShed'>;
  #bodyBytes = 0;

  constructor(
    metrics: Pick<Metrics, 'requestsInFlight' | 'requestsShed'>,
    requestsMax: Record<Lane, number> = REQUESTS_MAX,
  ) {
    this.#metrics = metrics;
    this.#requestsMax = requestsMax;
  }

  /** Lets a request in until its answer has left. Error: service_unavailable. */
  enter(ctx: Context): void {
    if (ALWAYS.test(ctx.path)) return;
    const name = laneOf(ctx);
    const lane = this.#lanes[name];
    if (lane.count >= this.#requestsMax[name]) throw this.#shed();
    const body = { bytes: 0, isOver: false };
    this.#hold(body, bodyBytesOf(ctx));
    lane.count += 1;
    this.#metrics.requestsInFlight.inc();
    ctx.state.bodyHeld = body;
    whenAnswered(ctx, () => {
      lane.count -= 1;
      body.isOver = true;
      this.#bodyBytes -= body.bytes;
      this.#metrics.requestsInFlight.dec();
    });
  }

  /**
   * Counts what a body has become, which may be more than it said: one that names no length, and a compressed one when it
   * is inflated. Error: service_unavailable.
   */
  holdBody(ctx: Context, bytes: number): void {
    const body = ctx.state.bodyHeld as HeldBody | undefined;
    if (body && laneOf(ctx) === 'ingest') this.#hold(body, bytes);
  }

  #hold(body: HeldBody, bytes: number): void {
    if (body.isOver || bytes <= body.bytes) return;
    const others = this.#bodyBytes - body.bytes;
    if (others > 0 && others + bytes > BODY_BYTES_UNDER_WAY_MAX) throw this.#shed();
    body.bytes = bytes;
    this.#bodyBytes = others + bytes;
  }

  #shed(): DomainError {
    this.#metrics.requestsShed.inc();
    return new DomainError(
      'service_unavailable',
      'more requests are under way than can be served in time; send this one again',
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  }

  /** Counts a request that was let in for its organization, until its answer has left. Error: rate_limited. */
  enterOrganization(ctx: Context, orgId: string): void {
    const name = laneOf(ctx);
    const { count, byOrganization } = this.#lanes[name];
    const own = byOrganization.get(orgId) ?? 0;
    const free = this.#requestsMax[name] - count;
    if (own > 0 && own > free) {
      throw new LimitError(
        ['requests-under-way'],
        `${own} requests of the organization are under way; wait for their answers before sending more`,
        RETRY_AFTER_SECONDS,
      );
    }
    byOrganization.set(orgId, own + 1);
    whenAnswered(ctx, () => {
      const left = (byOrganization.get(orgId) ?? 1) - 1;
      if (left === 0) byOrganization.delete(orgId);
      else byOrganization.set(orgId, left);
    });
  }
}

function emptyLane(): LaneState {
  return { count: 0, byOrganization: new Map() };
}

function laneOf(ctx: Context): Lane {
  return INGEST.test(ctx.path) ? 'ingest' : 'other';
}

/** Bodies outside ingest are small, or streamed. */
function bodyBytesOf(ctx: Context): number {
  if (laneOf(ctx) !== 'ingest' || ctx.method === 'GET') return 0;
  const declared = ctx.headers['content-length'];
  return declared === undefined ? UNDECLARED_BODY_BYTES : Number(declared);
}

/** Does `work` when the answer has left or the client has gone: once, with one listener a request. */
export function whenAnswered(ctx: Context, work: () => void): void {
  if (ctx.res.destroyed) {
    work();
    return;
  }
  const waiting = ctx.state.whenAnswered as (() => void)[] | undefined;
  if (waiting) {
    waiting.push(work);
    return;
  }
  const all = [work];
  ctx.state.whenAnswered = all;
  ctx.res.once('close', () => {
    for (const each of all) each();
  });
}
