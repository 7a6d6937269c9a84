import { invalidField } from '../errors.js';
import type { SealBinding } from '../sealer.js';

/** How long an answer is kept for repeats of its request, hours from the first attempt. */
export const IDEMPOTENCY_HOURS = 24;

/** A key as it is sent: bare, or as a string of structured fields (RFC 8941), which is quoted. */
const HEADER = /^(?:"([A-Za-z0-9._:-]{1,128})"|([A-Za-z0-9._:-]{1,128}))$/;

/** The key of an Idempotency-Key header, quoted or bare. Error invalid_idempotency_key, also for a repeated header. */
export function parseIdempotencyKey(header: string): string {
  const [, quoted, bare] = HEADER.exec(header) ?? [];
  const key = quoted ?? bare;
  if (key !== undefined) return key;
  throw invalidField(
    'header',
    'idempotency-key',
    'must be 1 to 128 characters of A-Z, a-z, 0-9, ".", "_", ":" and "-", such as a UUID, quoted or bare, given once',
    'invalid_idempotency_key',
  );
}

/** Refusals that are the operation's result; others say that it has not begun. */
const KEPT_REFUSALS: ReadonlySet<number> = new Set([404, 409, 410, 422]);

/** Whether an answer is kept for repeats: a success or the operation's own refusal (docs/decisions/0032). */
export function isAnswerKept(status: number): boolean {
  return status < 400 || KEPT_REFUSALS.has(status);
}

/** Where a key counts: the same text of another caller, or for another operation, is another key. */
export interface IdempotencyScope {
  apiKeyId: string;
  operation: string;
  key: string;
}

/** What a stored answer is sealed for: the one key whose repeats it answers. */
export function answerBinding(orgId: string, { apiKeyId, operation, key }: IdempotencyScope): SealBinding {
  return { orgId, subjectId: `${apiKeyId} ${operation} ${key}`, purpose: 'idempotent-answer' };
}
