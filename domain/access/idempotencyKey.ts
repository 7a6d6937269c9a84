import { invalidField } from '../errors.js';
import type { SealBinding } from '../sealer.js';

/** Hours from the first attempt for which an answer is kept for repeats. */
export const IDEMPOTENCY_HOURS = 24;

/** A bare key, or a quoted string of structured fields (RFC 8941). */
const HEADER = /^(?:"([A-Za-z0-9._:-]{1,128})"|([A-Za-z0-9._:-]{1,128}))$/;

/** Reads an Idempotency-Key header, quoted or bare. Error invalid_idempotency_key, also for a repeated header. */
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

/** Refusals that are a result of the operation; after any other refusal the operation has not begun. */
const KEPT_REFUSALS: ReadonlySet<number> = new Set([404, 409, 410, 422]);

/** Whether an answer is kept for repeats: a success or the operation's own refusal (docs/decisions/0032). */
export function isAnswerKept(status: number): boolean {
  return status < 400 || KEPT_REFUSALS.has(status);
}

/** A key is unique within these fields: another caller or operation can use the same text. */
export interface IdempotencyScope {
  apiKeyId: string;
  operation: string;
  key: string;
}

/** The binding under which a stored answer is sealed, so that only repeats of its own key can open it. */
export function answerBinding(orgId: string, { apiKeyId, operation, key }: IdempotencyScope): SealBinding {
  return { orgId, subjectId: `${apiKeyId} ${operation} ${key}`, purpose: 'idempotent-answer' };
}
