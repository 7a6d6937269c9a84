import { createHash } from 'node:crypto';
import type { OrgDb } from '../../db/orgDb.js';
import { isAnswerKept, parseIdempotencyKey } from '../../domain/access/idempotencyKey.js';
import { DomainError } from '../../domain/errors.js';
import { answerOnce, type KeptAnswer } from '../../usecases/access/answerOnce.js';
import type { ApiDeps } from '../deps.js';
import { type Endpoint, type EndpointResponse, idempotencyOf, type Settle } from '../endpoint.js';
import { presentProblem, statusOf } from '../problem.js';
import type { IncomingBody } from './body.js';

/** Runs the handler with the database handle of its statements. */
export type Run = (orgDb: OrgDb, settle: Settle) => Promise<EndpointResponse>;

/** The parts of an organization's request that identify its repeats. */
interface RepeatableRequest {
  endpoint: Endpoint;
  orgDb: OrgDb;
  callerKeyId: string;
  requestId: string;
  words: RequestTexts;
  incoming: IncomingBody;
  run: Run;
}

/**
 * The answer of a request: the handler's, or the stored one where its Idempotency-Key was answered before
 * (docs/decisions/0032). Errors: invalid_idempotency_key, those of `answerOnce`, and the handler's.
 */
export async function answerRequest(
  { endpoint, orgDb, callerKeyId, requestId, words, incoming, run }: RepeatableRequest,
  header: string | undefined,
  deps: ApiDeps,
): Promise<EndpointResponse> {
  const mode = idempotencyOf(endpoint);
  const scope =
    header === undefined || mode === undefined
      ? undefined
      : { apiKeyId: callerKeyId, operation: endpoint.operationId, key: parseIdempotencyKey(header) };
  let fingerprint: Buffer | undefined;
  return answerOnce<EndpointResponse>(
    {
      orgDb,
      scope,
      mode: mode ?? 'transaction',
      fingerprint: () => {
        fingerprint ??= endpoint.streams ? findStreamedFingerprint(words, incoming) : fingerprintOf(words);
        return fingerprint;
      },
      drain: async () => endpoint.drain?.(incoming),
      run,
      keptAnswerOf,
      keptRefusalOf: (error) => keptRefusalOf(error, requestId),
      answerAgain,
    },
    deps,
  );
}

function findStreamedFingerprint(words: RequestTexts, { contentDigest }: IncomingBody): Buffer | undefined {
  return contentDigest === undefined ? undefined : fingerprintOf({ ...words, content: contentDigest });
}

/** The answer to store. Throws TypeError for a stream: endpoints that stream ignore the header. */
function keptAnswerOf(response: EndpointResponse): KeptAnswer {
  const { status, headers = {}, body, content } = response;
  if (content) {
    if (typeof content.data !== 'string') throw new TypeError('only text is kept for repeats');
    return { status, headers, type: content.type, text: content.data };
  }
  if (body === undefined) return { status, headers, type: null, text: null };
  return { status, headers, type: 'application/json', text: JSON.stringify(body) };
}

function keptRefusalOf(error: unknown, requestId: string): KeptAnswer | undefined {
  if (!(error instanceof DomainError) || error.code === 'idempotency_in_progress') return undefined;
  const status = statusOf(error.code);
  if (!isAnswerKept(status)) return undefined;
  const { retryAfterSeconds } = error;
  return {
    status,
    type: 'application/problem+json',
    text: JSON.stringify(presentProblem(error, requestId)),
    headers: retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) },
  };
}

function answerAgain({ status, headers, type, text }: KeptAnswer): EndpointResponse {
  const content = type === null || text === null ? {} : { content: { type, data: text } };
  return { status, headers: { ...headers, 'Idempotency-Replayed': 'true' }, ...content };
}

/** The content of a request without its headers; equal content makes a request a repeat. */
export interface RequestTexts {
  method: string;
  /** The endpoint's path, e.g. `/api/v1/events/{id}`. */
  path: string;
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  mediaType: string;
  /** The parsed JSON body, or the digest of a streamed one; undefined where the endpoint reads none. */
  content: unknown;
}

/**
 * sha256 of a request's content. A JSON body is hashed by value, so that another order of field names is still a
 * repeat.
 */
export function fingerprintOf(words: RequestTexts): Buffer {
  const { method, path, params, query, mediaType, content } = words;
  return createHash('sha256')
    .update(canonicalJson([method, path, params, query, mediaType, content ?? null]))
    .digest();
}

/** JSON with sorted field names. The parser bounded the depth. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const record = value as Record<string, unknown>;
  const fields = Object.keys(record)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(record[name])}`);
  return `{${fields.join(',')}}`;
}
