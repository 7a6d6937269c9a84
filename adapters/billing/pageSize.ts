import { DomainError } from '../../domain/errors.js';

/** A page that is larger than one may be; fewer buckets may fit. */
export class PageTooLarge extends DomainError {
  constructor(name: string, bytesMax: number) {
    super('provider_answer_unreadable', `${name} answered with more than ${bytesMax} bytes for one page`);
  }
}

/** Of two tries the second asks for so many times fewer buckets. */
const SHRINK = 6;
/** A page token of ours: the number of buckets that fitted, and the provider's own token. */
const SMALLER = /^<(\d{1,4})>(.*)$/s;

interface Page {
  nextCursor: string | null;
}

/**
 * Asks for a page of `bucketsMax` buckets, and for fewer where so many are too large for one answer: an account with
 * thousands of keys. The number that fitted goes along in the cursor, so the pages behind ask for as many at once.
 * Error PageTooLarge where a single bucket does not fit.
 */
export async function askInPages<T extends Page>(
  bucketsMax: number,
  cursor: string | null,
  ask: (limit: number, cursor: string | null) => Promise<T>,
): Promise<T> {
  const [, fitted, token] = SMALLER.exec(cursor ?? '') ?? [];
  let limit = fitted === undefined ? bucketsMax : Math.min(bucketsMax, Number(fitted));
  for (;;) {
    try {
      const page = await ask(limit, token ?? cursor);
      const isSmaller = limit < bucketsMax && page.nextCursor !== null;
      return isSmaller ? { ...page, nextCursor: `<${limit}>${page.nextCursor}` } : page;
    } catch (error) {
      if (!(error instanceof PageTooLarge) || limit === 1) throw error;
      limit = Math.max(1, Math.floor(limit / SHRINK));
    }
  }
}
