import type { Context } from 'koa';
import { DomainError, type ErrorCode } from '../../domain/errors.js';
import type { BrokenRequest, RawAnswer } from '../../platform/brokenRequests.js';
import { HTTP_LIMITS } from '../../platform/serverLimits.js';
import { presentProblem } from '../problem.js';
import { requestIdFrom } from './requestLog.js';
import { SECURITY_HEADERS } from './securityHeaders.js';

/** Longest accepted address, bytes. */
export const URL_BYTES_MAX = 8_192;

const URL_TOO_LONG = `the address is longer than ${URL_BYTES_MAX} bytes; send long values in a body, or ask for less at once`;

/** Validates a head that Node's parser accepts. Errors: uri_too_long, malformed_request. */
export function assertReadableHead(ctx: Context): void {
  if (Buffer.byteLength(ctx.url) > URL_BYTES_MAX) throw new DomainError('uri_too_long', URL_TOO_LONG);
  // RFC 9112 3.2; an empty Host header is valid.
  if (ctx.req.httpVersion === '1.1' && ctx.req.headers.host === undefined) {
    ctx.set('Connection', 'close');
    throw new DomainError('malformed_request', 'the header Host is missing; HTTP/1.1 asks for it');
  }
}

const LENGTHS = 'the length of the body is not clear: send one Content-Length, or Transfer-Encoding: chunked';

/** Keyed by the error codes of Node's parser; every other code is a malformed request. */
const FAULTS: Readonly<Record<string, readonly [code: ErrorCode, sentence: string]>> = {
  HPE_HEADER_OVERFLOW: [
    'request_head_too_large',
    `the address and the headers are longer than ${HTTP_LIMITS.maxHeaderSize} bytes together; send fewer or shorter ones`,
  ],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [
    'payload_too_large',
    'the chunks of the body have too many extensions; send the body without them',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    'request_too_slow',
    'the request was not there in time; send it again, at once and whole',
  ],
  HPE_INVALID_METHOD: [
    'malformed_request',
    'the request line begins with no method of HTTP; use GET, POST, PUT, PATCH or DELETE',
  ],
  HPE_INVALID_URL: ['malformed_request', 'the address in the request line is malformed; escape it'],
  HPE_INVALID_VERSION: ['malformed_request', 'the request line names no version that is read; use HTTP/1.1'],
  HPE_INVALID_CONSTANT: ['malformed_request', 'the request line names no version that is read; use HTTP/1.1'],
  HPE_INVALID_HEADER_TOKEN: [
    'malformed_request',
    'a header is malformed: its name or value has a wrong character',
  ],
  HPE_INVALID_CONTENT_LENGTH: ['malformed_request', LENGTHS],
  HPE_UNEXPECTED_CONTENT_LENGTH: ['malformed_request', LENGTHS],
  HPE_INVALID_TRANSFER_ENCODING: ['malformed_request', LENGTHS],
  HPE_INVALID_CHUNK_SIZE: ['malformed_request', 'a chunk of the body has no size that is a number'],
  HPE_INVALID_EOF_STATE: ['malformed_request', 'the request ended before it was complete; send it again'],
};
const MALFORMED = ['malformed_request', 'the bytes are no request of HTTP/1.1'] as const;

const REQUEST_LINE = /^[A-Z]+ ([^ \r\n]*)/;

/** The answer to a request that the HTTP parser refuses: a problem like every other. */
export function presentBrokenRequest({ code, bytes }: BrokenRequest, nowMillis = Date.now()): RawAnswer {
  const [, address = ''] = REQUEST_LINE.exec(bytes.toString('latin1')) ?? [];
  const [problemCode, sentence] =
    code === 'HPE_HEADER_OVERFLOW' && address.length > URL_BYTES_MAX
      ? (['uri_too_long', URL_TOO_LONG] as const)
      : (FAULTS[code] ?? MALFORMED);
  const requestId = requestIdFrom(undefined, nowMillis);
  const problem = presentProblem(new DomainError(problemCode, sentence), requestId);
  return {
    status: problem.status,
    headers: {
      ...Object.fromEntries(SECURITY_HEADERS),
      'X-Request-Id': requestId,
      'Content-Type': 'application/problem+json',
    },
    body: JSON.stringify(problem),
  };
}
