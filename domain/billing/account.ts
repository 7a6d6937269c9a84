import { DomainError } from '../errors.js';

/** The account of a bill that names none, while no other is known; the first connection of the provider takes it over. */
export const DEFAULT_ACCOUNT = 'default';

/**
 * Whose bill it is: as declared, else as the content says, else the provider's only known
 * account, else `default`. Error account_required when several are known and nothing names one.
 */
export function resolveAccount(
  declared: string | null,
  fromContent: string | null,
  known: readonly string[],
): string {
  if (declared !== null && declared !== '') return declared;
  if (fromContent !== null && fromContent !== '') return fromContent;
  if (known.length > 1) {
    throw new DomainError(
      'account_required',
      `the provider has ${known.length} known accounts and the file names none; say whose bill it is in the field account`,
      {
        issues: [{ in: 'body', field: 'account', message: `name one, e.g. ${known.slice(0, 3).join(', ')}` }],
      },
    );
  }
  return known[0] ?? DEFAULT_ACCOUNT;
}

/** How OpenAI's results name their organization. */
const ORGANIZATION_IN_PAGE = /"organization_id"\s*:\s*"([^"\\]{1,512})"/;

/** Columns and fields by which the exports of clouds name the account in every line. */
const ACCOUNT_IN_EVERY_LINE =
  /bill_payer_account_id|bill\/PayerAccountId|subscription_?(?:id|guid)|billing_?account_?id/i;
/** How Parquet and gzip begin: what they hold is not seen yet. */
const PACKED_BEGINNINGS = ['PAR1', '\u001f\u008b'];

/**
 * Refuses a bill, of which only the beginning has been looked at, that nothing in it says whose it is; `head` is its
 * first bytes as latin1. Reading it as a whole has the last word. Error account_required as `resolveAccount`.
 */
export function assertAccountIn(head: string, known: readonly string[]): void {
  if (PACKED_BEGINNINGS.some((beginning) => head.startsWith(beginning))) return;
  if (ACCOUNT_IN_EVERY_LINE.test(head)) return;
  resolveAccount(null, ORGANIZATION_IN_PAGE.exec(head)?.[1] ?? null, known);
}
