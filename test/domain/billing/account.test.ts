import { describe, expect, it } from 'vitest';
import { assertAccountIn, resolveAccount } from '../../../domain/billing/billedRow.js';

describe('the account of a bill', () => {
  it('is the declared one before the one in the content, before the only known one, before default', () => {
    expect(resolveAccount('declared', 'org-1', ['known'])).toBe('declared');
    expect(resolveAccount(null, 'org-1', ['known'])).toBe('org-1');
    expect(resolveAccount(null, null, ['known'])).toBe('known');
    expect(resolveAccount(null, null, [])).toBe('default');
  });

  it('is not asked for while a file arrives that names it in every line, or that is packed', () => {
    const known = ['a', 'b'];
    for (const head of [
      'bill_payer_account_id,line_item_usage_type\n',
      'bill/PayerAccountId,lineItem/UsageType\n',
      'SubscriptionId,MeterName\n',
      'BillingAccountId,ServiceName\n',
      '{"billing_account_id":"01"',
      'PAR1\u0015',
      '\u001f\u008b\b',
      '{"organization_id":"org-1"',
    ])
      expect(() => assertAccountIn(head, known), head).not.toThrow();
    expect(() => assertAccountIn('date,model,token_class\n', known)).toThrow('known accounts');
    expect(() => assertAccountIn('date,model,token_class\n', ['a'])).not.toThrow();
  });

  it('is asked for when several are known and nothing names one', () => {
    expect(() => resolveAccount(null, null, ['a', 'b'])).toThrow(
      expect.objectContaining({ code: 'account_required' }),
    );
  });
});
