/** Which disputes become which claims, what is netted, and what is left to ask for (docs/claims.md, “How a claim is made”). */

import type { Pico } from '../money.js';
import type { Finding, FindingDay, FindingLine, Gate } from '../reconciliation/inference/finding.js';
import type { Grade, Visibility, WaterfallStep } from '../reconciliation/matching/cells.js';
import type { FindingKind } from '../reconciliation/taxonomy.js';
import { claimCents } from './claimAmount.js';
import { DISPUTE_TIERS, type DisputeTier } from './financial/decision.js';

/** A day of a dispute as it was when the dispute was opened. */
export interface DisputedDay extends Omit<FindingDay, 'probability'> {
  /** The way in which the mistake was made that day. */
  variant: string;
}

/** What a dispute rested on when it was opened. */
export interface DraftEvidence {
  grade: Grade;
  probability: number;
  matchProbability: number;
  visibility: Visibility;
  missing: readonly Gate[];
  next: Finding['next'];
  lines: readonly FindingLine[];
  waterfall: readonly WaterfallStep[];
  advice: readonly string[];
  weightSet: string;
  /** The run whose result it was. */
  runId: string;
}

/** A dispute of a draft, with everything that it was opened on. */
export interface DraftDispute {
  /** uuid */
  id: string;
  findingId: string;
  provider: string;
  accountId: string;
  model: string;
  kind: FindingKind;
  tier: DisputeTier;
  /** The finding's cause as it was, and the dollars of the dispute's own days. */
  reason: string;
  /** Of whoever opened it. */
  notes: string | null;
  /** Both inclusive, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  amountCents: number;
  billedPico: Pico;
  expectedPico: Pico;
  openedAtMicros: bigint;
  /** In their order. */
  days: readonly DisputedDay[];
  evidence: DraftEvidence;
}

/** A day that the provider charged too little, of a finding as it stands now. `impactPico` is below zero. */
export interface NettedUndercharge {
  findingId: string;
  day: string;
  provider: string;
  accountId: string;
  model: string;
  kind: FindingKind;
  variant: string;
  billedPico: Pico;
  expectedPico: Pico;
  impactPico: Pico;
  /** The finding's cause, and the dollars of this day. */
  reason: string;
}

/** A claim that is about to be made: one provider, one account. */
export interface DraftClaim {
  /** uuid */
  id: string;
  provider: string;
  accountId: string;
  /** First and last day of its disputes, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  /** Of the least sure of its disputes. */
  tier: DisputeTier;
  /** By first day, then by model, kind and id. */
  disputes: readonly DraftDispute[];
  /** By day, then by model, kind, variant and finding. */
  undercharges: readonly NettedUndercharge[];
  /** Of the disputes’ days. */
  billedPico: Pico;
  expectedPico: Pico;
  /** Disputes’ impact, what was netted (not below zero), and the first less the second. */
  disputedPico: Pico;
  nettedPico: Pico;
  recoverablePico: Pico;
  /** `recoverablePico` rounded down; above zero. */
  recoverableCents: bigint;
}

/** The months that disputes have days in, `YYYY-MM`, each once and in their order. */
export function monthsOf(disputes: readonly Pick<DraftDispute, 'days'>[]): string[] {
  return [...new Set(disputes.flatMap(({ days }) => days.map(({ day }) => day.slice(0, 7))))].sort();
}

/** What disputes come to by their days. */
export function disputedPicoOf(disputes: readonly Pick<DraftDispute, 'days'>[]): Pico {
  return sumOf(disputes.flatMap(({ days }) => days.map(({ impactPico }) => impactPico)));
}

/** What undercharges come to, as an amount that is not below zero. */
export function nettedPicoOf(undercharges: readonly Pick<NettedUndercharge, 'impactPico'>[]): Pico {
  return -sumOf(undercharges.map(({ impactPico }) => impactPico));
}

/**
 * The claim over disputes of one provider and account, less undercharges of the same; undefined where less than a cent is
 * left. The same whatever order they are given in. Throws RangeError for none, and for several accounts.
 */
export function netDraft(
  id: string,
  given: { disputes: readonly DraftDispute[]; undercharges: readonly NettedUndercharge[] },
): DraftClaim | undefined {
  const disputes = [...given.disputes].sort(byFirstDay);
  const undercharges = [...given.undercharges].sort(byDay);
  const [first] = disputes;
  if (!first) throw new RangeError('a claim is over at least one dispute');
  const { provider, accountId } = first;
  for (const one of [...disputes, ...undercharges])
    if (one.provider !== provider || one.accountId !== accountId)
      throw new RangeError('a claim is over one account of one provider');
  const days = disputes.flatMap((dispute) => dispute.days);
  const disputedPico = disputedPicoOf(disputes);
  const nettedPico = nettedPicoOf(undercharges);
  const recoverablePico = disputedPico - nettedPico;
  const recoverableCents = claimCents(recoverablePico);
  if (recoverableCents <= 0n) return undefined;
  return {
    ...{ id, provider, accountId, disputes, undercharges },
    periodStart: first.periodStart,
    periodEnd: disputes.map(({ periodEnd }) => periodEnd).reduce((a, b) => (a > b ? a : b)),
    tier: leastSure(disputes.map(({ tier }) => tier)),
    billedPico: sumOf(days.map(({ billedPico }) => billedPico)),
    expectedPico: sumOf(days.map(({ expectedPico }) => expectedPico)),
    ...{ disputedPico, nettedPico, recoverablePico, recoverableCents },
  };
}

/** LOW before MEDIUM before HIGH. */
export function leastSure(tiers: readonly DisputeTier[]): DisputeTier {
  const rank = Math.max(...tiers.map((tier) => DISPUTE_TIERS.indexOf(tier)));
  return DISPUTE_TIERS[rank] ?? 'LOW';
}

function sumOf(amounts: readonly Pico[]): Pico {
  return amounts.reduce((sum, amount) => sum + amount, 0n);
}

const byFirstDay = (a: DraftDispute, b: DraftDispute): number =>
  inOrder([a.periodStart, a.model, a.kind, a.id], [b.periodStart, b.model, b.kind, b.id]);

const byDay = (a: NettedUndercharge, b: NettedUndercharge): number =>
  inOrder([a.day, a.model, a.kind, a.variant, a.findingId], [b.day, b.model, b.kind, b.variant, b.findingId]);

/** Texts one after the other, each by its code units. */
export function inOrder(a: readonly string[], b: readonly string[]): number {
  for (const [at, text] of a.entries()) {
    const other = b[at] ?? '';
    if (text !== other) return text < other ? -1 : 1;
  }
  return 0;
}
