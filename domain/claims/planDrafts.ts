import type { Pico } from '../money.js';
import type { FindingKind } from '../reconciliation/taxonomy.js';
import { claimCents } from './claimAmount.js';
import {
  type DraftDispute,
  disputedPicoOf,
  inOrder,
  monthsOf,
  type NettedUndercharge,
  nettedPicoOf,
} from './draft.js';

/** Disputes that one claim is drafted over: of one provider, account and kind, and of the month that they begin in. */
export interface DraftGroup {
  /** The same for the same disputes' provider, account, kind and month. */
  key: string;
  provider: string;
  accountId: string;
  kind: FindingKind;
  /** `YYYY-MM` */
  month: string;
  disputes: readonly DraftDispute[];
  /** That it has days in, in their order. */
  months: readonly string[];
  disputedPico: Pico;
}

/** A claim to be drafted. */
export interface PlannedDraft {
  group: DraftGroup;
  undercharges: readonly NettedUndercharge[];
}

/** Disputes that no claim is drafted over, since what was charged too little in their months leaves nothing of them. */
export interface WithheldDraft {
  group: DraftGroup;
  /** What no draft has netted of it in their months, as an amount that is not below zero. */
  underchargedPico: Pico;
}

export interface DraftPlan {
  /** The most dollars first. */
  drafts: PlannedDraft[];
  withheld: WithheldDraft[];
}

/**
 * Which claims are drafted over disputes, and which of the undercharges each of them nets. Every undercharge of the
 * account and of the months that drafts have days in is netted once among them: the largest draft takes what it can bear,
 * the next one the rest. Where some is left that none can bear, the drafts of its month are withheld, so that together
 * they never ask for more than is owed. The same plan whatever order everything is given in; of what a plan leaves
 * another plan drafts nothing.
 */
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

/** The drafts of the groups that are left when, again and again, those are left out that have a month with too much. */
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

/** The disputes by provider, account, kind and the month that they begin in; the most dollars first. */
export function groupDisputes(disputes: readonly DraftDispute[]): DraftGroup[] {
  const groups = new Map<string, DraftDispute[]>();
  for (const dispute of disputes) {
    const { provider, accountId, kind, periodStart } = dispute;
    const key = JSON.stringify([provider, accountId, periodStart.slice(0, 7), kind]);
    groups.set(key, [...(groups.get(key) ?? []), dispute]);
  }
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

/** Gives each undercharge to the first group that can bear it, the largest group and the largest undercharge first. */
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

/** Whether an undercharge is of the account of a group and of a month that it has days in. */
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
