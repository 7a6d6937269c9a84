import { absPico, type Pico } from '../../money.js';
import type { Finding } from '../inference/finding.js';
import { GRADES, type Grade } from '../matching/cells.js';

/** What findings come to. */
export interface FindingSums {
  /** What can be asked back, by how surely. */
  recoverable: Record<Grade, Pico>;
  /** Charged too much, and too little, by the provider's mistake; the latter is negative. */
  overchargedPico: Pico;
  underchargedPico: Pico;
  /** Differences that are the organization's own to put right, in size. */
  ownPico: Pico;
  /** Overcharges that nothing explains: what the financial summary counts as unexplained. */
  unexplainedPico: Pico;
  /** The same of days that the provider may still restate. */
  unexplainedProvisionalPico: Pico;
  /** Undercharges that nothing explains; negative. */
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

/** Whether a finding asks somebody to do something: a mistake of whomever, or a difference without explanation. */
export function asksForAction(finding: Finding): boolean {
  return finding.blame !== 'none' || finding.kind === 'unexplained';
}

/** The surest grade first, then the largest amount; a fixed order for equal ones. */
export function byWeight(a: Finding, b: Finding): number {
  const grade = GRADES.indexOf(a.grade) - GRADES.indexOf(b.grade);
  if (grade !== 0) return grade;
  const [x, y] = [absPico(a.impactPico), absPico(b.impactPico)];
  if (x !== y) return x > y ? -1 : 1;
  return nameOf(a) < nameOf(b) ? -1 : 1;
}

const nameOf = ({ accountId, model, kind, variant, days }: Finding): string =>
  JSON.stringify([accountId, model, kind, variant, days[0]?.day]);
