/**
 * Calls counted on another meter of their class than the one that they belong on. What the meters hold together stays what
 * was seen, in every class, while its division does not: the divided sum is what is tested, and the part that was moved is
 * whatever the bill makes it. Only those dollars are taken that hold whatever the unobserved calls were.
 */

import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import { absPico, type Pico } from '../../../money.js';
import type { Circumstances } from '../../audit/dayRates.js';
import { apportion } from '../../matching/classLines.js';
import { takesCalls } from '../../matching/lineUse.js';
import type { MeterPart } from '../../matching/meters.js';
import { ALIKE, UNSEEN_MAX } from '../calibration.js';
import { having, type MeterDay, type SeriesDay, type Variant } from './cause.js';
import { amountAs, quantityVariant, sumOf } from './predict.js';

/** Units that leave the first arrive at the second. */
export type Move = readonly [from: MeterDay, to: MeterDay];

/** All units observed on some meters are billed on others of the same day. No variant where nothing moves. */
export function allMoved(day: SeriesDay, name: string, moves: readonly Move[]): Variant[] {
  const { meant, quantities } = movedWhole(moves);
  return meant.length > 0 ? withProof(day, name, quantities, meant).map(asCounted) : [];
}

/** The same from one class to another, of which no part is certain without all calls. */
export function movedVariant(day: SeriesDay, name: string, moves: readonly Move[]): Variant[] {
  const { quantities } = movedWhole(moves);
  return quantities.size > 0 ? [quantityVariant(day, name, quantities)] : [];
}

function movedWhole(moves: readonly Move[]) {
  const meant = moves.filter(([from]) => from.observed > 0n);
  const quantities = new Map<number, bigint>();
  for (const [from, to] of meant) {
    quantities.set(from.index, (quantities.get(from.index) ?? from.observed) - from.observed);
    quantities.set(to.index, (quantities.get(to.index) ?? to.observed) + from.observed);
  }
  return { meant, quantities };
}

/** Calls alone give the quantities. */
const asCounted = (variant: Variant): Variant => ({ ...variant, isCounted: true });

/**
 * Of meters that hold several uses, those that `isMeant` takes stand on others of the same day, under the circumstances that
 * `as` makes of theirs; what stays is of the other uses alone, and so are its rates. No variant where no meter holds both.
 * Calls show how much of each use there was: a usage report may divide the line as it is once the others have left it.
 */
export function usesMoved(
  day: SeriesDay,
  name: string,
  moves: readonly Move[],
  isMeant: (at: Circumstances) => boolean,
  as: (at: Circumstances) => Circumstances,
): Variant[] {
  const quantities = new Map<number, bigint>();
  const mixes = new Map<number, readonly MeterPart[]>();
  const worth = new Map<number, readonly MeterPart[]>();
  const meant: Move[] = [];
  for (const move of moves) {
    const [from, to] = move;
    const stays = from.mix.filter((one) => !isMeant(one.circumstances));
    if (stays.length === 0) continue;
    const isAlone = moves.every((other) => other === move || other[0].tokenClass !== from.tokenClass);
    const moved = isAlone
      ? seenUses(day, from).filter((one) => isMeant(one.circumstances))
      : scaledTo(from.mix, from.observed).filter((one) => isMeant(one.circumstances));
    const quantity = sumOf(moved.map((one) => one.quantity));
    if (quantity <= 0n || quantity >= from.observed) continue;
    quantities.set(from.index, from.observed - quantity);
    quantities.set(to.index, (quantities.get(to.index) ?? to.observed) + quantity);
    const arrives = moved.map((one) => ({ ...one, circumstances: as(one.circumstances) }));
    mixes.set(from.index, stays);
    mixes.set(to.index, [...(mixes.get(to.index) ?? scaledTo(to.mix, to.observed)), ...arrives]);
    // Divided without the moved uses, neither line's own mixture is theirs.
    if (stays.length === from.mix.length) worth.set(from.index, moved).set(to.index, arrives);
    meant.push(move);
  }
  if (meant.length === 0) return [];
  const asMixed = (meter: MeterDay) => ({ ...meter, mix: mixes.get(meter.index) ?? meter.mix });
  const worthOf = (meter: MeterDay, units: bigint) => {
    const mix = worth.get(meter.index);
    return mix ? amountAs(day, { ...meter, mix }, units) : null;
  };
  return withProof(day, name, quantities, meant, asMixed).map((one) => ({ ...one, worthOf }));
}

/** The uses of the calls that the line takes by what it names, those that failed left out. */
export function seenUses({ evidence, agreed }: SeriesDay, { meter, tokenClass }: MeterDay): MeterPart[] {
  return evidence.observed.flatMap(({ status, tokens, serviceTier, isBatch, contextBand }) => {
    if (status === 'error' || tokens[tokenClass] === 0n) return [];
    const longContext = contextBand > 0;
    const use = { serviceTier: agreed.tier(serviceTier), isBatch, longContext };
    if (!takesCalls(meter, [], use)) return [];
    const circumstances = { ...use, contextBand, region: meter.region };
    return [{ circumstances, quantity: tokens[tokenClass] * QUANTITY_ONE }];
  });
}

/** The same uses in the same proportions, as parts of another quantity. */
export function scaledTo(mix: readonly MeterPart[], quantity: bigint): MeterPart[] {
  const shares = apportion(
    quantity,
    mix.map((one) => one.quantity),
  );
  return mix.map((one, at) => ({ ...one, quantity: shares[at] ?? 0n }));
}

/** Some of the units observed on some meters are billed on others: the bill itself shows how many. */
export function partlyMoved(day: SeriesDay, name: string, moves: readonly Move[]): Variant[] {
  const quantities = new Map<number, bigint>();
  const meant: Move[] = [];
  for (const move of moves) {
    const [from, to] = move;
    const [onFrom, onTo] = [billedOf(day, from), billedOf(day, to)];
    const { moved, unseen } = movedOf(day, move);
    if (moved <= 0n || unseen * UNSEEN_MAX > moved) continue;
    const observed = from.observed + to.observed;
    const arrived = (observed * onTo) / (onFrom + onTo);
    quantities.set(to.index, arrived);
    quantities.set(from.index, observed - arrived);
    meant.push(move);
  }
  return meant.length > 0 ? having({ isAnyPart: true }, withProof(day, name, quantities, meant)) : [];
}

/**
 * With the part that holds whatever was not seen; and, where the agreed rates are not the list's, with the list's for
 * what moved. `asUsed` returns meters with the uses that they hold then.
 */
function withProof(
  day: SeriesDay,
  name: string,
  quantities: ReadonlyMap<number, bigint>,
  moves: readonly Move[],
  asUsed: (meter: MeterDay) => MeterDay = (meter) => meter,
): Variant[] {
  const proven = new Map<number, bigint>();
  const moved = new Map<number, bigint>();
  for (const move of moves) {
    const [from, to] = move;
    const { moved: whole, unseen } = movedOf(day, move);
    const sure = whole > unseen ? whole - unseen : 0n;
    proven.set(from.index, (proven.get(from.index) ?? 0n) - sure);
    proven.set(to.index, (proven.get(to.index) ?? 0n) + sure);
    moved.set(to.index, (moved.get(to.index) ?? 0n) + whole);
  }
  const plain: Variant = {
    ...quantityVariant(day, name, quantities),
    amountOf: (meter, quantity) => amountAs(day, asUsed(meter), quantity),
    provenOf: (meter) => proven.get(meter.index) ?? 0n,
  };
  // Without a call that was moved for sure, the list's rates alone would be what is explained.
  if (day.list === day.agreed || ![...proven.values()].some((units) => units > 0n)) return [plain];
  return [
    plain,
    {
      ...plain,
      // The words of a variant stand under what is before its colon.
      name: name.includes(':') ? `${name} at list` : `${name}:at list`,
      amountOf: (meter, quantity) =>
        amountPartlyAtList(day, asUsed(meter), quantity, moved.get(meter.index) ?? 0n),
    },
  ];
}

/** A contract is often applied to the rates alone that it was written for: what was moved is charged at the list's. */
function amountPartlyAtList(day: SeriesDay, meter: MeterDay, quantity: bigint, moved: bigint): Pico | null {
  const listed = moved < quantity ? moved : quantity;
  const atList = listed > 0n ? amountAs(day, meter, listed, { rates: day.list }) : 0n;
  const agreed = quantity > listed ? amountAs(day, meter, quantity - listed, {}) : 0n;
  return atList === null || agreed === null ? null : atList + agreed;
}

/**
 * The excess of the second meter over its observed units, and the difference of both together from the observed ones:
 * unobserved calls, or calls that are billed on the day beside.
 */
function movedOf(day: SeriesDay, [from, to]: Move): { moved: bigint; unseen: bigint } {
  const [onFrom, onTo] = [billedOf(day, from), billedOf(day, to)];
  const apart = onFrom + onTo - from.observed - to.observed;
  return { moved: onTo - to.observed, unseen: absPico(apart) };
}

/** As billed; where the bill has an amount alone, the quantity that it buys at the agreed rates. */
function billedOf(day: SeriesDay, meter: MeterDay): bigint {
  const { quantity, amountPico } = meter.meter;
  if (quantity !== null) return quantity;
  const whole = amountAs(day, meter, PROBE);
  return whole === null || whole <= 0n || amountPico <= 0n ? 0n : (amountPico * PROBE) / whole;
}

/** A quantity large enough to show a rate: a million million tokens, in 1e-12 tokens. */
const PROBE = 10n ** 24n;

const OUTPUT: ReadonlySet<string> = new Set(['output', 'output_audio']);

/**
 * Every request that the provider counts was seen, and every class of tokens as a whole is what was seen: then an event is a
 * request and has its right size, so that which requests were long is no question of how events count.
 */
export function isCountedAlike(day: SeriesDay): boolean {
  const { usage, billed, observed } = day.evidence;
  const reports = [usage, billed].map((cells) => cells.filter((one) => one.tokenClass === 'requests'));
  const [counts] = reports.filter((cells) => cells.length > 0);
  if (!counts) return false;
  const requests = counts.reduce((sum, one) => sum + (one.quantity ?? 0n), 0n) / QUANTITY_ONE;
  const calls = observed.reduce((sum, one) => (one.status === 'error' ? sum : sum + one.calls), 0);
  const totals = new Map<string, { billed: bigint; observed: bigint }>();
  for (const one of day.meters) {
    if (one.meter.quantity === null) return false;
    const known = totals.get(one.tokenClass) ?? { billed: 0n, observed: 0n };
    known.billed += one.meter.quantity;
    known.observed += one.observed;
    totals.set(one.tokenClass, known);
  }
  return (
    areAlike(requests, BigInt(calls)) &&
    [...totals].every(([name, sums]) => OUTPUT.has(name) || areAlike(sums.billed, sums.observed))
  );
}

const areAlike = (a: bigint, b: bigint): boolean => absPico(a - b) * ALIKE <= a;
