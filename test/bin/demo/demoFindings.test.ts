import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { statementSection } from '../../../bin/demo/demoFindings.js';
import { centsFromPico, usdNumberFromPico } from '../../../domain/money.js';

const STATEMENT = { period: '2026-10', status: 'final' };
const VERIFIED = { HIGH: 0, MEDIUM: 0, LOW: 0, UNVERIFIED: 0 };

type Figures = Record<string, unknown>;

/** The amounts of the printed table in cents, the total last. */
function printedCents(total: Figures, providers: readonly Figures[] = [total]): bigint[] {
  const lines = statementSection({ statement: { ...STATEMENT, providers, total } });
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

  test('has the cents of the dashboard, whose rows also add up across the providers', () => {
    const figures = (list: number, contract: number, rate: number, unpriced: number, invoice: number) => ({
      list_usd: list,
      contract_discount_usd: contract,
      rate_difference_usd: rate,
      not_priced_usd: unpriced,
      credits_usd: 0,
      invoice_total_usd: invoice,
      verified_usd: VERIFIED,
      not_matched_by_calls_usd: 0,
      explained_by_findings_usd: 0,
      unexplained_usd: 0,
    });
    const providers = [
      figures(5797.38263275, 695.68591593, 123.879666279, 39.37, 5264.946383099),
      figures(3230.04677025, 0, 87.786760875, 53.5587398, 3371.392270925),
    ];
    const total = figures(9027.429403, 695.68591593, 211.666427154, 92.9287398, 8636.338654024);
    expect(printedCents(total)).toEqual([902743n, -69569n, 21167n, 9293n, 863634n]);
    expect(printedCents(total, providers)).toEqual([902743n, -69568n, 21166n, 9293n, 863634n]);
  });
});
