import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { formatUuid } from '../domain/ids.js';

/** What log lines of a request carry. */
export interface RequestContext {
  requestId: string;
  orgId?: string;
}

export const requestContext = new AsyncLocalStorage<RequestContext>();

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The client's X-Request-Id when it is well formed, else a new version 7 uuid. */
export function requestIdFrom(header: string | string[] | undefined, nowMillis: number): string {
  if (typeof header === 'string' && REQUEST_ID.test(header)) return header;
  const random = randomBytes(10).toString('hex');
  const variant = (0x8 | (Number.parseInt(random[3] ?? '0', 16) & 0x3)).toString(16);
  return formatUuid(
    `${nowMillis.toString(16).padStart(12, '0')}7${random.slice(0, 3)}${variant}${random.slice(4, 19)}`,
  );
}
