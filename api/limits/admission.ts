import { LimitError } from '../../domain/access/rate.js';
import { DomainError } from '../../domain/errors.js';
import type { Metrics } from '../../platform/metrics.js';
import type { PipelineContext } from '../pipeline/pipelineContext.js';

/** Requests in progress at once: those that store calls, and all others. More would only wait and time out. */
export const REQUESTS_MAX = { ingest: 1_024, other: 512 } as const;
/** Bytes of request bodies in memory at once. A single larger body is admitted when it is alone. */
export const BODY_BYTES_UNDER_WAY_MAX = 268_435_456;
/** Bytes that a body without a declared length counts for at first. */
const UNDECLARED_BODY_BYTES = 1_048_576;
const RETRY_AFTER_SECONDS = 1;

/** Paths that are answered under any load, because they report the load. */
const ALWAYS = /^\/(?:healthz|readyz|metrics)\/?$/;
const INGEST = /^\/(?:api\/v1\/ingest\/|v1\/traces|api\/public\/otel\/)/;

type Lane = keyof typeof REQUESTS_MAX;

/** The bytes that a request's body holds. */
interface HeldBody {
  bytes: number;
  /** True once the request is answered; its bytes no longer count. */
  isOver: boolean;
}

interface LaneState {
  count: number;
  byOrganization: Map<string, number>;
}

/**
 * Refuses requests that do not fit before their bodies are read, so that admitted requests are served in time and
 * memory is bounded. One organization may take half of the free room, so that it cannot shut out the others.
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

  /** Admits a request until its answer is sent. Error: service_unavailable. */
  enter(ctx: PipelineContext): void {
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
   * Updates the bytes of a body. They can exceed the declared length: a chunked body declares none, and a compressed
   * one grows when it is inflated. Error: service_unavailable.
   */
  holdBody(ctx: PipelineContext, bytes: number): void {
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

  /** Counts an admitted request for its organization until its answer is sent. Error: rate_limited. */
  enterOrganization(ctx: PipelineContext, orgId: string): void {
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

function laneOf(ctx: PipelineContext): Lane {
  return INGEST.test(ctx.path) ? 'ingest' : 'other';
}

/** Declared bytes of an ingest body; 0 for other endpoints, whose bodies are small or streamed. */
function bodyBytesOf(ctx: PipelineContext): number {
  if (laneOf(ctx) !== 'ingest' || ctx.method === 'GET') return 0;
  const declared = ctx.headers['content-length'];
  return declared === undefined ? UNDECLARED_BODY_BYTES : Number(declared);
}

/** Calls `work` once when the answer is sent or the client disconnects, with one listener a request. */
export function whenAnswered(ctx: PipelineContext, work: () => void): void {
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
