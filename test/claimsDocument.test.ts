import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ClaimDeadline, nextDeadline } from '../domain/claims/deadlines.js';
import { CLAIM_STATUSES, isTerminal, nextStatuses, requiredFor } from '../domain/claims/lifecycle.js';
import { resolutionOf } from '../domain/claims/move.js';
import { TAXONOMY_KINDS } from '../domain/reconciliation/taxonomy.js';

const PAGE = readFileSync(path.resolve(import.meta.dirname, '../docs/claims.md'), 'utf8');

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

  it('says what a status needs beside it', () => {
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

  it('says what the disputes of a claim are resolved with', () => {
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

  it('says after how many days somebody is reminded', () => {
    const day = 86_400_000_000n;
    for (const [cell = '', text = ''] of tableBelow('| status | notice |')) {
      const status = CLAIM_STATUSES.find((one) => one === codes(cell)[0]) ?? 'denied';
      const found: ClaimDeadline[] = [];
      // Charged so late that nothing of a draft is urgent within the days that are looked at.
      const clock = { status, enteredAtMicros: 0n, periodStart: '1970-03-01' };
      for (let after = 0n; found.length < 2; ) {
        const next = nextDeadline(clock, after);
        if (!next) break;
        found.push(next);
        after = next.atMicros;
      }
      const days = [...text.matchAll(/\d+/g)].map(([number]) => Number(number));
      const wanted = found.map(({ atMicros }) => Number(atMicros / day));
      if (status === 'escalated') expect(wanted).toEqual([days[0], Number(days[0]) * 2]);
      else if (status === 'draft') expect([wanted[0], Number(wanted[1]) - 59]).toEqual(days.slice(0, 2));
      else expect(wanted, status).toEqual(days);
    }
  });
});
