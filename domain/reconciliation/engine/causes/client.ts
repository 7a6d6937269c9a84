/** Mistakes of the client in what it counts: no provider may be accused before these are ruled out. */

import { groupBy } from '../../../groupBy.js';
import { STANDARD_TIER } from '../../../pricing/rateCards.js';
import type { ObservedSource } from '../../evidence/evidenceText.js';
import {
  CHEAPEST_PERCENT,
  CIRCUMSTANCE_PERCENT,
  COUNTED_ALIKE_PERCENT,
  OFF_PERCENT,
  TWICE_TENTHS,
} from '../calibration.js';
import { cachedOnTop } from './cache.js';
import {
  coversMost,
  type Hypothesis,
  having,
  isEpisode,
  type MeterDay,
  type Run,
  type SeriesContext,
  type SeriesDay,
  sentenceOf,
  servicesOf,
  textOf,
  touchesEdge,
  type Variant,
} from './cause.js';
import { isCountedAlike } from './moves.js';
import {
  areLinesLabelled,
  hasUntoldCalls,
  isMixOpen,
  isTierOpen,
  LABELLED_TIERS,
  partnerOfClass,
  placeKey,
} from './places.js';
import {
  asBatch,
  CACHED,
  countedVariant,
  countsByClass,
  metersOf,
  multipleOf,
  otherCircumstances,
  quantityVariant,
  sumOf,
} from './predict.js';
import { contractTerms } from './terms.js';

const WORDS = {
  input_includes_cached: 'The events count cached tokens as fresh input too.',
  input_includes_reads: 'The events count tokens read from the cache as fresh input too.',
  some_input_includes_cached: 'Some of the events count cached tokens as fresh input too.',
  cached_taken_off_twice:
    'The events count less fresh input than is billed, by exactly the cached tokens: they seem to be taken off a count that has none.',
  cache_not_told: 'The events do not tell cached from fresh input.',
  class_missing: 'The events lack a class of tokens that is billed: %.',
  lifetimes_missing: 'The events do not tell how long what they wrote to the cache is kept.',
  reasoning_missing: 'The events count fewer output tokens than are billed: reasoning seems to be left out.',
  reasoning_twice: 'The events count more output tokens than are billed: reasoning seems to be added on top.',
  batch_not_flagged: 'The events do not say which calls were batch calls.',
  tier_not_told: 'The events do not say which service tier served a call.',
  tier_as_requested: 'The events name another service tier than the one that served a call.',
  length_miscounted: 'The events make requests longer than they were.',
  sent_twice: 'The events hold every call twice.',
};

const ADVICE: Readonly<Record<string, (services: string) => string>> = {
  input_includes_cached: (services) =>
    `Your events of ${services} count cached tokens inside the input: send input without them, or name the convention of the counts.`,
  input_includes_reads: (services) =>
    `Your events of ${services} count tokens read from the cache inside the input: send input without them.`,
  some_input_includes_cached: (services) =>
    `Your events of ${services} count tokens read from the cache inside the input: send input without them.`,
  cached_taken_off_twice: (services) =>
    `Look whether your events of ${services} take cached tokens off an input that comes without them: Anthropic's input_tokens has none, OpenAI's has. If the fresh input of your answers is what the events say, the bill counts cached tokens twice: ask the provider.`,
  reasoning_missing: (services) =>
    `Your events of ${services} lack reasoning tokens: send output_tokens of the provider’s usage, which holds them.`,
  reasoning_twice: (services) =>
    `Your events of ${services} add reasoning to the output, which holds it: send output_tokens as the provider gives it.`,
  batch_not_flagged: (services) =>
    `Your events of ${services} do not flag batch calls: send is_batch and batch_id.`,
  tier_not_told: (services) =>
    `Your events of ${services} lack the service tier: send service_tier of the provider’s answer.`,
  tier_as_requested: (services) =>
    `Your events of ${services} name the tier that was asked for: send service_tier of the provider’s answer.`,
  length_miscounted: (services) =>
    `Your events of ${services} count more input than the requests had, so that they pass the boundary of long requests: look whether cached tokens are counted twice.`,
  sent_twice: (services) =>
    `Your events of ${services} come twice: leave one of the two senders out, or send the provider’s request id so that repeats are told.`,
};

/** The advice to services that cannot report cached tokens, where some are known. */
const CACHE_ADVICE: Readonly<Record<string, (services: string) => string>> = {
  cache_not_told: (services) =>
    `Your events of ${services} lack cache tokens: send cache_read and cache_creation of the provider’s usage with every call.`,
  class_missing: (services) =>
    `Your events of ${services} lack a class of tokens: send the provider’s usage object whole.`,
  lifetimes_missing: (services) =>
    `Your events of ${services} lack the lifetimes of cache writes: send the cache_creation object of the provider’s usage.`,
};

export const clientCounts: Hypothesis = {
  kind: 'client_metering_error',
  nature: 'quantity',
  blame: 'own',
  needs: ['quantity'],
  variants: (day, context) => [
    ...includesCached(day),
    ...someIncludeCached(day),
    ...having({ lastsAs: isOfARelease }, takenOffTwice(day)),
    ...cacheNotTold(day),
    ...missingClasses(day),
    ...(context.tells.longWrites ? [] : lifetimesMissing(day)),
    ...having({ lastsAs: isOfARelease }, reasoning(day)),
    ...told(day, 'batch_not_flagged', 'batch', 'bill'),
    ...(isAnyTierUntold(day) ? told(day, 'tier_not_told', 'tier', 'bill') : []),
    ...told(day, 'tier_as_requested', 'tier', 'calls'),
    ...(isCountedAlike(day)
      ? []
      : having({ lastsAs: isNoEpisode }, told(day, 'length_miscounted', 'length', 'calls'))),
    ...sentTwice(day),
  ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: (variant, sources) => {
    const aboutCache = textOf(CACHE_ADVICE, variant);
    if (aboutCache) return [aboutCache(servicesOf(sources))];
    const text = textOf(ADVICE, variant);
    return text ? [text(servicesOf(sources, true))] : [];
  },
};

/** The counts of clients change with a release and then stay; a bill's mistake has an end on both sides. */
const isOfARelease = (run: Run, context: SeriesContext): boolean =>
  coversMost(run, context) || touchesEdge(run, context);

const isNoEpisode = (run: Run, context: SeriesContext): boolean => !isEpisode(run, context);

/** Services that report themselves that they lack the class: they are named first. */
export function cannotTell(sources: readonly ObservedSource[]): boolean {
  return sources.some((source) => source.callsWithoutCache > 0);
}

function includesCached(day: SeriesDay): Variant[] {
  const without = (name: string, classes: readonly MeterDay['tokenClass'][]) => {
    const quantities = new Map<number, bigint>();
    for (const meter of metersOf(day, 'input')) {
      const cached = sumOf(classes.map((one) => partnerOfClass(day, meter, one)?.observed ?? 0n));
      if (cached > 0n && cached <= meter.observed) quantities.set(meter.index, meter.observed - cached);
    }
    return quantities.size > 0 ? [countedVariant(day, name, quantities)] : [];
  };
  const hasWrites = metersOf(day, 'cache_write_5m', 'cache_write_1h').some((meter) => meter.observed > 0n);
  return [
    ...without('input_includes_cached', CACHED),
    ...(hasWrites ? without('input_includes_reads', ['cache_read']) : []),
  ];
}

/**
 * Clients of a part of the calls count the cached tokens as input too: more input was told than billed, by some of the
 * cached tokens and by no more. Services are used in other shares every day, so how many these are is left free.
 */
function someIncludeCached(day: SeriesDay): Variant[] {
  const free = new Map<number, null>();
  for (const meter of metersOf(day, 'input')) {
    const billed = meter.meter.quantity ?? 0n;
    const cached = sumOf(CACHED.map((one) => partnerOfClass(day, meter, one)?.observed ?? 0n));
    const more = meter.observed - billed;
    const isAllReads = more === partnerOfClass(day, meter, 'cache_read')?.observed;
    if (billed > 0n && more * 100n > billed * COUNTED_ALIKE_PERCENT && more < cached && !isAllReads)
      free.set(meter.index, null);
  }
  return free.size > 0 ? [quantityVariant(day, 'some_input_includes_cached', free)] : [];
}

/** Fresh input that lacks the cached tokens: a bill that counts them twice shows the same. */
function takenOffTwice(day: SeriesDay): Variant[] {
  return cachedOnTop(day).map(({ quantities }) => countedVariant(day, 'cached_taken_off_twice', quantities));
}

/** The observed use of a group of meters, divided as the bill divides it: the sum is tested. */
function dividedAsBilled(groups: ReadonlyMap<string, readonly MeterDay[]>): Map<number, bigint> {
  const quantities = new Map<number, bigint>();
  for (const group of groups.values()) {
    const billed = sumOf(group.map((meter) => meter.meter.quantity ?? 0n));
    const observed = sumOf(group.map((meter) => meter.observed));
    const isKnown = group.every((meter) => meter.meter.quantity !== null);
    if (!isKnown || group.length < 2 || billed <= 0n || observed === 0n) continue;
    for (const meter of group)
      quantities.set(meter.index, (observed * (meter.meter.quantity ?? 0n)) / billed);
  }
  return quantities;
}

const placeAlone = (meter: MeterDay) => placeKey({ ...meter, tokenClass: 'input' });

/** Fresh and cached input together are right, but fewer were reported as cached than were billed so. */
function cacheNotTold(day: SeriesDay): Variant[] {
  const cached = metersOf(day, ...CACHED);
  const billed = sumOf(cached.map((meter) => meter.meter.quantity ?? 0n));
  const observed = sumOf(cached.map((meter) => meter.observed));
  const none = observed === 0n && billed > 0n;
  if (!none && !(cannotTell(day.evidence.sources) && observed < billed)) return [];
  const groups = groupBy([...metersOf(day, 'input'), ...cached], placeAlone);
  const quantities = dividedAsBilled(groups);
  return quantities.size > 0 ? [quantityVariant(day, 'cache_not_told', quantities)] : [];
}

/** A class that is billed and was never seen, or that some clients report to lack, while the others fit. */
function missingClasses(day: SeriesDay): Variant[] {
  const isUntold = cannotTell(day.evidence.sources);
  return countsByClass(day).flatMap(({ tokenClass, meters, billed, observed }) => {
    const isPart = isUntold && CACHED.includes(tokenClass) && observed < billed;
    if ((observed > 0n && !isPart) || billed === 0n || meters.length === day.meters.length) return [];
    const free = new Map(meters.map((meter) => [meter.index, null]));
    return [quantityVariant(day, `class_missing:${tokenClass}`, free)];
  });
}

function lifetimesMissing(day: SeriesDay): Variant[] {
  const writes = metersOf(day, 'cache_write_5m', 'cache_write_1h');
  const isLongBilled = writes.some(
    (meter) => meter.tokenClass === 'cache_write_1h' && (meter.meter.quantity ?? 0n) > 0n,
  );
  const quantities = isLongBilled ? dividedAsBilled(groupBy(writes, placeAlone)) : new Map();
  return quantities.size > 0 ? [quantityVariant(day, 'lifetimes_missing', quantities)] : [];
}

/** Output alone off, by more than counting does. */
function reasoning(day: SeriesDay): Variant[] {
  const outputs = metersOf(day, 'output').filter((meter) => (meter.meter.quantity ?? 0n) > 0n);
  const billed = sumOf(outputs.map((meter) => meter.meter.quantity ?? 0n));
  const observed = sumOf(outputs.map((meter) => meter.observed));
  if (observed === 0n || billed === 0n) return [];
  const free = new Map(outputs.map((meter) => [meter.index, null]));
  if (billed * 100n > observed * OFF_PERCENT) return [quantityVariant(day, 'reasoning_missing', free)];
  if (observed * 100n > billed * OFF_PERCENT) return [quantityVariant(day, 'reasoning_twice', free)];
  return [];
}

/** Some calls name no tier: they may have used any. */
function isAnyTierUntold({ evidence }: SeriesDay): boolean {
  return evidence.observed.some((one) => one.serviceTier === '');
}

/** Each circumstance of lines that calls may not tell or tell wrongly, and the lines that have it. */
const HAS = {
  batch: ({ mix }: MeterDay) => mix.every(({ circumstances: at }) => at.isBatch),
  tier: ({ mix }: MeterDay) => mix.every(({ circumstances: at }) => at.serviceTier !== STANDARD_TIER),
  length: ({ mix }: MeterDay) => mix.every(({ circumstances: at }) => at.longContext || at.contextBand > 0),
} as const;
type Circumstance = keyof typeof HAS;

/**
 * The calls divided as the bill divides them between lines that differ by this circumstance alone: a wrong tier makes no
 * request longer, and no line of batch another.
 */
function dividedBut(day: SeriesDay, wrong: Circumstance): Map<number, bigint> {
  const others = (Object.keys(HAS) as Circumstance[]).filter((name) => name !== wrong);
  return dividedAsBilled(
    groupBy(day.meters, (meter) => [meter.tokenClass, ...others.map((name) => HAS[name](meter))].join('|')),
  );
}

/**
 * The bill has more of these than the calls, which do not tell them all apart, or the calls have more, which tell some wrongly:
 * each class as a whole is right.
 */
function told(day: SeriesDay, name: string, wrong: Circumstance, more: 'bill' | 'calls'): Variant[] {
  const own = day.meters.filter(HAS[wrong]);
  const billed = sumOf(own.map(({ meter }) => meter.quantity ?? 0n));
  const observed = sumOf(own.map((meter) => meter.observed));
  const [most, least] = more === 'bill' ? [billed, observed] : [observed, billed];
  const quantities = most * 100n <= least * CIRCUMSTANCE_PERCENT ? undefined : dividedBut(day, wrong);
  return quantities && quantities.size > 0 ? [quantityVariant(day, name, quantities)] : [];
}

/** Half of what was observed, everywhere. */
function sentTwice(day: SeriesDay): Variant[] {
  const seen = day.meters.filter((meter) => meter.observed > 0n && (meter.meter.quantity ?? 0n) > 0n);
  const isTwice = seen.some((meter) => meter.observed * 10n > (meter.meter.quantity ?? 0n) * TWICE_TENTHS);
  if (!isTwice) return [];
  return [
    countedVariant(day, 'sent_twice', new Map(day.meters.map((meter) => [meter.index, meter.observed / 2n]))),
  ];
}

const CLIENT_AMOUNTS_WORDS = {
  cents_as_dollars: 'The amounts are a hundred times what they should be: cents were read as dollars.',
  dollars_as_cents: 'The amounts are a hundredth of what they should be: dollars were read as cents.',
  batch_not_flagged: 'The amounts are those of batch calls, and the events name no batch call.',
  tier_not_told: 'The amounts are those of the % tier, and the events name no tier.',
  tier_not_named:
    'The amounts are those of the % tier, and neither the events nor the lines of the bill name it.',
  tier_as_requested: 'The amounts are those of standard calls, and the events name another tier: %.',
  cheaper_share:
    'The amounts are % percent below what the events give, as if more of the calls had used a cheaper tier or batch than the events tell.',
};

const NO_TIER = (services: string) =>
  `Your events of ${services} lack the service tier: send service_tier of the provider’s answer, or import the provider’s usage report, which tells it.`;

const CLIENT_AMOUNTS_ADVICE: Readonly<Record<string, (services: string) => string>> = {
  batch_not_flagged: (services) =>
    `Your events of ${services} do not flag batch calls: send is_batch and batch_id, or import the provider’s usage report, which tells them.`,
  tier_not_told: NO_TIER,
  tier_not_named: NO_TIER,
  tier_as_requested: (services) =>
    `Your events of ${services} name the tier that was asked for: send service_tier of the provider’s answer.`,
  cheaper_share: (services) =>
    `Some of your events of ${services} name no tier: send service_tier of the provider’s answer and is_batch with every call, or import the provider’s usage report, which tells both. If they are complete, a discount is missing under /pricing/contract-rates.`,
};

/** Mistakes in the amounts of the bill's file or of the client's calls: the organization's, not the provider's. */
export const clientAmounts: Hypothesis = {
  kind: 'client_metering_error',
  nature: 'rate',
  blame: 'own',
  needs: ['quantity'],
  variants: (day, context) => [
    ...multipleOf(day, 'cents_as_dollars', 100n, 1n),
    ...multipleOf(day, 'dollars_as_cents', 1n, 100n),
    ...(context.tells.batch || !isMixOpen(day) ? [] : otherCircumstances(day, 'batch_not_flagged', asBatch)),
    ...(isTierOpen(day) ? tiers(day) : []),
    ...(isMixOpen(day) ? asRequested(day) : []),
    ...cheaperShare(day, context),
  ],
  describe: (variant) => sentenceOf(CLIENT_AMOUNTS_WORDS, variant),
  advise: (variant, sources) => {
    const text = textOf(CLIENT_AMOUNTS_ADVICE, variant);
    if (text) return [text(servicesOf(sources, true))];
    return ['Look at the unit of the amounts in the file: the column must hold dollars. Import it again.'];
  },
};

function tiers(day: SeriesDay): Variant[] {
  if (day.pricedAs === null) return [];
  return day.agreed.tiersOf(day.pricedAs).flatMap((tier) => {
    const isUnnamed = LABELLED_TIERS.has(tier) && areLinesLabelled(day);
    const variants = otherCircumstances(
      day,
      `${isUnnamed ? 'tier_not_named' : 'tier_not_told'}:${tier}`,
      (at) => (at.isBatch || at.serviceTier !== 'standard' ? at : { ...at, serviceTier: tier }),
    );
    return isUnnamed ? having({ isTierUnnamed: true }, variants) : variants;
  });
}

/** A tier that clients asked for and did not get: the line is that of standard calls. */
function asRequested(day: SeriesDay): Variant[] {
  const told = new Set(
    day.meters.flatMap(({ mix }) =>
      mix.flatMap(({ circumstances: at }) => (at.isBatch ? [] : [at.serviceTier])),
    ),
  );
  return [...told]
    .filter((tier) => tier !== STANDARD_TIER)
    .sort()
    .flatMap((tier) =>
      otherCircumstances(day, `tier_as_requested:${tier}`, (at) =>
        at.isBatch || at.serviceTier !== tier ? at : { ...at, serviceTier: STANDARD_TIER },
      ),
    );
}

/**
 * One discount on everything is as well a mixture, where the bill folds tiers and batch into one line, the series' clients
 * use several, and some of the day's calls name none.
 */
function cheaperShare(day: SeriesDay, context: SeriesContext): Variant[] {
  const { tells } = context;
  if (!(tells.otherTiers || tells.batch) || !isMixOpen(day) || !hasUntoldCalls(day)) return [];
  return contractTerms.variants(day, context).flatMap((terms) => {
    const percent = terms.percentBelow ?? 0;
    return percent > CHEAPEST_PERCENT ? [] : [{ ...terms, name: `cheaper_share:${percent}` }];
  });
}
