import { expect, test } from 'vitest';
import { type ConfirmedInvoice, findingsOfInvoice } from '../../../domain/invoices/invoiceFindings.js';
import type { InvoiceCheck } from '../../../domain/invoices/invoiceReading.js';
import type { TieOut } from '../../../domain/invoices/tieOut.js';
import { reasonOf } from '../../../domain/reconciliation/engine/index.js';

const USD = 1_000_000_000_000n;

const aTie = (change: Partial<TieOut> = {}): TieOut => ({
  ...{ tie: 'contradicts', reason: null, invoiced: 200n * USD, billed: 100n * USD, difference: 100n * USD },
  ...{ lines: [], contradictions: [] },
  ...change,
});
const anInvoice = (change: Partial<ConfirmedInvoice> = {}): ConfirmedInvoice => ({
  ...{ provider: 'openai', accountId: 'org-1', number: 'A-7', day: '2026-08-31', tieOut: aTie(), checks: [] },
  ...{ comparedRate: USD, ownRate: USD, isProvisional: false, weightSet: '1' },
  ...change,
});
const aCheck = (change: Partial<InvoiceCheck> = {}): InvoiceCheck => ({
  ...{ check: 'tax', line: null, ok: false, expected: 20n * USD, found: 25n * USD, difference: 5n * USD },
  message: 'VAT: the tax is 20.00, not 25.00.',
  ...change,
});
const repeated = {
  ...{ kind: 'duplicate_charge' as const, lines: [3, 4], model: 'gpt-5.6', charged: 100n * USD, right: 0n },
  cause: 'Line 4 repeats line 3 of the invoice, and the provider’s own bill has the charge once.',
};

test('a repeated line is a claimable overcharge of the last day of the period, to the cent', () => {
  const [finding] = findingsOfInvoice(anInvoice({ tieOut: aTie({ contradictions: [repeated] }) }));
  expect(finding).toMatchObject({
    ...{
      kind: 'duplicate_charge',
      variant: 'invoice A-7 line 4',
      grade: 'HIGH',
      claimable: true,
      model: 'gpt-5.6',
    },
    ...{ impactPico: 100n * USD, recoverablePico: 100n * USD },
  });
  expect(finding && reasonOf(finding, finding.days)).toBe(
    'Line 4 repeats line 3 of the invoice, and the provider’s own bill has the charge once. The bill is $100.00 too much on 2026-08-31.',
  );
});

test('what is close to the bill, or was not compared with one, accuses nobody', () => {
  for (const tie of ['close', 'exact', 'not_comparable'] as const)
    expect(findingsOfInvoice(anInvoice({ tieOut: aTie({ tie, contradictions: [repeated] }) }))).toEqual([]);
});

test('wrong tax is a finding in dollars at the invoice’s rate', () => {
  const [finding] = findingsOfInvoice(
    anInvoice({ tieOut: aTie({ tie: 'exact' }), checks: [aCheck()], ownRate: (USD * 11n) / 10n }),
  );
  expect([finding?.kind, finding?.impactPico]).toEqual(['tax_or_fx_error', (55n * USD) / 10n]);
});

test('a wrong product of a line counts only where no bill was there to compare it with', () => {
  const checks = [aCheck({ check: 'quantity_times_unit_price', line: 2 })];
  expect(findingsOfInvoice(anInvoice({ tieOut: aTie({ tie: 'exact' }), checks }))).toEqual([]);
  const alone = findingsOfInvoice(anInvoice({ tieOut: aTie({ tie: 'not_comparable' }), checks }));
  expect(alone.map(({ kind, impactPico }) => [kind, impactPico])).toEqual([
    ['invoice_total_mismatch', 5n * USD],
  ]);
});

test('a sum that charges too little is netted and never claimed', () => {
  const checks = [aCheck({ check: 'total', expected: 25n * USD, found: 20n * USD, difference: -5n * USD })];
  const [finding] = findingsOfInvoice(anInvoice({ tieOut: aTie({ tie: 'exact' }), checks }));
  expect(finding).toMatchObject({ direction: 'undercharge', claimable: false, recoverablePico: 0n });
});

test('a bill that may still be restated leaves its findings provisional', () => {
  const [finding] = findingsOfInvoice(
    anInvoice({ tieOut: aTie({ contradictions: [repeated] }), isProvisional: true }),
  );
  expect([finding?.provisional, finding?.missing]).toEqual([true, ['closed_period']]);
});
