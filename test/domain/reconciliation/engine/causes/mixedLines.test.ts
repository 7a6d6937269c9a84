/** Lines of a bill that hold several uses, of which not every class has all. */
import { describe, expect, it } from 'vitest';
import { ODDS_MIN } from '../../../../../domain/reconciliation/engine/calibration.js';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';
import type { BilledCell } from '../../../../../domain/reconciliation/matching/cells.js';
import { daysOf, findingsOfDays, isBetween } from '../series/support.js';
import { said } from './bills.js';
import { type Counts, calls, lines, usage } from './support.js';

const isWrong = (at: number) => isBetween(at, 8, 13);

const chatOf = (at: number): Required<Pick<Counts, 'input' | 'cache_read' | 'output'>> => ({
  input: 30_000_000 + ((at * 7_919) % 13) * 1_100_000,
  cache_read: 20_000_000 + ((at * 31) % 7) * 1_300_000,
  output: 5_000_000 + ((at * 17) % 11) * 300_000,
});
const batchOf = (at: number): Counts => ({ input: 4_000_000 + at * 10_000, output: 700_000 + at * 1_000 });

/** Lines of one class as one, which does not separate batch. */
function joined(billed: readonly BilledCell[]): BilledCell[] {
  const sums = new Map<string, BilledCell>();
  for (const cell of billed) {
    const known = sums.get(cell.tokenClass);
    const amountPico = cell.amountPico + (known?.amountPico ?? 0n);
    const quantity = (cell.quantity ?? 0n) + (known?.quantity ?? 0n);
    sums.set(cell.tokenClass, { ...cell, isBatch: null, amountPico, quantity });
  }
  return [...sums.values()];
}

/** Batches read nothing from the cache, and the bill has one line for both services. */
function findings(again: (cached: number, at: number) => number): Finding[] {
  return findingsOfDays(
    daysOf(20, (at, day) => {
      const [chat, batch] = [chatOf(at), batchOf(at)];
      const charged = { ...chat, input: chat.input + again(chat.cache_read, at) };
      return {
        observed: [
          calls(chat, { calls: 900, serviceTier: 'default' }, { day }),
          calls(batch, { calls: 90, serviceTier: 'default', isBatch: true }, { day }),
        ],
        billed: joined([
          ...lines(charged, { isBatch: false }, {}, { day }),
          ...lines(batch, { isBatch: true }, {}, { day }),
        ]),
        usage: [...usage(charged, { isBatch: false }, { day }), ...usage(batch, { isBatch: true }, { day })],
      };
    }),
  );
}

describe('cached tokens on an input line that holds batches as well', () => {
  it('are found a second time, though the cache’s own line holds no batch', () => {
    const [finding, more] = findings((cached, at) => (isWrong(at) ? cached : 0));
    expect(more).toBeUndefined();
    expect(finding && said(finding)).toMatchObject({
      is: 'cached_tokens_double_metered/reads',
      grade: 'HIGH',
      claimable: true,
    });
    expect(finding?.days).toHaveLength(6);
  });
});

describe('one class that is counted higher than it was seen', () => {
  const inflated = (factorOf: (at: number) => number): Finding[] =>
    findingsOfDays(
      daysOf(20, (at, day) => {
        const use = chatOf(at);
        const output = isWrong(at) ? Math.round(use.output * factorOf(at)) : use.output;
        return {
          observed: [calls(use, { calls: 900, serviceTier: 'default' }, { day })],
          billed: lines({ ...use, output }, {}, {}, { day }),
        };
      }),
    );

  it('is no factor where the days differ by a tenth of it: clients leave out another share each day', () => {
    const kinds = inflated((at) => 1.15 + ((at * 7) % 5) * 0.015).map(({ kind }) => kind);
    expect(kinds).not.toContain('token_count_inflation');
  });

  it('is no factor of the provider where the count was no better before it', () => {
    const kinds = findingsOfDays(
      daysOf(20, (at, day) => {
        const use = chatOf(at);
        const output = at < 15 ? Math.round(use.output * 1.2) : use.output;
        const input = at < 8 ? use.input + use.cache_read : use.input;
        return {
          observed: [calls(use, { calls: 900, serviceTier: 'default' }, { day })],
          billed: lines({ ...use, input, output }, {}, {}, { day }),
        };
      }),
    ).map(({ kind }) => kind);
    expect(kinds).not.toContain('token_count_inflation');
  });

  it('is a count of its own where one factor gives all days, and nothing known where each day has another', () => {
    expect(inflated(() => 1.2).map(({ kind }) => kind)).toEqual(['token_count_inflation']);
    const kinds = inflated((at) => 1.06 + ((at * 7) % 5) * 0.12).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(['unexplained']));
  });

  it('is sure where its lines of all uses have one ratio, which is one parameter, and nothing known where each has its own', () => {
    const uses = [{ isBatch: false }, { isBatch: true }, { isBatch: false, serviceTier: 'flex' }];
    const findingsBy = (factorOf: (place: number) => number) =>
      findingsOfDays(
        daysOf(20, (at, day) => {
          const parts = uses.map((use, place) => {
            const { input, output } = chatOf(at + place);
            return { use, seen: { input, output }, factor: at === 9 || at === 10 ? factorOf(place) : 1 };
          });
          return {
            observed: parts.map(({ use, seen }) =>
              calls(seen, { calls: 900, serviceTier: 'default', ...use }, { day }),
            ),
            billed: parts.flatMap(({ use, seen, factor }) =>
              lines({ ...seen, output: Math.round(seen.output * factor) }, use, {}, { day }),
            ),
          };
        }),
      );
    const [finding, ...more] = findingsBy(() => 1.3);
    expect([finding?.kind, more]).toEqual(['token_count_inflation', []]);
    expect(finding?.next?.odds).toBeGreaterThan(ODDS_MIN);
    const kinds = findingsBy((place) => 1.15 + place * 0.2).map(({ kind }) => kind);
    expect(kinds).toEqual(['unexplained']);
  });
});
