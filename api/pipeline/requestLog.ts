import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { PipelineContext } from './pipelineContext.js';

type WithState = Pick<PipelineContext, 'state'>;

/**
 * Fields of each of a request's log lines; the organization is known once the caller is. They are passed on, since an
 * AsyncLocalStorage costs a hook for each promise of the process on Node 20 and 22 (docs/benchmarks.md).
 */
export function logFieldsOf({ state: { requestId, orgId } }: WithState): {
  requestId?: string;
  orgId?: string;
} {
  return { requestId, orgId };
}

/** The writer of a request's further log lines. */
export function loggerOf(ctx: WithState, { logger }: { logger: Logger }): Logger {
  return logger.child(logFieldsOf(ctx));
}

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The client's X-Request-Id when it is well formed, else a new version 7 uuid. */
export function requestIdFrom(header: string | string[] | undefined, nowMillis: number): string {
  if (typeof header === 'string' && REQUEST_ID.test(header)) return header;
  const time = nowMillis.toString(16).padStart(12, '0');
  // The bits after time and version are random in every uuid; a version 4 uuid is the fastest source of them.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
