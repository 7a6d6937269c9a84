import { randomUUID } from 'node:crypto';
import {
  beginAttempt,
  extendLease,
  findKnownRequest,
  type KnownRequest,
  releaseAttempt,
  storeAnswer,
  takeIdempotencyKey,
} from '../../db/access/idempotencyKeys.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  answerBinding,
  type IdempotencyScope,
  isAnswerKept,
  parseIdempotencyKey,
} from '../../domain/access/idempotencyKey.js';
import { DomainError } from '../../domain/errors.js';
import type { ApiDeps } from '../deps.js';
import { type Endpoint, type EndpointResponse, idempotencyOf, type Settle } from '../endpoint.js';
import { presentProblem, statusOf } from '../problem.js';
import type { IncomingBody } from './body.js';
import { fingerprintOf, type RequestWords } from './fingerprint.js';

/** How long an attempt may be silent before another one takes its turn; renewed while it runs. */
const LEASE_SECONDS = 30;
const RENEWALS_A_LEASE = 3;
const RETRY_AFTER_SECONDS = 1;

/** Runs the handler with the handle that its statements go through. */
export type Run = (orgDb: OrgDb, settle: Settle) => Promise<EndpointResponse>;

/** A request as far as repeats of it are concerned. */
export interface RepeatableRequest {
  endpoint: Endpoint;
  orgDb: OrgDb;
  /** The id of the key that calls. */
  callerKeyId: string;
  requestId: string;
  words: RequestWords;
  incoming: IncomingBody;
  run: Run;
}

/** One with a key, and what that means. */
interface KeyedRequest extends RepeatableRequest {
  scope: IdempotencyScope;
  deps: ApiDeps;
}

/** An answer as it is kept: sealed, since it may show a secret. */
interface KeptAnswer {
  status: number;
  type: string | null;
  text: string | null;
  headers: Readonly<Record<string, string>>;
}

/**
 * The answer of a request: that of its handler, or where it carries an Idempotency-Key that was answered before, that
 * answer again (docs/decisions/0032). Errors: invalid_idempotency_key, idempotency_key_reused, idempotency_in_progress,
 * secret_key_missing, and the handler's.
 */
export async function answerOnce(
  request: RepeatableRequest,
  header: string | undefined,
  deps: ApiDeps,
): Promise<EndpointResponse> {
  const { endpoint, orgDb } = request;
  const mode = idempotencyOf(endpoint);
  if (header === undefined || mode === undefined) {
    return request.run(orgDb, (work) => orgDb.transaction(work));
  }
  const scope = {
    apiKeyId: request.callerKeyId,
    operation: endpoint.operationId,
    key: parseIdempotencyKey(header),
  };
  const keyed = { ...request, scope, deps };
  return mode === 'transaction' ? answerInOneTransaction(keyed) : answerUnderLease(keyed);
}

/** The handler's statements and the answer are committed together or not at all, wherever the process ends. */
async function answerInOneTransaction(request: KeyedRequest): Promise<EndpointResponse> {
  const fingerprint = fingerprintOf(request.words);
  const outcome = await request.orgDb.transaction(async (inside) => {
    const { isMine, known } = await takeIdempotencyKey(inside, request.scope);
    if (known && (known.status !== null || known.isLeased)) {
      return { given: repeatAnswer(request, known, fingerprint) };
    }
    if (!isMine) throw underWay();
    const attempted = await inside.attempt((within) => request.run(within, (work) => work(within)));
    const answer =
      'given' in attempted ? answerOf(attempted.given) : findRefusal(attempted.thrown, request.requestId);
    if (!answer) throw 'thrown' in attempted ? attempted.thrown : new TypeError('no answer to keep');
    await keep(request, inside, { id: randomUUID(), fingerprint }, answer);
    return attempted;
  });
  if ('thrown' in outcome) throw outcome.thrown;
  return outcome.given;
}

/** For handlers that ask others or read a stream: what is under way is seen by a row with a lease. */
async function answerUnderLease(request: KeyedRequest): Promise<EndpointResponse> {
  const { orgDb, scope, endpoint, deps } = request;
  const attempt = { id: randomUUID(), leaseSeconds: LEASE_SECONDS };
  const fingerprint = endpoint.streams ? null : fingerprintOf(request.words);
  const isBegun = await beginAttempt(orgDb, scope, { ...attempt, fingerprint }).catch(
    async (error: unknown) => {
      // It may have been stored all the same: nobody is to wait for an attempt that never began.
      await releaseAttempt(orgDb, scope, attempt.id).catch(() => undefined);
      throw error;
    },
  );
  if (!isBegun) return answerAsBefore(request, fingerprint);
  const renewing = setInterval(
    () => void extendLease(orgDb, scope, attempt).catch(() => undefined),
    (LEASE_SECONDS * 1_000) / RENEWALS_A_LEASE,
  ).unref();
  try {
    return await runAttempt(request, attempt.id, fingerprint);
  } catch (error) {
    const refusal = findRefusal(error, request.requestId);
    const said = fingerprint ?? findStreamedFingerprint(request);
    const ending =
      refusal && said
        ? keep(request, orgDb, { id: attempt.id, fingerprint: said }, refusal)
        : releaseAttempt(orgDb, scope, attempt.id);
    // Where even this fails the lease runs out.
    await ending.catch((why: unknown) =>
      deps.logger.warn({ err: why }, 'the end of an attempt is not stored'),
    );
    throw error;
  } finally {
    clearInterval(renewing);
  }
}

async function runAttempt(
  request: KeyedRequest,
  id: string,
  fingerprint: Buffer | null,
): Promise<EndpointResponse> {
  const { orgDb, deps } = request;
  const keepIn = (inside: OrgDb, response: EndpointResponse) => {
    const said = fingerprint ?? findStreamedFingerprint(request);
    if (!said) throw new TypeError(`${request.endpoint.operationId} has not read its body`);
    return keep(request, inside, { id, fingerprint: said }, answerOf(response));
  };
  let isKept = false;
  const response = await request.run(orgDb, async (work) => {
    const settled = await orgDb.transaction(async (inside) => {
      const given = await work(inside);
      await keepIn(inside, given);
      return given;
    });
    isKept = true;
    return settled;
  });
  // The work is done and may be done again without harm: a repeat does so when this fails.
  if (!isKept)
    await keepIn(orgDb, response).catch((why: unknown) =>
      deps.logger.warn({ err: why }, 'an answer is not stored for repeats'),
    );
  return response;
}

/** What a repeat is answered whose key another attempt holds, or held. */
async function answerAsBefore(request: KeyedRequest, fingerprint: Buffer | null): Promise<EndpointResponse> {
  const known = await findKnownRequest(request.orgDb, request.scope);
  if (!known) throw underWay();
  if (known.status === null || fingerprint) return repeatAnswer(request, known, fingerprint);
  await request.endpoint.drain?.(request.incoming);
  return repeatAnswer(request, known, findStreamedFingerprint(request) ?? null);
}

function findStreamedFingerprint({ words, incoming }: KeyedRequest): Buffer | undefined {
  const { contentDigest } = incoming;
  return contentDigest === undefined ? undefined : fingerprintOf({ ...words, content: contentDigest });
}

/** The kept answer. Errors: idempotency_key_reused, idempotency_in_progress, secret_key_missing. */
function repeatAnswer(
  { scope, orgDb, deps }: KeyedRequest,
  known: KnownRequest,
  fingerprint: Buffer | null,
): EndpointResponse {
  if (known.fingerprint && fingerprint && !known.fingerprint.equals(fingerprint)) {
    throw new DomainError(
      'idempotency_key_reused',
      'this Idempotency-Key came with another request before; send a new key with a new request',
    );
  }
  if (known.status === null) throw underWay();
  const text = known.ciphertext && deps.secretKeys.open(known.ciphertext, answerBinding(orgDb.orgId, scope));
  if (text === null || text === undefined) {
    throw new DomainError(
      'secret_key_missing',
      'this request was carried out, but its answer cannot be shown again: the key that sealed it is not at hand; look at what it made, or send a new Idempotency-Key to do it once more',
    );
  }
  const answer = JSON.parse(text) as KeptAnswer;
  return {
    status: known.status,
    headers: { ...answer.headers, 'Idempotency-Replayed': 'true' },
    ...(answer.type === null || answer.text === null
      ? {}
      : { content: { type: answer.type, data: answer.text } }),
  };
}

function underWay(): DomainError {
  return new DomainError(
    'idempotency_in_progress',
    'a request with this Idempotency-Key is under way; send it again in a moment to get its answer',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

/** A handler's answer as it is kept. Throws TypeError for a stream: such an endpoint ignores the header. */
function answerOf(response: EndpointResponse): KeptAnswer {
  const { status, headers = {}, body, content } = response;
  if (content) {
    if (typeof content.data !== 'string') throw new TypeError('only text is kept for repeats');
    return { status, headers, type: content.type, text: content.data };
  }
  if (body === undefined) return { status, headers, type: null, text: null };
  return { status, headers, type: 'application/json', text: JSON.stringify(body) };
}

/** A refusal as it is kept; undefined for one that is not. */
function findRefusal(thrown: unknown, requestId: string): KeptAnswer | undefined {
  if (!(thrown instanceof DomainError) || thrown.code === 'idempotency_in_progress') return undefined;
  const status = statusOf(thrown.code);
  if (!isAnswerKept(status)) return undefined;
  const { retryAfterSeconds } = thrown;
  return {
    status,
    type: 'application/problem+json',
    text: JSON.stringify(presentProblem(thrown, requestId)),
    headers: retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) },
  };
}

/** Error idempotency_in_progress when another attempt has taken this one's turn: what it did is rolled back. */
async function keep(
  { scope, deps }: KeyedRequest,
  orgDb: OrgDb,
  attempt: { id: string; fingerprint: Buffer },
  answer: KeptAnswer,
): Promise<void> {
  const isStored = await storeAnswer(orgDb, scope, {
    attemptId: attempt.id,
    fingerprint: attempt.fingerprint,
    status: answer.status,
    seal: () => deps.secretKeys.seal(JSON.stringify(answer), answerBinding(orgDb.orgId, scope)),
  });
  if (!isStored) throw underWay();
}
