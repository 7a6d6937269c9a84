import { DEFAULT_ACCOUNT } from '../../billing/billedRow.js';
import { MICROS_PER_DAY, microsOfDay } from '../../period.js';
import type { PriceBook } from '../../pricing/priceBook.js';
import type { Provider } from '../../providers.js';
import { DayRates } from '../audit/dayRates.js';
import type { ChargeRates } from '../audit/judgeMeter.js';
import { findRateMismatches } from '../audit/mergeMismatches.js';
import {
  billedKey,
  dayUsageOf,
  observedKey,
  type SeriesDayEvidence,
  sortedBy,
  sourcesOf,
  usageKey,
  vectorsOf,
} from '../evidence/evidenceText.js';
import { type BucketInput, type BuiltBucket, buildBucket } from './bucket.js';
import type { BilledCell, BucketReason, DayInput, DayResult, ObservedCell, UsageCell } from './cells.js';
import { hoursOf } from './hours.js';
import { type LinkWeights, linkModels, type ModelLinks } from './linkModels.js';
import { dividerAmong } from './profiles.js';

/** The account of a bucket that compares calls of unknown account with the sum over all accounts. */
export const ALL_ACCOUNTS = '';

/** Reserved tiers that the provider leaves out of its cost report, as documented. */
const TIERS_OUTSIDE_COSTS: Partial<Record<Provider, ReadonlySet<string>>> = {
  anthropic: new Set(['priority']),
};

interface Group {
  accountId: string;
  accountKnown: boolean;
  model: string;
  fixedReason: BucketReason | null;
  billed: BilledCell[];
  usage: UsageCell[];
  observed: ObservedCell[];
  links: ModelLinks | undefined;
}

/**
 * Compares a provider's day deterministically; provider costs add up to the billed cells. `link`: the bits of a
 * match.
 */
export function matchDay(
  book: PriceBook,
  provider: Provider,
  given: DayInput,
  link?: LinkWeights,
): DayResult {
  const input = inFixedOrder(given);
  const dayMicros = microsOfDay(input.day);
  const rates = new DayRates(book, provider, dayMicros);
  const list = new DayRates(book.list, provider, dayMicros);
  const groups = groupByModel(input, provider, rates);
  const result: DayResult = { buckets: [], evidence: [], rateMismatches: [] };
  for (const group of groups) {
    const bucket = bucketInput(group, input, dayMicros, rates);
    const built = buildBucket(bucket, rates, link);
    const { pricedAs } = bucket;
    result.buckets.push(built.bucket);
    result.evidence.push(evidenceOf(bucket, built, input));
    if (input.withHours)
      result.buckets.push(...hoursOf(built.bucket, group.usage, group.observed, pricedAs, rates));
    result.rateMismatches.push(...mismatchesOf(group, built, input.day, pricedAs, { agreed: rates, list }));
  }
  return result;
}

/** Sorts the cells, so that the result does not depend on their order. */
function inFixedOrder(input: DayInput): DayInput {
  return {
    ...input,
    billed: sortedBy(input.billed, billedKey),
    usage: sortedBy(input.usage, usageKey),
    observed: sortedBy(input.observed, observedKey),
    covered: sortedBy(input.covered, (account) => account.accountId),
  };
}

function evidenceOf(bucket: BucketInput, { bucket: built }: BuiltBucket, input: DayInput): SeriesDayEvidence {
  const models = [...new Set(bucket.observed.map((cell) => cell.model))];
  // A day that is as the bill has it needs no explanation, and so no hours.
  const keepsHours = built.matchStatus !== 'matched';
  return {
    day: input.day,
    accountId: bucket.accountId,
    model: bucket.model,
    pricedAs: bucket.pricedAs,
    level: bucket.level,
    fixedReason: bucket.fixedReason,
    visibility: built.visibility,
    provisional: bucket.provisional,
    accountKnown: bucket.accountKnown,
    notYetObserved: bucket.notYetObserved,
    billed: bucket.billed,
    usage: dayUsageOf(bucket.usage, keepsHours),
    observed: vectorsOf(bucket.observed, keepsHours),
    sources: sourcesOf(input.sources, (account) => isComparedWith(bucket.accountId, account, input), models),
  };
}

/** Whether calls of this account are compared with the charges of the billed one, as in `groupByModel`. */
function isComparedWith(billed: string, account: string, { covered }: DayInput): boolean {
  if (account === billed) return true;
  if (billed === ALL_ACCOUNTS) return covered.some(({ accountId }) => accountId === account);
  return covered.length === 1 && (account === '' || billed === DEFAULT_ACCOUNT);
}

function mismatchesOf(
  group: Group,
  built: BuiltBucket,
  day: string,
  pricedAs: string | null,
  rates: ChargeRates,
) {
  if (group.fixedReason) return [];
  return findRateMismatches(
    { day, accountId: group.accountId, model: group.model },
    built.meters,
    pricedAs,
    rates,
  );
}

/** The billed id prices a group, so that both sides use the provider's rates; without a bill, the observed id. */
function pricedAsOf(group: Group): string | null {
  return group.billed.find((cell) => cell.model !== null)?.model ?? group.observed[0]?.model ?? null;
}

function bucketInput(group: Group, input: DayInput, dayMicros: bigint, rates: DayRates): BucketInput {
  const billedModels = [
    ...new Set(group.billed.flatMap((cell) => (cell.model === null ? [] : [cell.model]))),
  ];
  const observedModels = [...new Set(group.observed.map((cell) => cell.model))];
  return {
    startMicros: dayMicros,
    accountId: group.accountId,
    model: group.model,
    pricedAs: pricedAsOf(group),
    level:
      group.links?.level(billedModels, observedModels) ?? levelWithout(billedModels, observedModels, rates),
    billed: group.billed,
    usage: group.usage,
    observed: group.observed,
    provisional: isProvisional(group.accountId, input, dayMicros),
    accountKnown: group.accountKnown,
    notYetObserved: isNotYetObserved(group.accountId, input, dayMicros),
    fixedReason: group.fixedReason,
  };
}

const levelWithout = (billed: readonly string[], observed: readonly string[], rates: DayRates) =>
  linkModels(billed, observed, rates).level(billed, observed);

/** A day is provisional if its bill was last read while the provider could still restate it. */
function isProvisional(accountId: string, input: DayInput, dayMicros: bigint): boolean {
  return input.covered.some((account) => {
    if (accountId !== ALL_ACCOUNTS && account.accountId !== accountId) return false;
    const closedFrom = dayMicros + BigInt(account.provisionalDays) * MICROS_PER_DAY;
    return input.nowMicros < closedFrom || account.fetchedAtMicros < closedFrom;
  });
}

/** Whether the day began before the account's first event, or that of calls of unknown account. */
function isNotYetObserved(accountId: string, input: DayInput, dayMicros: bigint): boolean {
  const isAny = accountId === ALL_ACCOUNTS || accountId === DEFAULT_ACCOUNT;
  const own = [...input.observedSince].filter(
    ([account]) => isAny || account === ALL_ACCOUNTS || account === accountId,
  );
  const since = own.reduce<bigint | undefined>(
    (first, [, micros]) => (first === undefined || micros < first ? micros : first),
    undefined,
  );
  return since === undefined || since > dayMicros;
}

function groupByModel(input: DayInput, provider: Provider, rates: DayRates): Group[] {
  const accounts = input.covered.map((account) => account.accountId);
  const only = accounts.length === 1 ? accounts[0] : undefined;
  const observed = only === undefined ? input.observed : attributeTo(only, input.observed);
  const named = new Set(input.observed.flatMap((cell) => (cell.accountId === '' ? [] : [cell.accountId])));
  const isAmbiguous = only === DEFAULT_ACCOUNT && named.size > 1;
  const unknown = observed.filter((cell) => cell.accountId === '');
  const merged = mergedModels(input, unknown, rates);
  const groups: Group[] = [];
  for (const accountId of accounts) {
    const isOwn = (cell: { accountId: string; model: string | null }) =>
      cell.accountId === accountId && !isMerged(cell.model, merged, rates);
    groups.push(
      ...groupAccount(
        accountId,
        !isAmbiguous,
        input.billed.filter(isOwn),
        input.usage.filter(isOwn),
        observed.filter(isOwn),
        provider,
        rates,
      ),
    );
  }
  if (merged.size > 0) {
    const isShared = (cell: { model: string | null; accountId: string }) =>
      isMerged(cell.model, merged, rates) && (cell.accountId === '' || accounts.includes(cell.accountId));
    groups.push(
      ...groupAccount(
        ALL_ACCOUNTS,
        false,
        input.billed.filter(isShared),
        input.usage.filter(isShared),
        observed.filter(isShared),
        provider,
        rates,
      ),
    );
  }
  return groups;
}

/** The calls of the only billed account: those without an account, or all calls if the bill names no account. */
function attributeTo(only: string, observed: readonly ObservedCell[]): ObservedCell[] {
  return observed.map((cell) =>
    cell.accountId === '' || only === DEFAULT_ACCOUNT ? { ...cell, accountId: only } : cell,
  );
}

/** Families of models with some calls of unknown account while the bill has several accounts. */
function mergedModels(input: DayInput, unknown: readonly ObservedCell[], rates: DayRates): Set<string> {
  return input.covered.length > 1 ? new Set(unknown.map((cell) => rates.family(cell.model))) : new Set();
}

function isMerged(model: string | null, merged: ReadonlySet<string>, rates: DayRates): boolean {
  return model !== null && merged.size > 0 && merged.has(rates.family(model));
}

function groupAccount(
  accountId: string,
  accountKnown: boolean,
  billed: readonly BilledCell[],
  usage: readonly UsageCell[],
  observed: readonly ObservedCell[],
  provider: Provider,
  rates: DayRates,
): Group[] {
  const groups = new Map<string, Group>();
  const into = (key: string, model: string, fixedReason: BucketReason | null, links?: ModelLinks): Group => {
    const known = groups.get(key) ?? {
      accountId,
      accountKnown,
      model,
      fixedReason,
      billed: [],
      usage: [],
      observed: [],
      links,
    };
    groups.set(key, known);
    return known;
  };
  const ofModels = billed.flatMap((cell) => (cell.model !== null && cell.observable ? [cell.model] : []));
  const links = linkModels(
    ofModels,
    observed.map((cell) => cell.model),
    rates,
  );
  const outside = TIERS_OUTSIDE_COSTS[provider];
  for (const cell of billed) {
    if (cell.model !== null && cell.observable) {
      const key = rates.entryKey(cell.model);
      const group = into(key, rates.nameOf(key), null, links);
      group.billed.push(cell);
      // If a part of the bill has no amount in dollars, the model's whole day cannot be judged.
      if (cell.unconverted) group.fixedReason = 'unconverted';
    } else
      into(
        `line ${cell.lineItem}`,
        cell.lineItem,
        cell.unconverted ? 'unconverted' : cell.observable ? 'unparsed_line' : 'not_observable',
      ).billed.push(cell);
  }
  // Amounts alone do not show how many calls each profile had: they would be divided by the very prices in question.
  const hasCounts = (key: string) => groups.get(key)?.billed.every((cell) => cell.quantity !== null) ?? false;
  const ofProfiles = observed.filter((cell) => {
    const profiles = links.profilesOf(cell.model);
    return profiles.length > 0 && profiles.every(hasCounts);
  });
  for (const cell of observed) {
    if (ofProfiles.includes(cell)) continue;
    const key = links.billedKeyOf(cell.model);
    const tier = rates.tier(cell.serviceTier);
    if (outside?.has(tier))
      into(
        `${key} ${tier}`,
        `${rates.nameOf(key)} (${tier} tier)`,
        'not_in_cost_report',
        links,
      ).observed.push(cell);
    else into(key, rates.nameOf(key), null, links).observed.push(cell);
  }
  const dividers = new Map<string, ReturnType<typeof dividerAmong>>();
  for (const cell of ofProfiles) {
    const own = links.profilesOf(cell.model).flatMap((key) => groups.get(key) ?? []);
    const divide =
      dividers.get(cell.model) ??
      dividerAmong(
        own,
        ofProfiles.filter((one) => one.model === cell.model),
      );
    dividers.set(cell.model, divide);
    divide(cell).forEach((part, at) => {
      if (part.calls > 0 || Object.values(part.tokens).some((count) => count > 0n))
        own[at]?.observed.push(part);
    });
  }
  for (const cell of usage) if (cell.model !== null) groups.get(rates.entryKey(cell.model))?.usage.push(cell);
  nameApart([...groups.values()]);
  return [...groups.values()];
}

/** Groups of an account need unique names: a label may equal a model, and an unpriced id a family. */
function nameApart(groups: readonly Group[]): void {
  const taken = new Set<string>();
  for (const group of [...groups].sort(
    (a, b) => Number(a.fixedReason !== null) - Number(b.fixedReason !== null),
  )) {
    const plain = group.model;
    for (let number = 2; taken.has(group.model); number += 1) group.model = `${plain} (${number})`;
    taken.add(group.model);
  }
}
