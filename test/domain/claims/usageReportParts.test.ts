import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withUsageReportParts } from '../../../domain/claims/evidence/claimCsv.js';
import type { EvidenceCell } from '../../../domain/claims/evidence/claimEvidence.js';

const ROWS = [{ page: 'pages/002-usage.json', document: 0, at: '/data/0/results/0', quantity: [] }];

/** A line whose usage report counts `total`. */
const line = (parts: object): EvidenceCell =>
  ({
    ...{ dispute_id: 'dsp_1', day: '2026-10-06', token_class: 'output', observed_quantity: null },
    ...{ usage_report_rows: ROWS },
    ...parts,
  }) as unknown as EvidenceCell;

const partsOf = (cells: readonly EvidenceCell[]) =>
  withUsageReportParts(cells).map(({ usage_report_quantity, usage_report_total_quantity }) => [
    usage_report_quantity,
    usage_report_total_quantity,
  ]);

describe('the parts of a usage report', () => {
  it('are what the calls show on each line where the calls account for the whole report', () => {
    const total = { usage_report_quantity: '2654643' };
    const cells = [
      line({ billed_quantity: '4950486', observed_quantity: '2475243', ...total }),
      line({ billed_quantity: '358800', observed_quantity: '179400', ...total }),
    ];
    expect(partsOf(cells)).toEqual([
      ['2475243', '2654643'],
      ['179400', '2654643'],
    ]);
  });

  it('are in proportion to the bill where calls are missing', () => {
    const total = { usage_report_quantity: '2654643' };
    const cells = [
      line({ billed_quantity: '4950486', observed_quantity: '2000000', ...total }),
      line({ billed_quantity: '358800', observed_quantity: '0', ...total }),
    ];
    expect(partsOf(cells).map(([part]) => part)).toEqual(['2475243', '179400']);
  });

  it('are the whole count of a line that shares its rows with no other', () => {
    const other = { token_class: 'input', billed_quantity: '10', usage_report_quantity: '6' };
    const cells = [line({ billed_quantity: '8', usage_report_quantity: '4' }), line(other)];
    expect(partsOf(cells)).toEqual([
      ['4', '4'],
      ['6', '6'],
    ]);
  });

  it('stay absent where no report counts the line, and unchanged where they are known', () => {
    const cells = [
      line({ usage_report_quantity: null }),
      line({ usage_report_quantity: '3', usage_report_total_quantity: '5' }),
    ];
    expect(partsOf(cells)).toEqual([
      [null, null],
      ['3', '5'],
    ]);
  });

  it('add up to the count of the report, whatever is billed and observed', () => {
    const quantity = fc.nat(1_000_000).map(String);
    const lines = fc.array(fc.record({ billed_quantity: quantity, observed_quantity: quantity }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(lines, quantity, fc.constantFrom('', '.5'), (some, whole, fraction) => {
        const total = `${whole}${fraction}`;
        const parts = partsOf(some.map((one) => line({ ...one, usage_report_quantity: total })));
        const numbers = parts.map(([part]) => Number(part));
        expect(numbers.reduce((sum, one) => sum + one, 0)).toBe(Number(total));
        expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
