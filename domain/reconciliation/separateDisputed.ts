import { keepDays } from './hypotheses/accountFindings.js';
import type { Finding } from './inference/finding.js';

/** A day that a dispute is, or was, about. */
export interface DisputedDay {
  disputeId: string;
  /** The finding that the dispute was opened over. */
  findingId: string;
  model: string;
  day: string;
  kind: string;
  variant: string;
  /** False once the dispute is resolved. */
  live: boolean;
}

/** Days of a finding that are published as one finding. */
export interface FoundPart {
  finding: Finding;
  /** The finding that people have decided on, and whose dispute has these days; null: the days are in no dispute. */
  decidedWith: string | null;
  /**
   * The live dispute, where it has the days under another kind that is no longer found on them: they may be the same
   * dollars, so nobody decides on them before it is resolved.
   */
  heldBy: string | null;
}

/**
 * Cuts what is found in an account so that no part has both days of a dispute and other days, or days of two disputed
 * findings: however findings split or merge from run to run, a disputed day stays decided and any other day stays open.
 * Undercharges are in no dispute and stay whole.
 */
export function separateDisputed(found: readonly Finding[], disputed: readonly DisputedDay[]): FoundPart[] {
  const byPlace = new Map<string, DisputedDay[]>();
  for (const one of [...disputed].sort(byLiveness)) {
    const place = key(one.model, one.day);
    byPlace.set(place, [...(byPlace.get(place) ?? []), one]);
  }
  const kinds = new Set<string>();
  const explanations = new Set<string>();
  for (const { model, kind, variant, direction, days } of found)
    if (direction === 'overcharge')
      for (const { day } of days) {
        kinds.add(key(model, day, kind));
        explanations.add(key(model, day, kind, variant));
      }
  const holderOf = ({ model, kind, variant }: Finding, day: string): DisputedDay | undefined => {
    const candidates = byPlace.get(key(model, day)) ?? [];
    return (
      candidates.find((one) => one.kind === kind && one.variant === variant) ??
      candidates.find((one) => one.kind === kind && !explanations.has(key(model, day, kind, one.variant))) ??
      candidates.find((one) => one.kind !== kind && one.live && !kinds.has(key(model, day, one.kind)))
    );
  };
  return found.flatMap((finding) => {
    if (finding.direction !== 'overcharge') return [{ finding, decidedWith: null, heldBy: null }];
    const parts = new Map<string, FoundPart & { days: Set<string> }>();
    for (const { day } of finding.days) {
      const holder = holderOf(finding, day);
      const decidedWith = holder?.findingId ?? null;
      const heldBy = holder && holder.kind !== finding.kind ? holder.disputeId : null;
      const name = key(decidedWith ?? '', heldBy ?? '');
      const part = parts.get(name) ?? { finding, decidedWith, heldBy, days: new Set() };
      part.days.add(day);
      parts.set(name, part);
    }
    return [...parts.values()].flatMap(({ days, decidedWith, heldBy }) => {
      const part = keepDays(finding, (day) => days.has(day));
      return part ? [{ finding: part, decidedWith, heldBy }] : [];
    });
  });
}

const key = (...names: string[]): string => JSON.stringify(names);

/** Disputes that are not resolved first, in an order that does not depend on how they were read. */
function byLiveness(a: DisputedDay, b: DisputedDay): number {
  if (a.live !== b.live) return a.live ? -1 : 1;
  return a.disputeId < b.disputeId ? -1 : a.disputeId > b.disputeId ? 1 : 0;
}
