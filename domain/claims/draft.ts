import { groupBy } from '../groupBy.js';
import type { Pico } from '../money.js';
import type { Finding, FindingDay, FindingLine, Gate } from '../reconciliation/engine/index.js';

import type { Grade, Visibility, WaterfallStep } from '../reconciliation/matching/cells.js';
import type { FindingKind } from '../reconciliation/taxonomy.js';
import { claimCents, DISPUTE_TIERS, type DisputeTier } from './financialSummary.js';

/**
 * Groups disputes into claims, nets undercharges, and computes the recoverable amount (docs/claims.md, “How a
 * claim is made”).
 */

export interface DisputedDay extends Omit<FindingDay, 'probability'> {
  /** The variant of the mistake on that day. */
  variant: string;
}

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
  runId: string;
  /** The invoice that contains the mistake; null: the reconciliation engine found it. */
  invoiceId: string | null;
}

/** A dispute of a draft with its evidence. */
export interface DraftDispute {
  /** uuid */
  id: string;
  findingId: string;
  provider: string;
  accountId: string;
  model: string;
  kind: FindingKind;
  tier: DisputeTier;
  /** The finding's original cause, and the dollars of the dispute's days. */
  reason: string;
  /** Notes of the person who opened it. */
  notes: string | null;
  /** Both inclusive, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  amountCents: number;
  billedPico: Pico;
  expectedPico: Pico;
  openedAtMicros: bigint;
  days: readonly DisputedDay[];
  evidence: DraftEvidence;
}

/** An undercharged day of a present finding; `impactPico` is below zero. */
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

export interface DraftClaim {
  /** uuid */
  id: string;
  provider: string;
  accountId: string;
  /** First and last day of its disputes, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  /** The lowest tier of its disputes. */
  tier: DisputeTier;
  /** By first day, then by model, kind and id. */
  disputes: readonly DraftDispute[];
  /** By day, then by model, kind, variant and finding. */
  undercharges: readonly NettedUndercharge[];
  billedPico: Pico;
  expectedPico: Pico;
  /** The disputes' impact, the netted undercharges (not below zero), and their difference. */
  disputedPico: Pico;
  nettedPico: Pico;
  recoverablePico: Pico;
  /** `recoverablePico` rounded down; above zero. */
  recoverableCents: bigint;
}

/** The months of the disputes' days, `YYYY-MM`, unique and ascending. */
export function monthsOf(disputes: readonly Pick<DraftDispute, 'days'>[]): string[] {
  return [...new Set(disputes.flatMap(({ days }) => days.map(({ day }) => day.slice(0, 7))))].sort();
}

export function disputedPicoOf(disputes: readonly Pick<DraftDispute, 'days'>[]): Pico {
  return sumOf(disputes.flatMap(({ days }) => days.map(({ impactPico }) => impactPico)));
}

/** The sum of undercharges as a non-negative amount. */
export function nettedPicoOf(undercharges: readonly Pick<NettedUndercharge, 'impactPico'>[]): Pico {
  return -sumOf(undercharges.map(({ impactPico }) => impactPico));
}

/**
 * The claim for disputes less undercharges of one account; undefined: it is below a cent. @throws RangeError for
 * several accounts.
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

/** Compares lists of texts item by item, by code unit. */
export function inOrder(a: readonly string[], b: readonly string[]): number {
  for (const [at, text] of a.entries()) {
    const other = b[at] ?? '';
    if (text !== other) return text < other ? -1 : 1;
  }
  return 0;
}

/** The disputes of one claim: they share provider, account, kind and the month of their first day. */
export interface DraftGroup {
  /** Equal for disputes of the same provider, account, kind and month. */
  key: string;
  provider: string;
  accountId: string;
  kind: FindingKind;
  month: string;
  disputes: readonly DraftDispute[];
  /** The months of its days, ascending. */
  months: readonly string[];
  disputedPico: Pico;
}

interface PlannedDraft {
  group: DraftGroup;
  undercharges: readonly NettedUndercharge[];
}

/** Disputes without a claim, because the undercharges of their months exceed them. */
export interface WithheldDraft {
  group: DraftGroup;
  /** The undercharges of their months that no draft nets, as a non-negative amount. */
  underchargedPico: Pico;
}

export interface DraftPlan {
  /** Largest amount first. */
  drafts: PlannedDraft[];
  withheld: WithheldDraft[];
}

/** Nets each undercharge once, the largest draft first. Months whose undercharges exceed their drafts are withheld. */
export function planDrafts(
  disputes: readonly DraftDispute[],
  undercharges: readonly NettedUndercharge[],
): DraftPlan {
  const drafts: PlannedDraft[] = [];
  let groups = groupDisputes(disputes);
  let left = undercharges;
  for (;;) {
    const drafted = draftWhatIsBorne(groups, left);
    if (drafted.length === 0) break;
    drafts.push(...drafted);
    const done = new Set(drafted.map(({ group }) => group));
    const netted = new Set(drafted.flatMap((draft) => draft.undercharges));
    groups = groups.filter((group) => !done.has(group));
    left = left.filter((one) => !netted.has(one));
  }
  const withheld = groups.map((group) => ({
    group,
    underchargedPico: nettedPicoOf(left.filter((one) => isOf(group, one))),
  }));
  return { drafts: drafts.sort((a, b) => bySize(a.group, b.group)), withheld };
}

/** The drafts of the groups that remain after repeatedly removing those of a month with too many undercharges. */
function draftWhatIsBorne(
  groups: readonly DraftGroup[],
  undercharges: readonly NettedUndercharge[],
): PlannedDraft[] {
  let asking = groups;
  for (;;) {
    const { drafts, left } = allot(asking, undercharges);
    const borne = asking.filter(
      (group) => claimCents(group.disputedPico) > 0n && !left.some((one) => isOf(group, one)),
    );
    if (borne.length === asking.length) return drafts;
    asking = borne;
  }
}

/** Groups disputes by provider, account, kind and the month of their first day; largest amount first. */
function groupDisputes(disputes: readonly DraftDispute[]): DraftGroup[] {
  const groups = groupBy(disputes, ({ provider, accountId, kind, periodStart }) =>
    JSON.stringify([provider, accountId, periodStart.slice(0, 7), kind]),
  );
  return [...groups]
    .flatMap(([key, members]) => {
      const [first] = members;
      if (!first) return [];
      const { provider, accountId, kind, periodStart } = first;
      const of = { key, provider, accountId, kind, month: periodStart.slice(0, 7) };
      const months = monthsOf(members);
      return [{ ...of, disputes: members, months, disputedPico: disputedPicoOf(members) }];
    })
    .sort(bySize);
}

/** Assigns each undercharge to the first group that can bear it, with the largest groups and undercharges first. */
function allot(
  groups: readonly DraftGroup[],
  undercharges: readonly NettedUndercharge[],
): { drafts: PlannedDraft[]; left: NettedUndercharge[] } {
  let left = [...undercharges].sort(byDepth);
  const drafts = groups.map((group) => {
    const taken: NettedUndercharge[] = [];
    const others: NettedUndercharge[] = [];
    let restPico = group.disputedPico;
    for (const one of left) {
      const isBorne = isOf(group, one) && claimCents(restPico + one.impactPico) > 0n;
      (isBorne ? taken : others).push(one);
      if (isBorne) restPico += one.impactPico;
    }
    left = others;
    return { group, undercharges: taken };
  });
  return { drafts, left };
}

function isOf(group: DraftGroup, { provider, accountId, day }: NettedUndercharge): boolean {
  return (
    group.provider === provider && group.accountId === accountId && group.months.includes(day.slice(0, 7))
  );
}

function bySize(a: DraftGroup, b: DraftGroup): number {
  if (a.disputedPico !== b.disputedPico) return a.disputedPico > b.disputedPico ? -1 : 1;
  return inOrder([a.key], [b.key]);
}

function byDepth(a: NettedUndercharge, b: NettedUndercharge): number {
  if (a.impactPico !== b.impactPico) return a.impactPico < b.impactPico ? -1 : 1;
  return inOrder(
    [a.day, a.model, a.kind, a.variant, a.findingId],
    [b.day, b.model, b.kind, b.variant, b.findingId],
  );
}
