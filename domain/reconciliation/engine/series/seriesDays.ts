/** A series' days as hypotheses see them: meters of the bill, each with what was observed of it. */

import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../../events/event.js';
import { groupBy } from '../../../groupBy.js';
import { microsOfDay, shiftDay } from '../../../period.js';
import type { Provider } from '../../../providers.js';
import { type Circumstances, DayRates, DiscountedRates, isTokenClass } from '../../audit/dayRates.js';
import { byText, type ObservedVector, type SeriesDayEvidence } from '../../evidence/evidenceText.js';
import type { ChargePrices } from '../../matching/charges.js';
import { apportion, expectedOfMeter } from '../../matching/classLines.js';
import { namedBy } from '../../matching/joinTotals.js';
import { takesCalls } from '../../matching/lineUse.js';
import { buildMeters, type Meter, type MeterPart } from '../../matching/meters.js';
import { freshBesidesCached } from '../../matching/profiles.js';
import { bookedPartsOf, metersAsBooked } from '../causes/bookedLate.js';
import type { Booked, MeterDay, SeriesContext, SeriesDay } from '../causes/cause.js';
import { CACHED, sumOf } from '../causes/predict.js';

/** A day of the series that can still be filled in with its neighbours. */
type OpenDay = { -readonly [K in keyof SeriesDay]: SeriesDay[K] };

/**
 * The days in their order, each knowing the calendar days beside it. `discounts`: percent off everything by day, for days on
 * which terms hold that are not entered.
 */
export function seriesDaysOf(
  provider: Provider,
  evidence: readonly SeriesDayEvidence[],
  prices: ChargePrices,
  context: SeriesContext,
  discounts: ReadonlyMap<string, number> = new Map(),
): SeriesDay[] {
  const days = [...evidence]
    .sort((a, b) => byText(a.day, b.day))
    .map((one) => dayOf(provider, one, prices, context, discounts.get(one.day) ?? 0));
  const byDay = new Map(days.map((one) => [one.day, one]));
  for (const one of days) {
    one.before = byDay.get(shiftDay(one.day, -1)) ?? null;
    one.after = byDay.get(shiftDay(one.day, 1)) ?? null;
  }
  for (const [day, meters] of metersAsBooked(days)) Object.assign(day, { meters });
  const booked = days.map(bookedPartsOf);
  days.forEach((one, at) => {
    const parts = booked[at];
    if (parts) one.meters = one.meters.map((meter) => withBooked(meter, parts.get(meter.tokenClass)));
  });
  return days;
}

const withBooked = (meter: MeterDay, booked: Booked | undefined): MeterDay =>
  booked ? { ...meter, booked } : meter;

function dayOf(
  provider: Provider,
  evidence: SeriesDayEvidence,
  prices: ChargePrices,
  context: SeriesContext,
  discount: number,
): OpenDay {
  const dayMicros = microsOfDay(evidence.day);
  const agreed =
    discount > 0
      ? new DiscountedRates(prices.agreed, provider, dayMicros, discount)
      : new DayRates(prices.agreed, provider, dayMicros);
  const isListed = prices.agreed === prices.list && discount === 0;
  const list = isListed ? agreed : new DayRates(prices.list, provider, dayMicros);
  return {
    day: evidence.day,
    evidence,
    pricedAs: evidence.pricedAs,
    meters: metersOf(evidence, agreed, context),
    agreed,
    list,
    ...(discount > 0 ? { untoldDiscount: discount } : {}),
  };
}

interface OpenMeter {
  meter: Meter;
  tokenClass: TokenClass;
  observedMix: MeterPart[];
  observed: bigint;
  failed: bigint;
  interrupted: bigint;
}

function unused(meter: Meter, tokenClass: TokenClass): OpenMeter {
  return { meter, tokenClass, observedMix: [], observed: 0n, failed: 0n, interrupted: 0n };
}

/** By their meters, the quantities as which calls are divided among lines, where these are not the billed ones. */
type Weights = ReadonlyMap<Meter, bigint>;

function metersOf(evidence: SeriesDayEvidence, rates: DayRates, context: SeriesContext): MeterDay[] {
  const billable = evidence.observed.filter((cell) => cell.status !== 'error');
  // Only the cells' order by hour differs from the day's own match, and no hour is asked for here.
  const asCells = billable.map(({ hours: _, ...cell }) => ({
    ...cell,
    accountId: evidence.accountId,
    hourMicros: 0n,
  }));
  const billed = buildMeters(evidence.billed, evidence.usage, asCells, rates, evidence.pricedAs);
  const placedBy = (weights: Weights): OpenMeter[] => {
    const open = billed.flatMap((meter): OpenMeter[] =>
      isTokenClass(meter.tokenClass) ? [unused(meter, meter.tokenClass)] : [],
    );
    for (const vector of evidence.observed)
      for (const tokenClass of TOKEN_CLASSES)
        if (vector.tokens[tokenClass] > 0n)
          place(open, tokenClass, vector, evidence, rates, context, weights);
    return open;
  };
  const open = placedBy(new Map());
  const fresh = freshByPlace(open);
  return (fresh.size > 0 ? placedBy(fresh) : open).map((one, index) =>
    closed(one, index, evidence.pricedAs, rates),
  );
}

/** The fresh input on lines that differ by their place alone, where these count what is cached on them once more. */
function freshByPlace(open: readonly OpenMeter[]): Weights {
  const uses = groupBy(open, ({ meter: { serviceTier, isBatch, longContext } }) =>
    JSON.stringify([serviceTier, isBatch, longContext]),
  );
  const fresh = new Map<Meter, bigint>();
  for (const lines of uses.values()) {
    const inputs = lines.filter((one) => one.tokenClass === 'input');
    if (inputs.length < 2 || lines.some(({ meter }) => meter.quantity === null)) continue;
    const cached = lines.filter((one) => CACHED.includes(one.tokenClass));
    const billed = ({ meter }: OpenMeter) => meter.quantity ?? 0n;
    const seen = ({ observed }: OpenMeter) => observed;
    const bills = inputs.map((one) => {
      const beside = cached.filter(({ meter }) => meter.region === one.meter.region);
      return { input: billed(one), cached: sumOf(beside.map(billed)) };
    });
    const calls = { input: sumOf(inputs.map(seen)), cached: sumOf(cached.map(seen)) };
    freshBesidesCached(bills, calls)?.forEach((quantity, at) => {
      const line = inputs[at];
      if (line) fresh.set(line.meter, quantity);
    });
  }
  return fresh;
}

/** Books a vector's tokens of a class on the meters that take it, or on one of its own where the bill has none. */
function place(
  open: OpenMeter[],
  tokenClass: TokenClass,
  vector: ObservedVector,
  evidence: SeriesDayEvidence,
  rates: DayRates,
  { tells }: SeriesContext,
  divideBy: Weights,
): void {
  const hasQuantities = evidence.visibility === 'V2' || evidence.visibility === 'V3';
  const circumstances = circumstancesOf(vector, rates);
  const same = open.filter((one) => one.tokenClass === tokenClass);
  const quantity = vector.tokens[tokenClass] * QUANTITY_ONE;
  if (open.some(({ meter }) => meter.crossed)) {
    const held = open.map(({ meter }) => heldOf(meter, tokenClass, circumstances));
    if (held.some((one) => one > 0n)) {
      apportion(quantity, held).forEach((share, at) => {
        const taker = open[at];
        if (taker && share > 0n) book(taker, share, vector, circumstances);
      });
      return;
    }
  }
  let takers = same.filter(({ meter }) =>
    takesCalls(
      meter,
      same.flatMap((other) => (other.meter === meter ? [] : [other.meter])),
      circumstances,
    ),
  );
  // Clients that never report a tier may have used any: the bill's own tiers are no disagreement.
  if (!tells.serviceTier && vector.serviceTier === '')
    takers = same.filter(({ meter }) =>
      takesCalls({ ...meter, serviceTier: '' }, [], { ...circumstances, serviceTier: '' }),
    );
  if (takers.length === 0) {
    const own = unbilledMeter(tokenClass, circumstances, hasQuantities);
    open.push(own);
    takers = [own];
  }
  const weights = takers.map(
    ({ meter }) => divideBy.get(meter) ?? meter.quantity ?? (meter.amountPico > 0n ? meter.amountPico : 0n),
  );
  const shares = takers.length === 1 ? [quantity] : apportion(quantity, weights);
  takers.forEach((taker, at) => {
    book(taker, shares[at] ?? 0n, vector, circumstances);
  });
}

/** The part of these calls on the line, by the usage report. */
function heldOf(meter: Meter, of: TokenClass, calls: Circumstances): bigint {
  return meter.parts.reduce(
    (sum, { circumstances: at, quantity, tokenClass = meter.tokenClass }) =>
      tokenClass === of &&
      at.serviceTier === calls.serviceTier &&
      at.isBatch === calls.isBatch &&
      (at.longContext || at.contextBand > 0) === calls.longContext
        ? sum + quantity
        : sum,
    0n,
  );
}

function circumstancesOf(vector: ObservedVector, rates: DayRates): Circumstances {
  return {
    serviceTier: rates.tier(vector.serviceTier),
    isBatch: vector.isBatch,
    longContext: vector.contextBand > 0,
    contextBand: vector.contextBand,
    region: null,
  };
}

function book(
  taker: OpenMeter,
  quantity: bigint,
  vector: ObservedVector,
  circumstances: Circumstances,
): void {
  if (vector.status === 'error') {
    taker.failed += quantity;
    return;
  }
  taker.observed += quantity;
  if (vector.status === 'cancelled') taker.interrupted += quantity;
  taker.observedMix.push({ circumstances: { ...circumstances, region: taker.meter.region }, quantity });
}

/** A class that was used and is on no line of the bill: nothing was charged for it. */
function unbilledMeter(
  tokenClass: TokenClass,
  circumstances: Circumstances,
  hasQuantities: boolean,
): OpenMeter {
  const meter: Meter = {
    tokenClass,
    serviceTier: circumstances.serviceTier,
    isBatch: circumstances.isBatch,
    longContext: circumstances.longContext,
    region: null,
    amountPico: 0n,
    listAmountPico: null,
    rows: 0,
    roundingPico: 0n,
    quantity: hasQuantities ? 0n : null,
    quantitySource: 'none',
    parts: hasQuantities ? [{ circumstances, quantity: 0n }] : [],
    split: hasQuantities ? 'bill' : 'none',
    lengthTold: true,
  };
  return unused(meter, tokenClass);
}

function closed(one: OpenMeter, index: number, pricedAs: string | null, rates: DayRates): MeterDay {
  const { meter, tokenClass, observed, failed, interrupted } = one;
  const own = meter.parts.filter((part) => part.quantity > 0n);
  const plain: MeterPart = { circumstances: namedBy(meter), quantity: meter.quantity ?? 0n };
  const mix = own.length > 0 ? own : one.observedMix.length > 0 ? one.observedMix : [plain];
  return {
    index,
    meter,
    tokenClass,
    mix,
    expectedPico: expectedOfMeter(meter, pricedAs, rates),
    observed,
    failed,
    interrupted,
  };
}
