import type { Direction, Finding } from './inference/finding.js';

/** A finding as it is published. */
export interface PublishedFinding {
  id: string;
  model: string;
  kind: string;
  direction: Direction;
  status: 'open' | 'confirmed' | 'dismissed' | 'gone';
  /** In their order. */
  days: readonly string[];
}

/** What becomes of an account's findings when it is explained anew. */
export interface CarriedFindings {
  /** For each finding in the order given: the id that it had; null: nobody has seen it before. */
  ids: (string | null)[];
  /** Open findings that are no longer found. */
  removed: string[];
  /** Findings on which somebody has decided and that are no longer found: they stay, and count no more. */
  gone: string[];
}

/** Which of several published findings goes on: one with a decision, so that nobody has to decide twice. */
const PRECEDENCE: Record<PublishedFinding['status'], number> = {
  confirmed: 0,
  dismissed: 0,
  gone: 1,
  open: 2,
};

/**
 * Tells which of an account's published findings are found again: of the same model, kind and direction, with a day in
 * common. Each goes on in one finding at most and the other way round, so that no dollar is in two of them; where several
 * fit, decided ones come first, then the one with most days in common. The order of the input does not matter beyond the ids.
 */
export function carryFindings(
  published: readonly PublishedFinding[],
  found: readonly Finding[],
): CarriedFindings {
  const ids: (string | null)[] = found.map(() => null);
  const taken = new Set<string>();
  for (const { finding, at } of pairsOf(published, found)) {
    if (ids[at] !== null || taken.has(finding.id)) continue;
    ids[at] = finding.id;
    taken.add(finding.id);
  }
  const left = published.filter((finding) => !taken.has(finding.id));
  return {
    ids,
    removed: left.filter(({ status }) => status === 'open').map(({ id }) => id),
    gone: left.filter(({ status }) => status === 'confirmed' || status === 'dismissed').map(({ id }) => id),
  };
}

interface Pair {
  finding: PublishedFinding;
  at: number;
  shared: number;
  firstDay: string;
}

function pairsOf(published: readonly PublishedFinding[], found: readonly Finding[]): Pair[] {
  const pairs: Pair[] = [];
  for (const [at, one] of found.entries()) {
    const days = new Set(one.days.map(({ day }) => day));
    for (const finding of published) {
      if (finding.model !== one.model || finding.kind !== one.kind || finding.direction !== one.direction)
        continue;
      const shared = finding.days.filter((day) => days.has(day)).length;
      if (shared > 0) pairs.push({ finding, at, shared, firstDay: one.days[0]?.day ?? '' });
    }
  }
  return pairs.sort(
    (a, b) =>
      PRECEDENCE[a.finding.status] - PRECEDENCE[b.finding.status] ||
      b.shared - a.shared ||
      compare(a.firstDay, b.firstDay) ||
      compare(a.finding.id, b.finding.id) ||
      a.at - b.at,
  );
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
