/**
 * The first generator: a company's series of calls over some weeks, billed by the providers' documented rules,
 * with mistakes of the providers planted in some and benign look-alikes in others. Same seed, size and set: the
 * same bytes.
 */
import { Ledger } from '../bills/ledger.js';
import { writeBills } from '../bills/writeBills.js';
import { DAY_SECONDS, dayText, HOUR_SECONDS } from '../support/days.js';
import { Random } from '../support/random.js';
import type { GeneratedWorld, ToldCall, Truth } from '../world.js';
import { type Booking, book, chargeOf, isBooked, lotOf, rightBooking, type Window } from './booking.js';
import { extraLines } from './extras.js';
import { type Plan, type PlantedMistake, planWorld } from './plan.js';
import { bookedSeconds, type FirstSize, registeredKeys, type Series } from './series.js';
import { type FirstSet, recipeOf } from './sets.js';
import { makeCalls, tellCall, type UsedCall } from './traffic.js';
import { benignTruths, mistakeTruths } from './truths.js';

export const FIRST_SIZE: FirstSize = { series: 120, days: 60, callsPerDay: 40 };

export interface FirstOptions {
  seed: number;
  size?: Partial<FirstSize>;
  set?: FirstSet;
  /** Generates right bills: the same world without its mistakes, whose truths then have no dollars. */
  withoutMistakes?: boolean;
}

/** Books of the whole world, and the right books of the series with a mistake. */
interface Books {
  actual: Ledger;
  right: Ledger;
}

export function generateFirst(options: FirstOptions): GeneratedWorld {
  const size = { ...FIRST_SIZE, ...options.size };
  const set = options.set ?? 'mixed';
  const recipe = recipeOf(set, new Random(options.seed, set, 'recipe'));
  const window: Window = {
    firstDay: recipe.lastDay - size.days + 1,
    lastDay: recipe.lastDay,
    provisionalFrom: recipe.lastDay - 1,
  };
  const plan = planWorld(options.seed, set, recipe, size, window);
  if (options.withoutMistakes) for (const { mistake } of plan.mistakes) undo(mistake);
  const books: Books = { actual: new Ledger(), right: new Ledger() };
  const calls: ToldCall[] = [];
  for (const series of plan.series) bookSeries(series, plan, window, books, calls, options.seed);
  books.actual.extras.push(...extraLines(plan, window, new Random(options.seed, set, 'extras')));
  const costs = books.actual.costRows();
  const truths: Truth[] = [
    ...mistakeTruths(plan, costs, books.right.costRows(), books.actual.extras, window),
    ...benignTruths(plan, books.actual.extras, window),
  ];
  const usageExtras = books.actual.extras.filter((line) => line.kind !== 'credit');
  return {
    seed: options.seed,
    firstDay: dayText(window.firstDay),
    lastDay: dayText(window.lastDay),
    readAtSeconds: (window.lastDay + 1) * DAY_SECONDS + 6 * HOUR_SECONDS,
    calls,
    bills: writeBills(books.actual, window),
    contracts: plan.contracts,
    priceListChanges: plan.priceListChanges,
    keys: keysOf(plan),
    truths,
    spendPico: [...costs, ...usageExtras].reduce((sum, row) => sum + row.pico, 0n),
  };
}

function undo(mistake: PlantedMistake['mistake']): void {
  mistake.bill = (_call, right) => right;
  mistake.extras = undefined;
}

function bookSeries(
  series: Series,
  plan: Plan,
  window: Window,
  books: Books,
  told: ToldCall[],
  seed: number,
): void {
  const random = new Random(seed, 'calls', series.index);
  const planted = plan.mistakes.find((one) => one.series === series);
  const isCompared = plan.mistakes.some((one) => one.series === series || one.mistake.partner === series);
  const isPacific = plan.recipe.pacific.includes(series.provider);
  // The previous day is generated and reported too, since some of its calls are booked on the first day.
  for (const call of makeCalls(series, window.firstDay - 1, window.lastDay, random)) {
    const seconds = bookedSeconds(call, series, isPacific);
    const right = rightOf(call, series, seconds, planted);
    if (isBooked(call, seconds, window)) {
      if (isCompared) book(books.right, right, seconds);
      book(books.actual, wronged(call, series, seconds, right, planted), seconds);
    }
    if (isReported(call, series)) told.push(tellCall(call, series));
  }
}

/** A revoked key has no right usage. */
function rightOf(
  call: UsedCall,
  series: Series,
  seconds: number,
  planted: PlantedMistake | undefined,
): Booking {
  if (call.key.keyId === planted?.mistake.revokedKeyId) return { cost: [], usage: [] };
  return rightBooking(call, series, seconds);
}

function wronged(
  call: UsedCall,
  series: Series,
  seconds: number,
  right: Booking,
  planted: PlantedMistake | undefined,
): Booking {
  if (!planted || seconds < planted.startSeconds || seconds >= planted.endSeconds) return right;
  return planted.mistake.bill(call, right, seconds, chargeOf(call, series, seconds));
}

const COVERAGE_SALT = 1;

function isReported(call: UsedCall, series: Series): boolean {
  const { coverage, isUntold } = series.circumstances;
  return !isUntold(call) && (coverage === 1 || lotOf(call, COVERAGE_SALT) < coverage);
}

function keysOf(plan: Plan): GeneratedWorld['keys'] {
  const revoked = new Map(plan.mistakes.map((one) => [one.mistake.revokedKeyId, one.startSeconds]));
  return registeredKeys(plan.series)
    .filter(({ keyId }) => !plan.registry.unregistered.has(keyId))
    .map((key) => ({ ...key, revokedAtSeconds: revoked.get(key.keyId) ?? null }));
}
