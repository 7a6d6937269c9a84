/** Generates a company of the third kind: its calls, its bills, and the truth about both. */
import type { GeneratedWorld, RegisteredKey, ToldCall, Truth } from '../world.js';
import { amountOf, type Booking, rightBooking } from './booking.js';
import { Books } from './books.js';
import { DAY, dayAt, HOUR, numberOfDay, textOfDay } from './calendar.js';
import { type Period, planCompany, type Series } from './company.js';
import { Dice } from './dice.js';
import type { Mistake } from './errors/kind.js';
import { concerns, planMistakes } from './errors/plan.js';
import { writePapers } from './papers/index.js';
import { METERS } from './tariffs.js';
import { tell } from './telling.js';
import { type Call, callAt, callsOf } from './traffic.js';
import { benignTruths, type DaySums, truthsOf } from './truths.js';

/** Sets of worlds by name: all mistakes, or none of a provider. */
export const THIRD_SETS = ['mixed', 'benign_only'] as const;

export interface ThirdOptions {
  seed: number;
  set: string;
  /** Factor on the number of models. */
  size: number;
}

const DAYS = 60;
const EARLIEST = numberOfDay('2026-07-12');
const STARTS = 46;
/** A call that ends this close to midnight may be booked on the next day. */
const MIDNIGHT_SECONDS = 240;
const MIDNIGHT_SHARE = 0.3;

interface World {
  period: Period;
  readAt: number;
  books: Books;
  calls: ToldCall[];
}

/** Equal options give equal results. Error for an unknown set. */
export function makeThirdWorld({ seed, set, size }: ThirdOptions): GeneratedWorld {
  if (!(THIRD_SETS as readonly string[]).includes(set))
    throw new Error(`the third generator has the sets ${THIRD_SETS.join(', ')}, not ${set}`);
  const dice = new Dice('third', seed);
  const first = EARLIEST + dice.count(0, STARTS);
  const period = { first, last: first + DAYS - 1 };
  const readAt = (period.last + 1) * DAY + dice.count(6, 70) * HOUR;
  const company = planCompany(dice, period, size);
  const world: World = { period, readAt, books: new Books(), calls: [] };
  const booked = company.map((series) => {
    const mistakes =
      set === 'benign_only'
        ? []
        : planMistakes(new Dice('third', seed, series.id, 'errors'), series, company, period);
    return addSeries(world, series, mistakes, (use) => new Dice('third', seed, series.id, use));
  });
  const truths = booked.flatMap((one) => [
    ...truthsOfSeries(one, booked, readAt),
    ...benignTruths(one.series, period),
  ]);
  return {
    seed,
    firstDay: textOfDay(period.first),
    lastDay: textOfDay(period.last),
    readAtSeconds: readAt,
    calls: world.calls.sort((a, b) => a.endSeconds - b.endSeconds),
    bills: writePapers(world.books, readAt),
    contracts: company.filter(({ isContractEntered }) => isContractEntered).flatMap(contractBodies),
    overrides: company.filter(({ tariff }) => tariff.isDocumented).flatMap(documentedPrices),
    priceListChanges: [],
    keys: registeredKeys(company),
    truths,
    spendPico: world.books.charges().reduce((sum, { pico }) => sum + pico, 0n),
  };
}

/** A series after its calls are booked. */
interface Booked {
  series: Series;
  impacts: Map<Mistake, Map<number, bigint>>;
  sums: Map<number, DaySums>;
}

function truthsOfSeries({ series, impacts, sums }: Booked, all: readonly Booked[], readAt: number): Truth[] {
  const others = (day: number) => [...impacts.values()].filter((impact) => impact.has(day)).length;
  return [...impacts].flatMap(([mistake, impact]) => {
    const partner = all.find((one) => one.series === mistake.partner);
    return truthsOf({ series, mistake, impact, sums, partnerSums: partner?.sums, others, readAt });
  });
}

/** Books and reports the calls of a series. */
function addSeries(
  world: World,
  series: Series,
  mistakes: readonly Mistake[],
  diceFor: (use: string) => Dice,
): Booked {
  const impacts = new Map(mistakes.map((mistake) => [mistake, new Map<number, bigint>()]));
  const sums = new Map<number, DaySums>();
  const [booking, reporting, strangers] = [diceFor('booking'), diceFor('reports'), diceFor('strangers')];
  for (const service of series.services) {
    for (const call of callsOf(diceFor(service.name), series, service, world.period)) {
      const told = tell(reporting, call);
      if (told) world.calls.push(told);
      const booked = bookCall(world, booking, call, mistakes, impacts);
      if (booked) addSums(sums, booked, call, told);
      for (const mistake of mistakes) {
        const share = mistake.kind.intruders ?? 0;
        if (share > 0 && concerns(mistake, call) && strangers.happens(share))
          bookStranger(world, callAt(strangers, series, service, call.at), mistake, impacts);
      }
    }
  }
  return { series, impacts, sums };
}

type Impacts = ReadonlyMap<Mistake, Map<number, bigint>>;

/** The day of the bill and the charge in 1e-15 dollars; undefined: outside the period. */
function bookCall(
  world: World,
  dice: Dice,
  call: Call,
  mistakes: readonly Mistake[],
  impacts: Impacts,
): { day: number; amount: bigint } | undefined {
  const { day, reportedAt } = timesOf(dice, call);
  let booked = rightBooking(call);
  let amount = amountOf(booked.cost);
  const added = new Map<Mistake, bigint>();
  for (const mistake of mistakes) {
    if (mistake.kind.intruders || !concerns(mistake, call)) continue;
    const changed = mistake.kind.change(call, booked, mistake);
    if (!changed) continue;
    const next = amountOf(changed.cost);
    added.set(mistake, next - amount);
    [booked, amount] = [changed, next];
  }
  if (!isWithin(world.period, day)) return undefined;
  for (const [mistake, femto] of added) addImpact(impacts, mistake, day, femto);
  write(world, call, booked, day, reportedAt);
  return { day, amount };
}

function bookStranger(world: World, call: Call, mistake: Mistake, impacts: Impacts): void {
  const booked =
    call.outcome === 'error' ? undefined : mistake.kind.change(call, rightBooking(call), mistake);
  const day = dayAt(call.at + call.series.account.clockHours * HOUR);
  if (!booked || !isWithin(world.period, day)) return;
  addImpact(impacts, mistake, day, amountOf(booked.cost));
  write(world, call, booked, day, call.at);
}

function addImpact(impacts: Impacts, mistake: Mistake, day: number, femto: bigint): void {
  const impact = impacts.get(mistake);
  if (femto !== 0n) impact?.set(day, (impact.get(day) ?? 0n) + femto);
}

const isWithin = ({ first, last }: Period, day: number) => day >= first && day <= last;

function write(world: World, { series }: Call, booked: Booking, day: number, reportedAt: number): void {
  const { accountId } = series.account;
  for (const line of booked.cost) world.books.charge(accountId, day, line);
  if (isWithin(world.period, dayAt(reportedAt)))
    for (const line of booked.report) world.books.count(accountId, reportedAt, line);
}

/** The day of the charge, by the provider's clock and with late booking, and the time in the usage report. */
function timesOf(dice: Dice, { series, at }: Call): { day: number; reportedAt: number } {
  const { clockHours, lateFrom } = series.account;
  const local = at + clockHours * HOUR;
  const isAtMidnight = local % DAY >= DAY - MIDNIGHT_SECONDS && dice.happens(MIDNIGHT_SHARE);
  const booked = isAtMidnight ? local + MIDNIGHT_SECONDS : local;
  const from = lateFrom.get(dayAt(booked));
  const isLate = from !== undefined && booked % DAY >= from * HOUR;
  return { day: dayAt(booked) + (isLate ? 1 : 0), reportedAt: booked - clockHours * HOUR };
}

function addSums(
  sums: Map<number, DaySums>,
  { day, amount }: { day: number; amount: bigint },
  call: Call,
  told: ToldCall | undefined,
): void {
  const sum = sums.get(day) ?? { charged: 0n, tokens: 0, exact: 0, unnamed: 0 };
  sums.set(day, sum);
  sum.charged += amount;
  if (told && !told.isNamedByAnswer) sum.unnamed += 1;
  if (call.outcome === 'error') return;
  const tokens = call.counts.reduce((all, count) => all + count, 0);
  sum.tokens += tokens;
  if (told && isExact(call, told)) sum.exact += tokens;
}

function isExact({ counts }: Call, told: ToldCall): boolean {
  const said = [told.input, told.cacheRead, told.cacheWrite5m, told.cacheWrite1h, told.output];
  return METERS.every((_, at) => said[at] === counts[at]);
}

function contractBodies({ tariff, perMille }: Series): object[] {
  const models =
    tariff.provider === 'aws_bedrock' && tariff.elsewhere > 1_000
      ? [`global.${tariff.told}`, `us.${tariff.told}`]
      : [tariff.told];
  return models.map((model) => ({
    provider: tariff.provider,
    model,
    discount_percent: (1_000 - perMille) / 10,
    effective_from: '2026-02-01',
    source: { document: 'Enterprise agreement of 28 January 2026' },
  }));
}

/** Prices that the company entered from the provider's announcement, as bodies of POST /api/v1/pricing/overrides. */
function documentedPrices({ tariff }: Series): object[] {
  return tariff.steps.map(({ from, standard }, at) => ({
    provider: tariff.provider,
    model: tariff.told,
    effective_from: from === '' ? '2026-01-01' : from,
    effective_to: tariff.steps[at + 1]?.from ?? null,
    rates: Object.fromEntries(
      METERS.flatMap((meter, place) => ((standard[place] ?? 0) > 0 ? [[meter, standard[place]]] : [])),
    ),
    source: { document: 'Price announcement of 14 August 2026' },
  }));
}

/** Keys and linked accounts, with the revoked predecessors of OpenAI's keys. */
function registeredKeys(company: readonly Series[]): RegisteredKey[] {
  const keys = new Map<string, RegisteredKey>();
  for (const { account, services } of company) {
    const { provider, accountId } = account;
    if (provider === 'azure_openai') continue;
    for (const { keyId } of services) {
      keys.set(keyId, { provider, accountId, keyId, revokedAtSeconds: null });
      const old = `${keyId}_old`;
      if (provider === 'openai')
        keys.set(old, { provider, accountId, keyId: old, revokedAtSeconds: (EARLIEST - 40) * DAY });
    }
  }
  return [...keys.values()];
}
