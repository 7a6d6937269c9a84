import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assertMovable,
  CLAIM_STATUSES,
  type ClaimStatus,
  canMove,
  creditedFraction,
  isFiled,
  isShortCredit,
  isTerminal,
  movedFields,
  NO_FIELDS,
  nextStatuses,
  resolutionOf,
} from '../../../domain/claims/lifecycle.js';
import { DomainError } from '../../../domain/errors.js';
import { TAXONOMY_KINDS } from '../../../domain/reconciliation/taxonomy.js';

const status = fc.constantFrom(...CLAIM_STATUSES);

/** The table as people wrote it down: a Y where a row may become a column. */
const TABLE = `
  from                  submitted_to_provider provider_acknowledged under_review credit_approved credit_issued partial denied escalated
  draft                 Y - - - - - - -
  submitted_to_provider - Y Y Y Y Y Y Y
  provider_acknowledged - - Y Y Y Y Y Y
  under_review          - - - Y Y Y Y Y
  credit_approved       - - - - Y Y - Y
  escalated             - Y Y Y Y Y Y -
  credit_issued         - - - - - - - -
  partial               - - - - - - - -
  denied                - - - - - - - -`;

describe('the moves of a claim', () => {
  it('are those of the table, and no others', () => {
    const [header = [], ...rows] = TABLE.trim()
      .split('\n')
      .map((line) => line.trim().split(/ +/));
    const legal = rows.flatMap(([from = '', ...cells]) =>
      cells.flatMap((cell, at) => (cell === 'Y' ? [`${from} ${header[at + 1]}`] : [])),
    );
    const all = CLAIM_STATUSES.flatMap((from) => CLAIM_STATUSES.map((to) => [from, to] as const));
    expect(
      all
        .filter(([from, to]) => canMove(from, to))
        .map((pair) => pair.join(' '))
        .sort(),
    ).toEqual(legal.sort());
    expect(rows.length).toBe(CLAIM_STATUSES.length);
  });

  it('whatever is asked for in whatever order, make a legal history: filed once, ended once, never back', () => {
    fc.assert(
      fc.property(fc.array(status, { maxLength: 40 }), (asked) => {
        let at: ClaimStatus = 'draft';
        const history: ClaimStatus[] = [at];
        for (const to of asked) {
          const claim = { status: at, version: history.length, recoverableCents: 1_000 };
          const command = { to, version: history.length, fields: NO_FIELDS };
          let isRefused = false;
          try {
            assertMovable(claim, command);
          } catch (error) {
            expect(error).toMatchObject({ code: 'illegal_transition' });
            isRefused = true;
          }
          expect(isRefused).toBe(!canMove(at, to));
          if (isRefused) continue;
          at = to;
          history.push(at);
        }
        expect(history.filter((one) => one === 'draft').length).toBe(1);
        expect(history.filter((one) => one === 'submitted_to_provider').length).toBe(
          history.length > 1 ? 1 : 0,
        );
        expect(history.slice(0, -1).some(isTerminal)).toBe(false);
        for (const [step, from] of history.entries()) {
          const to = history[step + 1];
          if (to !== undefined) expect(nextStatuses(from)).toContain(to);
        }
        expect(isFiled(at)).toBe(at !== 'draft' && !isTerminal(at));
      }),
    );
  });

  it('are refused for another version than was seen, unless they are illegal anyway', () => {
    fc.assert(
      fc.property(status, status, fc.nat(9), fc.nat(9), (from, to, seen, version) => {
        const claim = { status: from, version, recoverableCents: 1_000 };
        const code = (() => {
          try {
            assertMovable(claim, { to, version: seen, fields: { ...NO_FIELDS, creditIssuedCents: 1 } });
            return undefined;
          } catch (error) {
            return error instanceof DomainError ? error.code : 'another';
          }
        })();
        const conflict = seen === version ? undefined : 'claim_conflict';
        expect(code).toBe(canMove(from, to) ? conflict : 'illegal_transition');
      }),
    );
  });

  it('from every status lead to an end', () => {
    for (const from of CLAIM_STATUSES) {
      const seen = new Set<ClaimStatus>();
      const queue: ClaimStatus[] = [from];
      for (let next = queue.pop(); next !== undefined; next = queue.pop())
        if (!seen.has(next)) {
          seen.add(next);
          queue.push(...nextStatuses(next));
        }
      expect([...seen].some(isTerminal), from).toBe(true);
    }
  });
});

describe('a move', () => {
  it('accepts a partial credit below the whole, and a full one of any size', () => {
    const claim = { status: 'under_review', version: 1, recoverableCents: 1_000 } as const;
    const credit = (to: ClaimStatus, creditIssuedCents: number) => () =>
      assertMovable(claim, { to, version: 1, fields: { ...NO_FIELDS, creditIssuedCents } });
    expect(credit('partial', 999)).not.toThrow();
    for (const cents of [1_000, 1_001]) {
      expect(credit('partial', cents)).toThrow('must be below total_recoverable_cents (1000)');
      expect(credit('credit_issued', cents)).not.toThrow();
    }
    expect(credit('credit_issued', 1)).not.toThrow();
  });

  it('keeps ticket and credit until others are named, and no credit on a denied claim', () => {
    const before = { externalTicketId: 'T-1', creditIssuedCents: 5 };
    expect(movedFields(before, 'escalated', NO_FIELDS)).toEqual(before);
    expect(
      movedFields(before, 'partial', { ...NO_FIELDS, creditIssuedCents: 7, externalTicketId: 'T-2' }),
    ).toEqual({
      externalTicketId: 'T-2',
      creditIssuedCents: 7,
    });
    expect(movedFields(before, 'denied', NO_FIELDS).creditIssuedCents).toBeNull();
  });

  it('warns of a partial credit below 98 % of the whole, to the cent', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10 ** 9 }),
        fc.integer({ min: 1, max: 10 ** 9 }),
        (credit, total) => {
          const claim = {
            status: 'credit_issued',
            creditIssuedCents: credit,
            recoverableCents: total,
          } as const;
          expect(isShortCredit(claim)).toBe(100 * credit < 98 * total);
          expect(isShortCredit({ ...claim, status: 'partial' })).toBe(false);
        },
      ),
    );
  });

  it('has a credited share of 0 to 1, rounded down', () => {
    expect(creditedFraction('denied', null, 300)).toBe('0');
    expect(creditedFraction('partial', 100, 300)).toBe('0.333333333333');
    expect(creditedFraction('credit_issued', 300, 300)).toBe('1');
    expect(creditedFraction('credit_issued', 301, 300)).toBe('1');
    expect(creditedFraction('partial', 1, 10 ** 9)).toBe('0.000000001000');
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10 ** 12 }),
        fc.integer({ min: 1, max: 10 ** 12 }),
        (credit, total) => {
          const share = Number(creditedFraction('partial', credit, total));
          expect(share).toBeGreaterThanOrEqual(0);
          expect(share).toBeLessThanOrEqual(1);
          expect(Math.abs(share - Math.min(1, credit / total))).toBeLessThan(1e-11);
        },
      ),
    );
  });

  it('resolves disputes at an end and nowhere else', () => {
    for (const one of CLAIM_STATUSES)
      for (const kind of [null, ...TAXONOMY_KINDS])
        expect(resolutionOf(one, kind) !== undefined, one).toBe(isTerminal(one));
  });
});
