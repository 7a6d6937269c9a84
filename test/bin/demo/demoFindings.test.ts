import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { statementSection } from '../../../bin/demo/demoFindings.js';
import { centsFromPico, usdNumberFromPico } from '../../../domain/money.js';

const STATEMENT = { period: '2026-10', status: 'final' };
const VERIFIED = { HIGH: 0, MEDIUM: 0, LOW: 0, UNVERIFIED: 0 };

/** The amounts of the printed table in cents, the total last. */
function printedCents(total: Record<string, unknown>): bigint[] {
  const lines = statementSection({ statement: { ...STATEMENT, total } });
  return lines
    .flatMap((line) => /(-?[\d,]+)\.(\d\d)$/.exec(line) ?? [])
    .filter((_, at) => at % 3 === 0)
    .map((text) => BigInt(text.replace(/[,.]/g, '')));
}

describe('the statement of the demo', () => {
  const amount = fc.bigInt({ min: 0n, max: 10n ** 16n }).map((pico) => pico * 10n);

  test('has rows in cents that add up to the invoice total, rounded once', () => {
    fc.assert(
      fc.property(fc.tuple(amount, amount, amount, amount, amount, amount), (exact) => {
        const [list, contract, rate, unpriced, credits, tax] = exact;
        const invoice = list - contract + rate + unpriced - credits + tax;
        const [listUsd, contractUsd, rateUsd, unpricedUsd, creditsUsd, invoiceUsd] = [
          list,
          contract,
          rate,
          unpriced,
          -credits,
          invoice,
        ].map(usdNumberFromPico);
        const printed = printedCents({
          list_usd: listUsd,
          contract_discount_usd: contractUsd,
          rate_difference_usd: rateUsd,
          not_priced_usd: unpricedUsd,
          credits_usd: creditsUsd,
          invoice_total_usd: invoiceUsd,
          verified_usd: VERIFIED,
          not_matched_by_calls_usd: 0,
          explained_by_findings_usd: 0,
          unexplained_usd: 0,
        });
        const total = printed.at(-1);
        expect(total).toBe(centsFromPico(invoice));
        expect(printed.slice(0, -1).reduce((sum, cents) => sum + cents, 0n)).toBe(total);
      }),
    );
  });
});
