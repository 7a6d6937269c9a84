import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
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
import { answerBinding, type IdempotencyScope } from '../../domain/access/idempotencyKey.js';
import { DomainError } from '../../domain/errors.js';
import type { SecretKeys } from '../../platform/secretKeys.js';

/**
 * Lease of an attempt, seconds; it is renewed while the attempt runs, and another attempt may take over once it
 * expires.
 */
const LEASE_SECONDS = 30;
const RENEWALS_A_LEASE = 3;
const RETRY_AFTER_SECONDS = 1;

/** Runs the storing part of a request in one transaction with the answer for its repeats. */
export type Settle<R> = (work: (inside: OrgDb) => Promise<R>) => Promise<R>;

/** A stored answer; encrypted, since it may contain a secret. */
export interface KeptAnswer {
  status: number;
  type: string | null;
  text: string | null;
  headers: Readonly<Record<string, string>>;
}

/** The parts of an organization's request that identify its repeats; `R` is the answer of its handler. */
export interface RepeatableRequest<R> {
  orgDb: OrgDb;
  /** undefined: a repeat is a new request. */
  scope: IdempotencyScope | undefined;
  /** Whether the handler's statements and the answer are one transaction, or the handler runs under a lease. */
  mode: 'transaction' | 'afterwards';
  /** Digest of the request's content; undefined until a streamed body was read to its end. */
  fingerprint(): Buffer | undefined;
  /** Reads a streamed body to its end and discards it. */
  drain(): Promise<unknown>;
  run(orgDb: OrgDb, settle: Settle<R>): Promise<R>;
  /** Throws TypeError for an answer that cannot be stored, such as a stream. */
  keptAnswerOf(answer: R): KeptAnswer;
  /** The answer to an error that is the operation's result; undefined: the error is not stored. */
  keptRefusalOf(error: unknown): KeptAnswer | undefined;
  answerAgain(kept: KeptAnswer): R;
}

interface AnswerDeps {
  secretKeys: Pick<SecretKeys, 'seal' | 'open'>;
  logger: Pick<Logger, 'warn'>;
}

interface KeyedRequest<R> extends RepeatableRequest<R> {
  scope: IdempotencyScope;
  deps: AnswerDeps;
}

/**
 * The answer of a request: the handler's, or the stored one when its Idempotency-Key was answered before
 * (docs/decisions/0032). Errors: idempotency_key_reused, idempotency_in_progress, secret_key_missing, and the
 * handler's.
 */
export async function answerOnce<R>(request: RepeatableRequest<R>, deps: AnswerDeps): Promise<R> {
  const { orgDb, scope } = request;
  if (!scope) return request.run(orgDb, (work) => orgDb.transaction(work));
  const keyed = { ...request, scope, deps };
  return request.mode === 'transaction' ? answerInOneTransaction(keyed) : answerUnderLease(keyed);
}

/** Commits the handler's statements and the answer together or not at all, wherever the process ends. */
async function answerInOneTransaction<R>(request: KeyedRequest<R>): Promise<R> {
  const outcome = await request.orgDb.transaction(async (inside) => {
    const { isMine, known } = await takeIdempotencyKey(inside, request.scope);
    if (known && (known.status !== null || known.isLeased)) return { given: repeatAnswer(request, known) };
    if (!isMine) throw underWay();
    const attempted = await inside.attempt((within) => request.run(within, (work) => work(within)));
    const answer =
      'given' in attempted ? request.keptAnswerOf(attempted.given) : request.keptRefusalOf(attempted.thrown);
    if (!answer) throw 'thrown' in attempted ? attempted.thrown : new TypeError('no answer to keep');
    await keepAnswer(request, inside, randomUUID(), answer);
    return attempted;
  });
  if ('thrown' in outcome) throw outcome.thrown;
  return outcome.given;
}

/** For handlers that send requests or read a stream: a row with a lease shows that the request is in progress. */
async function answerUnderLease<R>(request: KeyedRequest<R>): Promise<R> {
  const { orgDb, scope, deps } = request;
  const attempt = { id: randomUUID(), leaseSeconds: LEASE_SECONDS };
  const fingerprint = request.fingerprint() ?? null;
  const isBegun = await beginAttempt(orgDb, scope, { ...attempt, fingerprint }).catch(
    async (error: unknown) => {
      // The row may be stored despite the error. It is released, so that no repeat waits for an attempt that never
      // began.
      await releaseAttempt(orgDb, scope, attempt.id).catch(() => undefined);
      throw error;
    },
  );
  if (!isBegun) return answerAsBefore(request);
  const renewing = setInterval(
    () => void extendLease(orgDb, scope, attempt).catch(() => undefined),
    (LEASE_SECONDS * 1_000) / RENEWALS_A_LEASE,
  ).unref();
  try {
    return await runAttempt(request, attempt.id);
  } catch (error) {
    const refusal = request.fingerprint() && request.keptRefusalOf(error);
    const ending = refusal
      ? keepAnswer(request, orgDb, attempt.id, refusal)
      : releaseAttempt(orgDb, scope, attempt.id);
    // If this fails too, the lease expires.
    await ending.catch((why: unknown) =>
      deps.logger.warn({ err: why }, 'the end of an attempt is not stored'),
    );
    throw error;
  } finally {
    clearInterval(renewing);
  }
}

async function runAttempt<R>(request: KeyedRequest<R>, attemptId: string): Promise<R> {
  const { orgDb, deps } = request;
  const keepIn = (inside: OrgDb, answer: R) =>
    keepAnswer(request, inside, attemptId, request.keptAnswerOf(answer));
  let isKept = false;
  const answer = await request.run(orgDb, async (work) => {
    const settled = await orgDb.transaction(async (inside) => {
      const given = await work(inside);
      await keepIn(inside, given);
      return given;
    });
    isKept = true;
    return settled;
  });
  // The work is stored and repeating it is harmless, so a repeat may run when this fails.
  if (!isKept)
    await keepIn(orgDb, answer).catch((why: unknown) =>
      deps.logger.warn({ err: why }, 'an answer is not stored for repeats'),
    );
  return answer;
}

/** The answer to a repeat whose Idempotency-Key another attempt holds, or held. */
async function answerAsBefore<R>(request: KeyedRequest<R>): Promise<R> {
  const known = await findKnownRequest(request.orgDb, request.scope);
  if (!known) throw underWay();
  if (known.status !== null && !request.fingerprint()) await request.drain();
  return repeatAnswer(request, known);
}

/** The stored answer. Errors: idempotency_key_reused, idempotency_in_progress, secret_key_missing. */
function repeatAnswer<R>(request: KeyedRequest<R>, known: KnownRequest): R {
  const fingerprint = request.fingerprint();
  if (known.fingerprint && fingerprint && !known.fingerprint.equals(fingerprint))
    throw new DomainError(
      'idempotency_key_reused',
      'this Idempotency-Key came with another request before; send a new key with a new request',
    );
  if (known.status === null) throw underWay();
  const binding = answerBinding(request.orgDb.orgId, request.scope);
  const text = known.ciphertext && request.deps.secretKeys.open(known.ciphertext, binding);
  if (text === null || text === undefined)
    throw new DomainError(
      'secret_key_missing',
      'this request was carried out, but its answer cannot be shown again: the key that sealed it is not at hand; look at what it made, or send a new Idempotency-Key to do it once more',
    );
  return request.answerAgain({ ...(JSON.parse(text) as KeptAnswer), status: known.status });
}

function underWay(): DomainError {
  return new DomainError(
    'idempotency_in_progress',
    'a request with this Idempotency-Key is under way; send it again in a moment to get its answer',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

/**
 * Stores the answer. Error: idempotency_in_progress when another attempt has taken over; this attempt's work is rolled
 * back.
 */
async function keepAnswer<R>(
  request: KeyedRequest<R>,
  orgDb: OrgDb,
  attemptId: string,
  answer: KeptAnswer,
): Promise<void> {
  const { scope, deps } = request;
  const fingerprint = request.fingerprint();
  if (!fingerprint) throw new TypeError(`${scope.operation} has not read its body`);
  const { status } = answer;
  const isStored = await orgDb.transaction((inside) =>
    storeAnswer(inside, scope, {
      attemptId,
      fingerprint,
      status,
      seal: () => deps.secretKeys.seal(JSON.stringify(answer), answerBinding(orgDb.orgId, scope)),
    }),
  );
  if (!isStored) throw underWay();
}
