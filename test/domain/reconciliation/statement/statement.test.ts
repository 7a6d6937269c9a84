import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHARGE_CATEGORIES } from '../../../../domain/billing/billedRow.js';
import { PICO_PER_USD } from '../../../../domain/money.js';
import { dayOf, MICROS_PER_DAY, microsOfDay } from '../../../../domain/period.js';
import { OTHER_LABELS } from '../../../../domain/reconciliation/audit/audit.js';
import { BUCKET_REASONS, GRADES } from '../../../../domain/reconciliation/matching/cells.js';
import { chargesOfDay } from '../../../../domain/reconciliation/matching/charges.js';
import {
  buildStatement,
  NOT_PRICED_LABELS_MAX,
  STATEMENT_LINES,
  STATEMENT_SECTIONS,
  type StatementInput,
  type StatementSection,
  type StatementTotal,
} from '../../../../domain/reconciliation/statement/statement.js';
import {
  type ComparedBucket,
  type CountedCopy,
  explainedByFindingsOf,
  type StatementFigures,
} from '../../../../domain/reconciliation/statement/statementFigures.js';
import { billedCells, usageCells } from '../arbitraries.js';
import { aBilledCell, BOOK, usd } from '../support.js';

const FIRST_DAY = '2026-10-01';
const AFTER = microsOfDay('2026-11-20');

function aTotal(over: Partial<StatementTotal> = {}): StatementTotal {
  return {
    provider: 'openai',
    accountId: 'acct',
    day: '2026-10-05',
    chargeCategory: 'usage',
    amountPico: usd('10'),
    ...over,
  };
}

function aBucket(over: Partial<ComparedBucket> = {}): ComparedBucket {
  return {
    provider: 'openai',
    accountId: 'acct',
    day: '2026-10-05',
    grade: 'HIGH',
    reason: null,
    providerCostPico: usd('10'),
    matchedPico: usd('10'),
    ratePico: 0n,
    ...over,
  };
}

function aCopy(over: Partial<CountedCopy> = {}): CountedCopy {
  return {
    provider: 'openai',
    accountId: 'acct',
    day: '2026-10-05',
    sourceId: '00000000-0000-7000-8000-000000000001',
    kind: 'file',
    name: 'costs.json',
    toldAtMicros: AFTER,
    provisionalDays: 2,
    closesWithMonth: false,
    ...over,
  };
}

/** Copies of every day of the month. */
const wholeMonth = (over: Partial<CountedCopy> = {}): CountedCopy[] =>
  Array.from({ length: 31 }, (_, at) =>
    aCopy({ day: dayOf(microsOfDay(FIRST_DAY) + BigInt(at) * MICROS_PER_DAY), ...over }),
  );

function statement(over: Partial<StatementInput> = {}) {
  return buildStatement({
    firstDay: FIRST_DAY,
    nowMicros: AFTER,
    totals: [aTotal()],
    frozen: null,
    charges: [],
    compared: [],
    copies: [aCopy()],
    found: [],
    asked: [],
    accounts: [{ provider: 'openai', accountId: 'acct' }],
    ...over,
  });
}

/** The sections of figures whose items do not sum to the footing. */
function unfooted(figures: StatementFigures): StatementSection[] {
  return STATEMENT_SECTIONS.filter((section) => {
    const lines = STATEMENT_LINES.filter((line) => line.section === section);
    const items = lines
      .filter(({ kind }) => kind === 'item')
      .reduce((sum, line) => sum + line.amount(figures), 0n);
    return lines.some(({ kind, amount }) => kind === 'footing' && amount(figures) !== items);
  });
}

const chargesOf = (billed: Parameters<typeof chargesOfDay>[2]) => [
  {
    provider: 'openai',
    charges: chargesOfDay('openai', '2026-10-05', billed, [], { agreed: BOOK, list: BOOK }),
  },
];

describe('the price of a month', () => {
  it('is list, less discounts, plus what was charged above the agreed rate', () => {
    const billed = [aBilledCell({ isBatch: false, amountPico: usd('3.5') })];
    const { total } = statement({ totals: [aTotal({ amountPico: usd('3.5') })], charges: chargesOf(billed) });
    expect(total).toMatchObject({
      listPico: usd('2'),
      contractDiscountPico: 0n,
      rateDifferencePico: usd('1.5'),
      notPricedPico: 0n,
    });
  });

  it('takes the list price on the bill where no other source has one', () => {
    const fee = { model: null, observable: false, lineItem: 'hosting', quantity: null };
    const billed = [aBilledCell({ ...fee, amountPico: usd('4'), listAmountPico: usd('5') })];
    expect(statement({ charges: chargesOf(billed) }).total).toMatchObject({
      listPico: usd('5'),
      otherDiscountPico: usd('1'),
    });
  });

  it('names what it cannot price, and never takes it for list', () => {
    const billed = [
      aBilledCell({ model: null, observable: false, lineItem: 'file search', amountPico: usd('4') }),
      aBilledCell({ model: 'gpt-unheard-of', isBatch: false, amountPico: usd('6') }),
    ];
    const { total, notPriced } = statement({ charges: chargesOf(billed) });
    expect(total).toMatchObject({ listPico: 0n, notPricedPico: usd('10') });
    expect(notPriced.map(({ label, reason, billedPico }) => [label, reason, billedPico])).toEqual([
      ['gpt-unheard-of', 'no_price', usd('6')],
      ['file search', 'not_observable', usd('4')],
    ]);
  });

  it('names so many labels, the largest, and adds up the others', () => {
    const billed = Array.from({ length: NOT_PRICED_LABELS_MAX + 3 }, (_, at) =>
      aBilledCell({ model: null, observable: false, lineItem: `fee ${at}`, amountPico: BigInt(at + 1) }),
    );
    const { total, notPriced } = statement({ charges: chargesOf(billed) });
    expect(notPriced).toHaveLength(NOT_PRICED_LABELS_MAX + 1);
    expect(notPriced[0]).toMatchObject({ label: `fee ${NOT_PRICED_LABELS_MAX + 2}` });
    expect(notPriced.at(-1)).toMatchObject({ label: OTHER_LABELS, billedPico: 6n, reason: 'not_observable' });
    expect(notPriced.reduce((sum, { billedPico }) => sum + billedPico, 0n)).toBe(total.notPricedPico);
  });

  it('keeps free usage beside the sums: it is no discount', () => {
    const billed = [aBilledCell({ isBatch: false, amountPico: 0n })];
    expect(
      statement({ totals: [aTotal({ amountPico: 0n })], charges: chargesOf(billed) }).total,
    ).toMatchObject({
      listPico: 0n,
      freeAllowancePico: usd('2'),
    });
  });
});

describe('the explained part of a month', () => {
  it('is what calls verify, by grade, and what the rest is', () => {
    const { total } = statement({
      totals: [aTotal({ amountPico: usd('61') }), aTotal({ day: '2026-10-06', amountPico: usd('7') })],
      compared: [
        aBucket(),
        aBucket({ grade: 'MEDIUM', matchedPico: usd('8'), ratePico: usd('1.5') }),
        aBucket({
          grade: 'UNVERIFIED',
          matchedPico: 0n,
          reason: 'not_observable',
          providerCostPico: usd('5'),
        }),
        aBucket({
          grade: 'UNVERIFIED',
          matchedPico: 0n,
          reason: 'free_allowance',
          providerCostPico: usd('3'),
        }),
        aBucket({
          grade: 'UNVERIFIED',
          matchedPico: 0n,
          reason: 'not_yet_observed',
          providerCostPico: usd('12'),
        }),
        aBucket({
          grade: 'LOW',
          matchedPico: usd('1'),
          reason: 'unparsed_line',
          providerCostPico: usd('21'),
        }),
      ],
    });
    expect(total).toMatchObject({
      verified: { HIGH: usd('10'), MEDIUM: usd('8'), LOW: usd('1'), UNVERIFIED: 0n },
      notObservablePico: usd('8'),
      notYetObservedPico: usd('12'),
      notComparedPico: usd('7'),
      acrossAccountsPico: 0n,
      notMatchedPico: usd('22'),
      notMatchedRatePico: usd('1.5'),
      unexplainedPico: 0n,
    });
    expect(unfooted(total)).not.toContain('verification');
  });

  it('is not charged too much where a correction leaves less than nothing unmatched', () => {
    const bucket = aBucket({ providerCostPico: usd('-3'), matchedPico: 0n, ratePico: usd('1') });
    expect(statement({ compared: [bucket] }).total.notMatchedRatePico).toBe(0n);
  });

  it('of calls without an account is shown for the provider, and for its accounts as compared together', () => {
    const { accounts, providers } = statement({
      totals: [aTotal({ accountId: 'a' }), aTotal({ accountId: 'b', amountPico: usd('20') })],
      compared: [
        aBucket({ accountId: 'a', providerCostPico: usd('4'), matchedPico: usd('4') }),
        aBucket({ accountId: '', providerCostPico: usd('26'), matchedPico: usd('25'), grade: 'MEDIUM' }),
      ],
    });
    expect(accounts.map(({ accountId, acrossAccountsPico }) => [accountId, acrossAccountsPico])).toEqual([
      ['a', usd('6')],
      ['b', usd('20')],
    ]);
    expect(providers).toMatchObject([
      { verified: { HIGH: usd('4'), MEDIUM: usd('25') }, acrossAccountsPico: 0n, notMatchedPico: usd('1') },
    ]);
    expect([...accounts, ...providers].flatMap(unfooted)).not.toContain('verification');
  });
});

describe('the disputed dollars of a month', () => {
  it('appear beside the sums, by account; without an account they are the provider’s', () => {
    const of = { provider: 'openai', creditedPico: 3n * PICO_PER_USD };
    const built = statement({
      asked: [
        { ...of, accountId: 'acct', disputedPico: 5n * PICO_PER_USD },
        { ...of, accountId: '', disputedPico: 7n * PICO_PER_USD },
      ],
    });
    const shown = ({ disputedPico, creditedPico }: StatementFigures) => [disputedPico, creditedPico];
    const usd = (...dollars: bigint[]) => dollars.map((one) => one * PICO_PER_USD);
    expect(built.accounts.map(shown)).toEqual([usd(5n, 3n)]);
    expect(built.providers.map(shown)).toEqual([usd(12n, 6n)]);
    expect(shown(built.total)).toEqual(usd(12n, 6n));
    // Part of no sum.
    expect(unfooted(built.total)).toEqual(unfooted(statement().total));
  });
});

describe('a month', () => {
  it('is final when no day of it can be restated any more', () => {
    const copies = wholeMonth();
    expect(statement({ copies })).toMatchObject({
      status: 'final',
      finalFrom: '2026-11-02',
      provisional: [],
    });
    const nowMicros = microsOfDay('2026-11-02') - 1n;
    expect(statement({ copies, nowMicros })).toMatchObject({
      status: 'provisional',
      finalFrom: '2026-11-02',
      provisional: [{ firstDay: '2026-10-31', lastDay: '2026-10-31', days: 1 }],
      staleCopies: [],
    });
    expect(statement({ copies: wholeMonth({ provisionalDays: 5 }) })).toMatchObject({
      finalFrom: '2026-11-05',
    });
  });

  it('of a provider that closes whole months is final from one day, whichever of its days are known', () => {
    const ofMonth = (copy: CountedCopy): CountedCopy => ({
      ...copy,
      provisionalDays: Number((microsOfDay('2026-11-06') - microsOfDay(copy.day)) / MICROS_PER_DAY),
      closesWithMonth: true,
    });
    const copies = wholeMonth().map(ofMonth);
    expect(statement({ copies }).finalFrom).toBe('2026-11-06');
    expect(statement({ copies: copies.slice(0, 3) }).finalFrom).toBe('2026-11-06');
  });

  it('whose copy was read while a day could be restated stays provisional until a newer copy arrives', () => {
    const copies = wholeMonth({ toldAtMicros: microsOfDay('2026-10-31') });
    const stale = [
      { provider: 'openai', accountId: 'acct', firstDay: '2026-10-30', lastDay: '2026-10-31', days: 2 },
    ];
    expect(statement({ copies })).toMatchObject({ status: 'provisional', staleCopies: stale });
  });

  it('that was closed shows what was billed then, and what moved since as an item of both sums', () => {
    const billed = [aBilledCell({ isBatch: false, amountPico: usd('3') })];
    const { total } = statement({
      totals: [aTotal({ amountPico: usd('3') })],
      frozen: [aTotal({ amountPico: usd('2.5') }), aTotal({ chargeCategory: 'tax', amountPico: usd('1') })],
      charges: chargesOf(billed),
      compared: [aBucket({ providerCostPico: usd('3'), matchedPico: usd('2') })],
    });
    expect(total).toMatchObject({
      billed: { usage: usd('2.5'), tax: usd('1') },
      listPico: usd('2'),
      rateDifferencePico: usd('1'),
      restatedPico: usd('-0.5'),
    });
    expect(unfooted(total)).toEqual([]);
  });

  it('that is not over is provisional, and names no day to come as missing', () => {
    const found = statement({ nowMicros: microsOfDay('2026-10-08') + 1n });
    expect(found.status).toBe('provisional');
    expect(found.missing.map(({ firstDay, lastDay }) => [firstDay, lastDay])).toEqual([
      ['2026-10-01', '2026-10-04'],
      ['2026-10-06', '2026-10-07'],
    ]);
  });

  it('without bills has no rows, states that, and names the days that known accounts lack', () => {
    const empty = statement({ totals: [], copies: [] });
    expect(empty).toMatchObject({ status: 'no_billing_data', accounts: [], providers: [], sources: [] });
    expect(empty.missing).toMatchObject([{ firstDay: '2026-10-01', lastDay: '2026-10-31', days: 31 }]);
    expect(statement({ totals: [], copies: [], accounts: [] }).missing).toEqual([]);
  });

  it('counts a day with a bill of nothing as covered: that is what a free day is', () => {
    const totals = wholeMonth().map(({ day }) => aTotal({ day, amountPico: 0n }));
    expect(statement({ totals }).missing).toEqual([]);
  });

  it('names its sources with the days for which they count', () => {
    const copies = [
      ...wholeMonth(),
      ...wholeMonth()
        .slice(3, 5)
        .map((copy) => ({ ...copy, sourceId: 'newer' })),
    ];
    expect(statement({ copies }).sources).toMatchObject([
      { name: 'costs.json', firstDay: '2026-10-01', lastDay: '2026-10-31', days: 31 },
      { sourceId: 'newer', firstDay: '2026-10-04', lastDay: '2026-10-05', days: 2 },
    ]);
  });
});

describe('whatever was charged', () => {
  const day = fc.integer({ min: 1, max: 9 }).map((at) => `2026-10-0${at}`);
  const amounts = fc.bigInt({ min: -(10n ** 15n), max: 10n ** 18n });
  const account = fc.constantFrom('a', 'b');
  const bill = fc.record({
    day,
    billed: fc.array(billedCells, { maxLength: 6 }),
    usage: fc.array(usageCells, { maxLength: 4 }),
  });
  const others = fc.record({
    provider: fc.constantFrom('openai', 'anthropic'),
    accountId: account,
    day,
    chargeCategory: fc.constantFrom(...CHARGE_CATEGORIES.filter((category) => category !== 'usage')),
    amountPico: amounts,
  });
  const closedUsage = others.map((total) => ({ ...total, chargeCategory: 'usage' as const }));
  const buckets = fc.record({
    provider: fc.constantFrom('openai', 'anthropic'),
    accountId: fc.constantFrom('a', 'b', ''),
    day,
    grade: fc.constantFrom(...GRADES),
    reason: fc.option(fc.constantFrom(...BUCKET_REASONS), { nil: null }),
    providerCostPico: amounts,
    matchedPico: amounts,
    ratePico: fc.option(amounts, { nil: null }),
  });

  const findings = fc.record({
    provider: fc.constantFrom('openai', 'anthropic'),
    accountId: fc.constantFrom('a', 'b', ''),
    unexplainedPico: fc.bigInt({ min: 0n, max: 10n ** 18n }),
    inFindingsPico: amounts,
  });

  it('every section of every part foots, parts sum to their wholes, and the invoice is what was billed', () => {
    fc.assert(
      fc.property(
        fc.array(bill, { maxLength: 4 }),
        fc.array(others, { maxLength: 6 }),
        fc.array(buckets, { maxLength: 8 }),
        fc.array(fc.oneof(others, closedUsage), { maxLength: 6 }),
        fc.array(findings, { maxLength: 6 }),
        (bills, rest, compared, frozen, found) => {
          const usage = bills.flatMap((one) =>
            one.billed.map((cell) =>
              aTotal({ accountId: cell.accountId, day: one.day, amountPico: cell.amountPico }),
            ),
          );
          const totals = [...usage, ...rest];
          const built = statement({
            totals,
            found,
            frozen: frozen.length > 3 ? null : frozen,
            compared,
            charges: bills.map((one) => ({
              provider: 'openai',
              charges: chargesOfDay('openai', one.day, one.billed, one.usage, { agreed: BOOK, list: BOOK }),
            })),
          });
          expect([...built.accounts, ...built.providers, built.total].flatMap(unfooted)).toEqual([]);
          const named = built.notPriced.reduce((sum, { billedPico }) => sum + billedPico, 0n);
          expect(named).toBe(built.total.notPricedPico);
          for (const line of STATEMENT_LINES) {
            const sum = (parts: readonly StatementFigures[]) =>
              parts.reduce((whole, part) => whole + line.amount(part), 0n);
            expect(sum(built.providers)).toBe(line.amount(built.total));
            // The amounts that calls without an account verify are shown for the provider alone.
            if (line.section !== 'verification') expect(sum(built.accounts)).toBe(line.amount(built.total));
          }
          for (const part of [...built.accounts, ...built.providers, built.total])
            expect(explainedByFindingsOf(part) + part.unexplainedPico).toBe(part.notMatchedPico);
          const unexplained = found.reduce((sum, { unexplainedPico }) => sum + unexplainedPico, 0n);
          expect(built.total.unexplainedPico).toBe(unexplained);
          const invoice = Object.values(built.total.billed).reduce((sum, amount) => sum + amount, 0n);
          const billed = frozen.length > 3 ? totals : frozen;
          expect(invoice).toBe(billed.reduce((sum, { amountPico }) => sum + amountPico, 0n));
        },
      ),
      { numRuns: 300 },
    );
  });
});
