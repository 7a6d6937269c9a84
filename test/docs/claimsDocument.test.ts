import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  BusinessDays,
  type ClaimDeadline,
  DISPUTE_WINDOW_DAYS,
  nextDeadline,
} from '../../domain/claims/deadlines.js';
import {
  CLAIM_STATUSES,
  isTerminal,
  nextStatuses,
  requiredFor,
  resolutionOf,
} from '../../domain/claims/lifecycle.js';
import { DEFAULT_SETTINGS } from '../../domain/installation/settings.js';
import { dayOf, microsOfDay, shiftDay } from '../../domain/period.js';
import { TAXONOMY_KINDS } from '../../domain/reconciliation/taxonomy.js';

const PAGE = readFileSync(path.resolve(import.meta.dirname, '../../docs/claims.md'), 'utf8');

/** The cells of the rows of the table below a header. */
function tableBelow(header: string): string[][] {
  const from = PAGE.indexOf(header);
  if (from < 0) throw new Error(`docs/claims.md has no table ${header}`);
  const lines = PAGE.slice(from).split('\n').slice(2);
  const end = lines.findIndex((line) => !line.startsWith('|'));
  return lines.slice(0, end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const codes = (cell: string) => [...cell.matchAll(/`(\w+)`/g)].map(([, word = '']) => word);

describe('docs/claims.md', () => {
  it('draws the moves of the table, every one and no other', () => {
    const drawn = [...PAGE.matchAll(/^ {2}(\S+) --> (\S+)$/gm)].map(([, from, to]) => `${from} ${to}`);
    const legal = CLAIM_STATUSES.flatMap((from) => [
      ...nextStatuses(from).map((to) => `${from} ${to}`),
      ...(isTerminal(from) ? [`${from} [*]`] : []),
    ]);
    expect(drawn.sort()).toEqual(['[*] draft', ...legal].sort());
  });

  it('lists what a status needs beside it', () => {
    const needs = Object.fromEntries(
      tableBelow('| status | needs |').map(([status = '', fields = '']) => [codes(status)[0], codes(fields)]),
    );
    for (const status of CLAIM_STATUSES) {
      const { creditIssued, denialReason, violationType } = requiredFor(status);
      expect(needs[status] ?? [], status).toEqual([
        ...(creditIssued ? ['credit_issued_cents'] : []),
        ...(denialReason ? ['denial_reason'] : []),
        ...(violationType ? ['violation_type'] : []),
      ]);
    }
  });

  it('lists what the disputes of a claim are resolved with', () => {
    const said = new Map<string, string>();
    for (const [end = '', resolution = ''] of tableBelow('| end | `resolution` |')) {
      const [status = '', ...kinds] = codes(end);
      for (const kind of kinds.length === 0 ? [''] : kinds)
        said.set(`${status} ${kind}`, codes(resolution)[0] ?? '');
    }
    for (const status of ['credit_issued', 'partial'] as const)
      expect(said.get(`${status} `)).toBe(resolutionOf(status, null));
    for (const kind of TAXONOMY_KINDS)
      expect(said.get(`denied ${kind}`) ?? said.get('denied '), kind).toBe(resolutionOf('denied', kind));
  });

  it('states after how many business days a reminder is sent, and when a draft is urgent', () => {
    const days = new BusinessDays(DEFAULT_SETTINGS);
    const enteredAtMicros = microsOfDay('2026-03-02');
    for (const [cell = '', text = ''] of tableBelow('| status | notice |')) {
      const status = CLAIM_STATUSES.find((one) => one === codes(cell)[0]) ?? 'denied';
      // Charged so late that a draft is urgent long after its reminder.
      const clock = { status, enteredAtMicros, periodEnd: '2026-06-01', snoozedUntilMicros: null };
      const found: ClaimDeadline[] = [];
      while (found.length < 2) {
        const next = nextDeadline({ ...clock, notifiedSteps: found.flatMap(({ steps }) => steps) }, days);
        if (!next) break;
        found.push(next);
      }
      const said = [...text.matchAll(/\d+/g)].map(([number]) => Number(number));
      const business = found.map(({ atMicros }) => {
        let count = 0;
        while (days.after(enteredAtMicros, count) < atMicros) count += 1;
        return count;
      });
      const [first = 0] = said;
      if (status === 'escalated') expect(business).toEqual([first, first * 2]);
      else if (status === 'draft') {
        expect(business[0]).toBe(first);
        expect(dayOf(found[1]?.atMicros ?? 0n)).toBe(shiftDay('2026-06-01', said[1] ?? 0));
        expect(said[2]).toBe(DISPUTE_WINDOW_DAYS);
      } else expect(business, status).toEqual(said);
    }
  });
});
