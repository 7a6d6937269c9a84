/** Which disputes become which claims, what is netted, and what is left to ask for (docs/claims.md, “How a claim is made”). */
import type { DisputeTier } from '../financial/decision.js';
import type { Pico } from '../money.js';
import type { Grade, Visibility, WaterfallStep } from '../reconciliation/cells.js';
import type { Finding, FindingDay, FindingLine, Gate } from '../reconciliation/inference/finding.js';
import type { FindingKind } from '../reconciliation/taxonomy.js';

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
  /** The finding's sentence as it was. */
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
  /** The finding's sentence. */
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
