import { describe, expect, it } from 'vitest';
import { resolveAccount } from '../../../domain/billing/account.js';

describe('the account of a bill', () => {
  it('is the declared one before the one in the content, before the only known one, before default', () => {
    expect(resolveAccount('declared', 'org-1', ['known'])).toBe('declared');
    expect(resolveAccount(null, 'org-1', ['known'])).toBe('org-1');
    expect(resolveAccount(null, null, ['known'])).toBe('known');
    expect(resolveAccount(null, null, [])).toBe('default');
  });

  it('is asked for when several are known and nothing names one', () => {
    expect(() => resolveAccount(null, null, ['a', 'b'])).toThrow(
      expect.objectContaining({ code: 'account_required' }),
    );
  });
});
