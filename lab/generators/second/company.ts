/** Generates a company of the second kind: its calls, its bills, and the truth about both. */
import { Ledger } from '../bills/ledger.js';
import { listRates, periodAt, type Rates, scaled } from '../bills/rateBook.js';
import { writeBills } from '../bills/writeBills.js';
import { DAY_SECONDS, dayNumber, dayOf, dayText, pacificOffsetSeconds } from '../support/days.js';
import { FEMTO_PER_PICO } from '../support/money.js';
import { Random } from '../support/random.js';
import type { GeneratedVisibility, GeneratedWorld, ToldCall, Truth } from '../world.js';
import { contractBodies, staleEntry, staleModel } from './knownPrices.js';
import { type Charged, drawKind, type MistakeKind, OVERCHARGES, UNDERCHARGES } from './mistakes.js';
import { planSeries, REVOKED_AFTER_SECONDS, type SeriesPlan } from './series.js';
import { FAULT_CAUSES, isSilent, planTelling, type Telling, tell } from './telling.js';
import { callsOf, type RealCall } from './traffic.js';

/** Sets of worlds by name: all mistakes, or none of a provider. */
export const SECOND_SETS = ['mixed', 'benign_only'] as const;

export interface SecondOptions {
  seed: number;
  set: string;
  /** Factor on the number of accounts. */
  size: number;
}

const FIRST_DAY = dayNumber('2026-07-12');
const LAST_DAY = dayNumber('2026-09-18');
const LATE_READ_SECONDS = 10 * 3_600;
/** When the bills are read, the last day is not fully billed yet. */
const LATE_SHARE = 0.25;

interface Mistake {
  kind: MistakeKind;
  from: number;
  to: number;
  /** By day, femto-dollars. */
  impact: Map<number, bigint>;
}

interface Company {
  random: Random;
  ledger: Ledger;
  calls: ToldCall[];
  truths: Truth[];
  /** Charged by series and day, femto-dollars. */
  spend: Map<string, bigint>;
}

/** Generates a company; equal options give equal results. Error for an unknown set. */
export function makeSecondWorld({ seed, set, size }: SecondOptions): GeneratedWorld {
  if (!(SECOND_SETS as readonly string[]).includes(set))
    throw new Error(`the second generator has the sets ${SECOND_SETS.join(', ')}, not ${set}`);
  const span = { firstDay: FIRST_DAY, lastDay: LAST_DAY };
  const random = new Random('second', seed);
  const plans = planSeries(random, span, size);
  const stale = staleModel(random, plans);
  const company: Company = { random, ledger: new Ledger(), calls: [], truths: [], spend: new Map() };
  for (const series of plans)
    addSeries(company, series, { seed, set, isStale: series.model.model === stale });
  const { ledger } = company;
  const spendPico = ledger.costRows().reduce((sum, row) => sum + row.pico, 0n);
  return {
    seed,
    firstDay: dayText(FIRST_DAY),
    lastDay: dayText(LAST_DAY),
    readAtSeconds: (LAST_DAY + 1) * DAY_SECONDS + LATE_READ_SECONDS,
    calls: company.calls.sort((a, b) => a.endSeconds - b.endSeconds),
    bills: writeBills(ledger, span),
    contracts: contractBodies(plans),
    priceListChanges: stale === null ? [] : [staleEntry(plans, stale)],
    keys: plans.flatMap(keysOf),
    truths: company.truths,
    spendPico,
  };
}

function addSeries(
  company: Company,
  series: SeriesPlan,
  options: { seed: number; set: string; isStale: boolean },
): void {
  const random = new Random('second', options.seed, series.id);
  const telling = planTelling(random, series);
  const mistakes = options.set === 'benign_only' ? [] : planMistakes(random, series);
  for (const call of callsOf(random, series)) {
    book(company, random, call, mistakes);
    const told = tell(random, call, telling);
    if (told) company.calls.push(told);
  }
  mistakes.forEach((mistake, at) => {
    const truth = truthOf(company, series, telling, mistake, at, options.isStale);
    company.truths.push(...byClosure(truth).filter(({ impactByDay }) => impactByDay.size > 0));
  });
  for (const [cause, form] of benignOf(series, telling, options.isStale))
    company.truths.push(benignTruth(series, cause, form));
}

/** Two fifths of the series have up to three consecutive mistakes of any kinds. */
function planMistakes(random: Random, series: SeriesPlan): Mistake[] {
  const mistakes: Mistake[] = [];
  const count = random.chance(0.4) ? random.whole(1, 3) : 0;
  let earliest = series.firstDay * DAY_SECONDS;
  const end = (series.lastDay + 1) * DAY_SECONDS;
  for (let at = 0; at < count; at += 1) {
    const from = Math.floor(earliest + random.between(0.5, 20) * DAY_SECONDS);
    const to = Math.floor(from + random.between(1.3, 14) * DAY_SECONDS);
    if (to > end) break;
    const days = { firstDay: dayOf(from), lastDay: dayOf(to) };
    const kind = drawKind(random, random.chance(0.25) ? UNDERCHARGES : OVERCHARGES, series, days);
    if (kind) mistakes.push({ kind, from, to, impact: new Map() });
    earliest = to + DAY_SECONDS;
  }
  return mistakes;
}

/** Books the charges of a call, including planted mistakes, and records the wrong part. */
function book(company: Company, random: Random, call: RealCall, mistakes: readonly Mistake[]): void {
  const { series, endSeconds } = call;
  const right = call.status === 'error' ? undefined : rightCharge(call);
  const mistake = mistakes.find(({ from, to }) => endSeconds >= from && endSeconds < to);
  const wrong = mistake?.kind.change(call, right, random);
  const charges = wrong ?? (right ? [right] : []);
  // Google's days are Pacific days. A request in the last minutes of a day may be booked on the next one.
  const local = endSeconds - (series.model.provider === 'google' ? pacificOffsetSeconds(endSeconds) : 0);
  const isLateBooked = local % DAY_SECONDS > DAY_SECONDS - 900 && random.chance(0.4);
  const bookedAt = local + (isLateBooked ? 900 : 0);
  const day = dayOf(bookedAt);
  if (day > LAST_DAY || (day === LAST_DAY && random.chance(LATE_SHARE))) return;
  let impact = -(right ? amountOf(right) : 0n);
  for (const charged of charges) {
    const charge = { ...chargeWords(call), ...charged, requests: 1 };
    company.ledger.addCost(charge, bookedAt);
    company.ledger.addUsage(charge, bookedAt);
    impact += amountOf(charged);
  }
  const spendKey = `${series.id}|${day}`;
  const spent = charges.reduce((sum, charged) => sum + amountOf(charged), 0n);
  company.spend.set(spendKey, (company.spend.get(spendKey) ?? 0n) + spent);
  if (mistake && wrong && impact !== 0n) mistake.impact.set(day, (mistake.impact.get(day) ?? 0n) + impact);
}

function rightCharge(call: RealCall): Charged {
  const { series, asked, tokens, keyId } = call;
  const listed = listRates(series.model, periodAt(series.model, dayOf(call.endSeconds)), asked);
  return { tokens, rates: discounted(listed, series), isLong: asked.isLong, keyId };
}

const discounted = (rates: Rates, series: SeriesPlan): Rates =>
  series.contract ? scaled(rates, series.contract.perMille) : rates;

function chargeWords({ series, project, asked }: RealCall) {
  return {
    provider: series.model.provider,
    accountId: series.accountId,
    project,
    model: series.model.billed,
    isBatch: asked.isBatch,
    tier: asked.tier,
    geo: series.model.provider === 'anthropic' ? asked.geo : '',
  };
}

const amountOf = ({ tokens, rates }: Charged): bigint =>
  tokens.reduce((sum, count, at) => sum + BigInt(count) * (rates[at] ?? 0n), 0n);

/** Faults of reporting that hide mistakes which only quantities show. */
const HIDING: ReadonlySet<string> = new Set([
  'quiet_service',
  'lost_at_random',
  'lacks_cache',
  'batch_unflagged',
  'no_reasoning',
  'cut_streams',
]);
/** Minimum impact of a mistake without quantities, as per mille of the days' charges. */
const LEAST_PER_MILLE: Partial<Record<GeneratedVisibility, bigint>> = { V1: 50n, V0: 100n };

function truthOf(
  company: Company,
  series: SeriesPlan,
  telling: Telling,
  { kind, impact }: Mistake,
  at: number,
  isStale: boolean,
): Truth {
  const moved = [...impact.values()].reduce((sum, value) => sum + (value < 0n ? -value : value), 0n);
  const spent = [...impact.keys()].reduce(
    (sum, day) => sum + (company.spend.get(`${series.id}|${day}`) ?? 0n),
    0n,
  );
  const isReported = telling.fault === 'none';
  const seen = kind.seenAt.filter((visibility) => {
    if (isStale || (kind.needsCalls && HIDING.has(telling.fault))) return false;
    if (kind.needsAnswers && isSilent(series)) return false;
    const least = LEAST_PER_MILLE[visibility];
    if (least === undefined) return true;
    return isReported && series.contract?.isReported !== false && moved * 1_000n >= spent * least;
  });
  return {
    ...placeOf(series),
    id: `${series.id}#${at + 1}`,
    cause: kind.cause,
    otherNames: kind.otherNames ?? [],
    form: kind.form,
    isViolation: true,
    impactByDay: new Map([...impact].map(([day, femto]) => [dayText(day), femto / FEMTO_PER_PICO])),
    identifiableAt: new Set(seen),
    note: isStale ? 'the price list that the product has is wrong for this model' : telling.fault,
  };
}

/** The last day may still be restated when the bills are read, so it proves nothing. */
function byClosure(truth: Truth): Truth[] {
  const open = dayText(LAST_DAY);
  const days = [...truth.impactByDay];
  return [
    { ...truth, impactByDay: new Map(days.filter(([day]) => day !== open)) },
    {
      ...truth,
      id: `${truth.id}-open`,
      impactByDay: new Map(days.filter(([day]) => day === open)),
      identifiableAt: new Set(),
      note: 'the day may still be restated',
    },
  ];
}

const placeOf = (series: SeriesPlan) => ({
  provider: series.model.provider,
  accountId: series.accountId,
  model: series.model.billed,
});

function benignOf(series: SeriesPlan, telling: Telling, isStale: boolean): [string, string][] {
  const found: [string, string][] = [];
  if (telling.fault !== 'none') found.push([FAULT_CAUSES[telling.fault], telling.fault]);
  if (series.contract)
    found.push(['contract_terms', series.contract.isReported ? 'contract_told' : 'contract_untold']);
  if (isStale) found.push(['stale_price_reference', 'wrong_list']);
  return found;
}

function benignTruth(series: SeriesPlan, cause: string, form: string): Truth {
  const days = Array.from({ length: series.lastDay - series.firstDay + 1 }, (_, n) =>
    dayText(series.firstDay + n),
  );
  return {
    ...placeOf(series),
    id: `${series.id}~${form}`,
    cause,
    otherNames: [],
    form,
    isViolation: false,
    impactByDay: new Map(days.map((day) => [day, 0n])),
    identifiableAt: new Set(),
    note: '',
  };
}

function keysOf(series: SeriesPlan): GeneratedWorld['keys'] {
  return series.keys.map(({ keyId, untilSeconds }) => ({
    provider: series.model.provider,
    accountId: series.accountId,
    keyId,
    revokedAtSeconds: untilSeconds === null ? null : untilSeconds + REVOKED_AFTER_SECONDS,
  }));
}
