import { DomainError } from '../domain/errors.js';

/** Retry-After, seconds, when the database was unreachable or its disk full. */
const RETRY_AFTER_SECONDS = 2;
const RETRY_AFTER_FULL_SECONDS = 30;

/** Temporary SQLSTATE classes and codes: the same request can succeed later. */
const TRANSIENT_CLASSES = new Set(['08', '57', '40']);
const TRANSIENT_CODES = new Set(['53300', '53200', '53400', '55P03', '25006', '57014']);
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
]);
const DRIVER_TEXTS =
  /^timeout expired$|Connection terminated|connection timeout|timeout exceeded when trying to connect|Client has encountered a connection error|not queryable/i;

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

/** A full disk may appear as an internal error (XX000) whose only reason is the operating system's message. */
export function isStorageFull(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== 'XX000') return code === '53100';
  return error instanceof Error && /No space left on device|Disk quota exceeded/.test(error.message);
}

/**
 * Converts temporary driver failures to DomainError: `storage_full` for a full disk, `service_unavailable` for a
 * database that is unreachable, read-only, overloaded or too slow. Any other failure is returned unchanged: it is a
 * bug. The driver sometimes gives a broken socket no code, so only this place reads its messages.
 */
export function translatePgError(error: unknown): unknown {
  if (error instanceof DomainError) return error;
  const code = codeOf(error);
  if (isStorageFull(error)) {
    return new DomainError(
      'storage_full',
      'The database has no space left; nothing was stored. Try again later.',
      {
        retryAfterSeconds: RETRY_AFTER_FULL_SECONDS,
        cause: error,
      },
    );
  }
  const name = error instanceof Error ? error.name : '';
  const message = error instanceof Error ? error.message : '';
  const transient =
    TRANSIENT_CODES.has(code) ||
    (code.length === 5 && TRANSIENT_CLASSES.has(code.slice(0, 2))) ||
    SOCKET_CODES.has(code) ||
    name === 'KnexTimeoutError' ||
    name === 'AggregateError' ||
    DRIVER_TEXTS.test(message);
  if (!transient) return error;
  return new DomainError('service_unavailable', 'The database cannot take the request now. Try again.', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause: error,
  });
}

/** SQLSTATE of a statement that was refused because an earlier one of its transaction had failed. */
const IN_FAILED_TRANSACTION = '25P02';

/**
 * Whether a failure is that of one statement or of the work around it, so that other work could have succeeded on the
 * same connection: not a lost connection, a server that stops, a full disk, or the failure of an earlier statement.
 */
export function isOfOneStatement(error: unknown): boolean {
  const code = codeOf(error);
  if (code === IN_FAILED_TRANSACTION || isStorageFull(error)) return false;
  if (error instanceof DomainError) return true;
  if (CONFLICT_CODES.has(code) || code === '55P03' || code === '57014') return true;
  return !(translatePgError(error) instanceof DomainError);
}

/** SQLSTATE class 22 or a failed check: the same row is refused at every attempt. */
export function isValueRefused(error: unknown): boolean {
  const code = codeOf(error);
  return code === '23514' || (code.length === 5 && code.startsWith('22'));
}

/** SQLSTATE of a unique violation: a row has the key. */
export function isKeyTaken(error: unknown): boolean {
  return codeOf(error) === '23505';
}

/** SQLSTATE of a deadlock and a serialization failure: the transaction is rolled back, and succeeds when repeated. */
const CONFLICT_CODES = new Set(['40P01', '40001']);
const REPEATS_MAX = 5;

export async function repeatOnConflict<T>(work: () => Promise<T>, repeatsMax = REPEATS_MAX): Promise<T> {
  for (let repeat = 0; ; repeat += 1) {
    try {
      return await work();
    } catch (error) {
      const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined;
      if (repeat >= repeatsMax || !CONFLICT_CODES.has(cause?.code ?? '')) throw error;
    }
  }
}
