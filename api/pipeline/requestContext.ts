import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';

/** Fields of each of a request's log lines. */
export interface RequestContext {
  requestId: string;
  orgId?: string;
}

export const requestContext = new AsyncLocalStorage<RequestContext>();

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The client's X-Request-Id when it is well formed, else a new version 7 uuid. */
export function requestIdFrom(header: string | string[] | undefined, nowMillis: number): string {
  if (typeof header === 'string' && REQUEST_ID.test(header)) return header;
  const time = nowMillis.toString(16).padStart(12, '0');
  // The bits after time and version are random in every uuid; a version 4 uuid is the fastest source of them.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
