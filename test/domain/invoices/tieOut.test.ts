import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BilledSum, PeerInvoice, TieOutInput, TieOutLine } from '../../../domain/invoices/tieOut.js';
import { tieOut } from '../../../domain/invoices/tieOut.js';

const CENT = 10_000_000_000n;
const usd = (dollars: number): bigint => BigInt(Math.round(dollars * 100)) * CENT;

function aLine(change: Partial<TieOutLine> = {}): TieOutLine {
  return {
    ...{ line: 1, kind: 'usage', description: 'GPT-5.6 input tokens', model: 'gpt-5.6', tokenClass: 'input' },
    ...{ quantity: null, unitPrice: null, amount: usd(100), fromDay: '2026-08-01', toDay: '2026-08-31' },
    ...change,
  };
}

function aRow(change: Partial<BilledSum> = {}): BilledSum {
  return {
    ...{ accountId: 'acct', day: '2026-08-03', category: 'usage', model: 'gpt-5.6', tokenClass: 'input' },
    ...{ amount: usd(100), quantity: null },
    ...change,
  };
}

function anInput(
  change: Partial<Omit<TieOutInput, 'bill'>> & { rows?: BilledSum[]; missingDays?: string[] } = {},
) {
  const { rows = [aRow()], missingDays = [], ...rest } = change;
  return {
    ...{ number: 'A-2', fromDay: '2026-08-01', toDay: '2026-08-31', lines: [aLine()], discounts: 0n },
    ...{ observed: [], peers: [], bill: { rows, missingDays } },
    ...rest,
  } satisfies TieOutInput;
}

const aPeer = (change: Partial<PeerInvoice> = {}): PeerInvoice => ({
  ...{
    id: 'peer',
    number: 'A-1',
    fromDay: '2026-08-01',
    toDay: '2026-08-31',
    usage: usd(100),
    repeated: 0n,
    isEarlier: true,
  },
  ...change,
});

describe('the total', () => {
  test('an invoice that charges what the bill says ties exactly', () => {
    const { tie, difference, contradictions } = tieOut(anInput());
    expect({ tie, difference, contradictions }).toEqual({ tie: 'exact', difference: 0n, contradictions: [] });
  });

  test('half a cent for each printed amount is rounding', () => {
    const lines = [aLine(), aLine({ line: 2, tokenClass: 'output', amount: usd(50) })];
    const rows = [
      aRow({ amount: usd(100) + CENT / 2n }),
      aRow({ tokenClass: 'output', amount: usd(50) + CENT / 2n }),
    ];
    expect(tieOut(anInput({ lines, rows })).tie).toBe('exact');
  });

  test('a difference of less than a thousandth is close and of more contradicts', () => {
    expect(tieOut(anInput({ lines: [aLine({ amount: usd(100.09) })] })).tie).toBe('close');
    expect(tieOut(anInput({ lines: [aLine({ amount: usd(100.11) })] })).tie).toBe('contradicts');
  });

  test('without a bill and with days missing from it nothing is compared', () => {
    expect(tieOut(anInput({ rows: [] })).reason).toBe('no_bill');
    const { tie, reason, contradictions } = tieOut(
      anInput({ lines: [aLine({ amount: usd(500) })], missingDays: ['2026-08-09'] }),
    );
    expect({ tie, reason, contradictions }).toEqual({
      ...{ tie: 'not_comparable', reason: 'incomplete_bill', contradictions: [] },
    });
  });

  test('a bill of usage after discounts ties with the invoice after discounts', () => {
    const input = anInput({ discounts: -usd(10), rows: [aRow({ amount: usd(90) })] });
    expect(tieOut(input).tie).toBe('exact');
  });

  test('seats and credit that is bought ahead are no usage and are on no usage bill', () => {
    const lines = [
      aLine(),
      aLine({ line: 2, kind: 'subscription', amount: usd(25) }),
      aLine({ line: 3, kind: 'prepaid_purchase', amount: usd(500) }),
    ];
    const { tie, lines: tied } = tieOut(anInput({ lines }));
    expect(tie).toBe('exact');
    expect(tied.map(({ status }) => status)).toEqual(['matched', 'not_billed_by_api', 'not_billed_by_api']);
  });
});

describe('lines', () => {
  test('a line that names more takes its rows before one that names less', () => {
    const lines = [
      aLine({ description: 'Other usage', model: null, tokenClass: null, amount: usd(7) }),
      aLine({ line: 2, tokenClass: null, amount: usd(30) }),
      aLine({ line: 3, amount: usd(100) }),
    ];
    const rows = [
      aRow(),
      aRow({ tokenClass: 'output', amount: usd(30) }),
      aRow({ model: 'gpt-5.6-luna', amount: usd(7) }),
    ];
    const { lines: tied, tie } = tieOut(anInput({ lines, rows }));
    expect(tie).toBe('exact');
    expect(tied.map(({ line, status, billed }) => [line, status, billed])).toEqual([
      [1, 'matched', usd(7)],
      [2, 'matched', usd(30)],
      [3, 'matched', usd(100)],
    ]);
  });

  test('a line is compared with the rows of its own days', () => {
    const lines = [
      aLine({ toDay: '2026-08-15', amount: usd(40) }),
      aLine({ line: 2, fromDay: '2026-08-16', amount: usd(60) }),
    ];
    const rows = [aRow({ amount: usd(40) }), aRow({ day: '2026-08-20', amount: usd(60) })];
    const { lines: tied } = tieOut(anInput({ lines, rows }));
    expect(tied.map(({ status }) => status)).toEqual(['matched', 'matched']);
  });

  test('a line with a quantity shows the tokens of our calls', () => {
    const observed = [
      { day: '2026-08-03', model: 'gpt-5.6', tokenClass: 'input' as const, tokens: 7n },
      { day: '2026-09-01', model: 'gpt-5.6', tokenClass: 'input' as const, tokens: 9n },
    ];
    const [line] = tieOut(anInput({ lines: [aLine({ quantity: 8n })], observed })).lines;
    expect(line?.observedTokens).toBe(7n);
  });
});

describe('contradictions', () => {
  test('a line that stands twice is a duplicate charge of exactly its amount', () => {
    const lines = [aLine(), aLine({ line: 2 })];
    const { tie, contradictions, lines: tied } = tieOut(anInput({ lines }));
    expect(tie).toBe('contradicts');
    expect(tied.map(({ status }) => status)).toEqual(['matched', 'unmatched']);
    expect(contradictions).toMatchObject([
      { kind: 'duplicate_charge', lines: [1, 2], charged: usd(100), right: 0n },
    ]);
  });

  test('two equal lines that the bill has twice are no duplicate', () => {
    const lines = [aLine(), aLine({ line: 2 })];
    expect(tieOut(anInput({ lines, rows: [aRow({ amount: usd(200) })] })).contradictions).toEqual([]);
  });

  test('what repeated lines do not explain is a mismatch of the total', () => {
    const lines = [aLine(), aLine({ line: 2 }), aLine({ line: 3, tokenClass: 'output', amount: usd(60) })];
    const rows = [aRow(), aRow({ tokenClass: 'output', amount: usd(50) })];
    const { contradictions, difference } = tieOut(anInput({ lines, rows }));
    expect(contradictions.map(({ kind, charged, right }) => [kind, charged - right])).toEqual([
      ['duplicate_charge', usd(100)],
      ['invoice_total_mismatch', usd(10)],
    ]);
    expect(difference).toBe(usd(110));
  });

  test('an invoice over days that an earlier one charged in full counts the period twice', () => {
    const { tie, contradictions } = tieOut(anInput({ peers: [aPeer()] }));
    expect(tie).toBe('contradicts');
    expect(contradictions).toMatchObject([{ kind: 'period_double_count', charged: usd(100), right: 0n }]);
  });

  test('the earlier of the two ties', () => {
    const later = aPeer({ number: 'A-3', isEarlier: false });
    expect(tieOut(anInput({ peers: [later] })).tie).toBe('exact');
  });

  test('an invoice with a line twice and a second invoice of the same days are two mistakes', () => {
    const lines = [aLine(), aLine({ line: 2, tokenClass: 'output', amount: usd(50) })];
    const rows = [aRow(), aRow({ tokenClass: 'output', amount: usd(50) })];
    const again = aLine({ line: 3, tokenClass: 'output', amount: usd(50) });
    const first = tieOut(
      anInput({ lines: [...lines, again], rows, peers: [aPeer({ usage: usd(150), isEarlier: false })] }),
    );
    expect(first.contradictions).toMatchObject([{ kind: 'duplicate_charge', charged: usd(50) }]);
    const second = tieOut(anInput({ lines, rows, peers: [aPeer({ usage: usd(200), repeated: usd(50) })] }));
    expect(second.contradictions).toMatchObject([{ kind: 'period_double_count', charged: usd(150) }]);
  });

  test('invoices that share a period tie by their sum', () => {
    const input = anInput({ peers: [aPeer({ usage: usd(50) })], rows: [aRow({ amount: usd(150) })] });
    const { tie, lines } = tieOut(input);
    expect([tie, lines[0]?.status, lines[0]?.billed]).toEqual(['exact', 'matched', usd(100)]);
  });

  test('of invoices that share a period the last one carries the difference', () => {
    const rows = [aRow({ amount: usd(140) })];
    const last = tieOut(anInput({ peers: [aPeer({ usage: usd(50) })], rows }));
    expect([last.tie, last.difference]).toEqual(['contradicts', usd(10)]);
    const first = tieOut(anInput({ peers: [aPeer({ usage: usd(50), isEarlier: false })], rows }));
    expect([first.tie, first.reason]).toEqual(['not_comparable', 'shared_period']);
  });
});

const amounts = fc.array(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 1, maxLength: 12 });

test('contradictions sum to the difference, and lines and rows to the same totals', () => {
  fc.assert(
    fc.property(amounts, amounts, (invoiced, billed) => {
      const lines = invoiced.map((cents, at) => aLine({ line: at + 1, amount: BigInt(cents) * CENT }));
      const rows = billed.map((cents) => aRow({ amount: BigInt(cents) * CENT }));
      const result = tieOut(anInput({ lines, rows }));
      const sum = (values: (bigint | null)[]) =>
        values.reduce<bigint>((total, value) => total + (value ?? 0n), 0n);
      const explained = sum(result.contradictions.map(({ charged, right }) => charged - right));
      if (result.tie === 'exact') expect(result.contradictions).toEqual([]);
      else expect(explained).toBe(result.difference);
      expect(sum(result.lines.map(({ billed: part }) => part))).toBe(sum(rows.map(({ amount }) => amount)));
    }),
  );
});
