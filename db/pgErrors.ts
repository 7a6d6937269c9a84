import { DomainError } from '../domain/errors.js';

/** Seconds after which a caller may come back when the database was away, or its disk full. */
const RETRY_AFTER_SECONDS = 2;
const RETRY_AFTER_FULL_SECONDS = 30;

/** SQLSTATE classes and codes that pass by themselves: the same request can succeed later. */
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

/** A full disk may show as an internal error (XX000) with the operating system's words as the only reason. */
export function isStorageFull(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== 'XX000') return code === '53100';
  return error instanceof Error && /No space left on device|Disk quota exceeded/.test(error.message);
}

/**
 * A driver's failure → DomainError where it is transient: `storage_full` for a full disk, `service_unavailable`
 * for a database that is away, read-only, overloaded or too slow. Everything else comes back as it was: it is a bug.
 * The driver gives no code to a broken socket in some cases, so its sentences are read there and nowhere else.
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

/** SQLSTATE class 22 or a broken check: the same row is refused whenever it is stored. */
export function isValueRefused(error: unknown): boolean {
  const code = codeOf(error);
  return code === '23514' || (code.length === 5 && code.startsWith('22'));
}

/** SQLSTATE of a lost deadlock and of a lost serialization race: the transaction is undone, and succeeds when repeated. */
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
