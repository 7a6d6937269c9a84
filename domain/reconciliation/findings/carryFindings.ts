import { compare } from '../../compare.js';
import type { Direction } from '../inference/finding.js';
import type { FoundPart } from '../separateDisputed.js';

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
  /** For each part in the order given. */
  parts: CarriedPart[];
  /** Open findings that are no longer found. */
  removed: string[];
  /** Findings on which somebody has decided and that are no longer found: they stay, and count no more. */
  gone: string[];
}

export interface CarriedPart {
  /** The id that it had; null: nobody has seen it before. */
  id: string | null;
  /** The finding whose decision it takes where it has none of its own. */
  decisionOf: string | null;
}

/** Which of several published findings goes on: one with a decision, so that nobody has to decide twice. */
const PRECEDENCE: Record<PublishedFinding['status'], number> = {
  confirmed: 0,
  dismissed: 0,
  gone: 1,
  open: 2,
};

/**
 * Decides which of an account's published findings are found again: of the same model, kind and direction, with a day in
 * common. Each goes on in one part at most and the other way round, so that no dollar is in two of them; where several fit,
 * the one that the part was decided with comes first, then decided ones, then the one with most days in common. A part that
 * goes on from none takes the decision of a finding that it was a part of. The order of the input does not matter.
 */
export function carryFindings(
  published: readonly PublishedFinding[],
  found: readonly FoundPart[],
): CarriedFindings {
  const parts = found.map(({ decidedWith }): CarriedPart => ({ id: null, decisionOf: decidedWith }));
  const pairs = pairsOf(published, found);
  const taken = new Set<string>();
  for (const { finding, at } of pairs) {
    const part = parts[at];
    if (!part || part.id !== null || taken.has(finding.id)) continue;
    part.id = finding.id;
    taken.add(finding.id);
  }
  for (const { finding, at } of pairs) {
    const part = parts[at];
    if (part?.id === null && finding.status === 'dismissed') part.decisionOf ??= finding.id;
  }
  const left = published.filter((finding) => !taken.has(finding.id));
  return {
    parts,
    removed: left.filter(({ status }) => status === 'open').map(({ id }) => id),
    gone: left.filter(({ status }) => status === 'confirmed' || status === 'dismissed').map(({ id }) => id),
  };
}

interface Pair {
  finding: PublishedFinding;
  at: number;
  /** The part is in the dispute over the finding. */
  isOwn: boolean;
  shared: number;
  firstDay: string;
}

function pairsOf(published: readonly PublishedFinding[], found: readonly FoundPart[]): Pair[] {
  const pairs: Pair[] = [];
  for (const [at, { finding: one, decidedWith }] of found.entries()) {
    const days = new Set(one.days.map(({ day }) => day));
    for (const finding of published) {
      if (finding.model !== one.model || finding.kind !== one.kind || finding.direction !== one.direction)
        continue;
      const shared = finding.days.filter((day) => days.has(day)).length;
      const isOwn = finding.id === decidedWith;
      if (shared > 0 || isOwn) pairs.push({ finding, at, isOwn, shared, firstDay: one.days[0]?.day ?? '' });
    }
  }
  return pairs.sort(
    (a, b) =>
      Number(b.isOwn) - Number(a.isOwn) ||
      PRECEDENCE[a.finding.status] - PRECEDENCE[b.finding.status] ||
      b.shared - a.shared ||
      compare(a.firstDay, b.firstDay) ||
      compare(a.finding.id, b.finding.id) ||
      a.at - b.at,
  );
}
