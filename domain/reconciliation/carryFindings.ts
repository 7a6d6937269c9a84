import { compare } from '../compare.js';
import { absPico, type Pico } from '../money.js';
import type { Direction, Finding } from './engine/index.js';

import { GRADES, type Grade } from './matching/cells.js';
import type { FoundPart } from './reconcileDays.js';

export interface PublishedFinding {
  id: string;
  model: string;
  kind: string;
  direction: Direction;
  status: 'open' | 'confirmed' | 'dismissed' | 'gone';
  days: readonly string[];
}

/** The effect of a new explanation on an account's published findings. */
interface CarriedFindings {
  /** One for each given part, in order. */
  parts: CarriedPart[];
  /** Open findings that no longer exist. */
  removed: string[];
  /** Decided findings that no longer exist: their rows stay, but do not count. */
  gone: string[];
}

interface CarriedPart {
  /** The id of the published finding; null: the finding is new. */
  id: string | null;
  /** The finding whose decision this one adopts; null: it has its own or none. */
  decisionOf: string | null;
}

/** The one of several published findings that continues: decided ones first, so that no decision is repeated. */
const PRECEDENCE: Record<PublishedFinding['status'], number> = {
  confirmed: 0,
  dismissed: 0,
  gone: 1,
  open: 2,
};

/**
 * Matches published findings one to one by model, kind, direction and days: those decided together first, then
 * decided ones, then by most days.
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
  /** The part is in the dispute over this finding. */
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

export interface FindingSums {
  /** Recoverable dollars by grade. */
  recoverable: Record<Grade, Pico>;
  /** Overcharges, and below undercharges (negative), by the provider's mistakes. */
  overchargedPico: Pico;
  underchargedPico: Pico;
  /** The absolute sum of differences that the organization itself must correct. */
  ownPico: Pico;
  /** Unexplained overcharges, as the financial summary counts them. */
  unexplainedPico: Pico;
  /** The same for days that the provider may still restate. */
  unexplainedProvisionalPico: Pico;
  /** Unexplained undercharges; negative. */
  unexplainedUnderchargedPico: Pico;
}

export function sumsOfFindings(findings: readonly Finding[]): FindingSums {
  const sums: FindingSums = {
    recoverable: { HIGH: 0n, MEDIUM: 0n, LOW: 0n, UNVERIFIED: 0n },
    overchargedPico: 0n,
    underchargedPico: 0n,
    ownPico: 0n,
    unexplainedPico: 0n,
    unexplainedProvisionalPico: 0n,
    unexplainedUnderchargedPico: 0n,
  };
  for (const finding of findings) {
    const { grade, blame, impactPico, recoverablePico } = finding;
    sums.recoverable[grade] += recoverablePico;
    if (blame === 'own') sums.ownPico += absPico(impactPico);
    if (blame === 'provider' && impactPico > 0n) sums.overchargedPico += impactPico;
    if (blame === 'provider' && impactPico < 0n) sums.underchargedPico += impactPico;
    if (finding.kind === 'unexplained') addUnexplained(sums, finding);
  }
  return sums;
}

function addUnexplained(sums: FindingSums, finding: Finding): void {
  const { impactPico } = finding;
  if (impactPico < 0n) sums.unexplainedUnderchargedPico += impactPico;
  else if (finding.provisional) sums.unexplainedProvisionalPico += impactPico;
  else sums.unexplainedPico += impactPico;
}

/** Whether a finding needs action: a mistake of either side, or an unexplained difference. */
export function asksForAction(finding: Finding): boolean {
  return finding.blame !== 'none' || finding.kind === 'unexplained';
}

/** Highest grade first, then largest amount; equal ones are in a fixed order. */
export function byWeight(a: Finding, b: Finding): number {
  const grade = GRADES.indexOf(a.grade) - GRADES.indexOf(b.grade);
  if (grade !== 0) return grade;
  const [x, y] = [absPico(a.impactPico), absPico(b.impactPico)];
  if (x !== y) return x > y ? -1 : 1;
  return nameOf(a) < nameOf(b) ? -1 : 1;
}

const nameOf = ({ accountId, model, kind, variant, days }: Finding): string =>
  JSON.stringify([accountId, model, kind, variant, days[0]?.day]);
