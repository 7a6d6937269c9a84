import { DomainError } from '../errors.js';

/** The account of a bill that names none, while no other is known; the first connection of the provider takes it over. */
export const DEFAULT_ACCOUNT = 'default';

/**
 * Whose bill it is (decisions.md 116): as declared, else as the content says, else the provider's only known
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
