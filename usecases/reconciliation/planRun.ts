import { listObservedSince } from '../../db/events/observedCalls.js';
import type { OrgDb } from '../../db/orgDb.js';
import { clearEndedExplanations } from '../../db/reconciliation/explanations.js';
import { findGapRunPlan, type GapRun, insertGapRunUnits } from '../../db/reconciliation/gapRuns.js';
import {
  type CountedDay,
  findFirstEventDay,
  listCountedDays,
  listHoursOfBoth,
  listKeyDigests,
  listObservedRevisions,
  listPublishedDays,
  listUsesOfBoth,
} from '../../db/reconciliation/matchInputs.js';
import { currentWeights } from '../../db/reconciliation/weightSets.js';
import { foldUsage } from '../../db/usage/rollups.js';
import { knownOffsetHours } from '../../domain/billing/billingDay.js';
import {
  dayOf,
  GAP_PERIOD_DAYS,
  isoFromMicros,
  MICROS_PER_DAY,
  MICROS_PER_HOUR,
  microsOfDay,
  shiftDay,
} from '../../domain/period.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { isProvider, type Provider } from '../../domain/providers.js';
import {
  type BilledUse,
  findDayOffset,
  findOffsetOfDays,
  type HourOfBoth,
  type ObservedUse,
} from '../../domain/reconciliation/evidence/dayOffset.js';
import { inputMark } from '../../domain/reconciliation/matching/inputMark.js';
import { digestOf, loadRun, observedSinceOf, pricesDigest, type RunWork, windowOf } from './gapRunWork.js';

/** Hourly buckets are stored for days that a 7-day period can include. */
const HOURLY_DAYS = BigInt(GAP_PERIOD_DAYS['7d']);

/** Whether a run stores hourly buckets of a day. */
export function wantsHours(run: GapRun, day: string): boolean {
  return microsOfDay(day) >= run.windowEndMicros - HOURLY_DAYS * MICROS_PER_DAY;
}

/** All inputs of a window's marks, read before anything is matched. */
interface WindowInputs {
  run: GapRun;
  nowMicros: bigint;
  book: PriceBook;
  countedByDay: Map<string, CountedDay[]>;
  revisions: Map<string, number>;
  keys: Map<string, string>;
  observedSince: GapRun['observedSince'];
  firstEventDay: string | undefined;
  weights: string;
}

/**
 * Decides once which provider-days a run compares: billed days whose inputs have changed since they were published, and
 * published days without a bill any more. A repeat uses the first decision. Marks are read before their inputs, so the
 * next run compares changes in between again.
 */
export async function planRun(work: RunWork): Promise<{ units: number }> {
  const { deps, orgDb, runId } = work;
  const planned = await findGapRunPlan(orgDb, runId);
  if (planned) return planned;
  const run = await loadRun(work);
  await orgDb.transaction((inside) => clearEndedExplanations(inside));
  // Folding first makes each unit's read cheap. A simultaneous fold does the same work, so a failure is ignored.
  await foldUsage(deps.database, orgDb.orgId).catch((error: unknown) =>
    deps.logger.debug({ err: error }, 'fold before a gap run'),
  );
  const inputs = await readInputs(work, run);
  const published = await listPublishedDays(orgDb, windowOf(run));
  const publishedMarks = new Map(published.map((day) => [keyOf(day), day.inputMark]));
  const days = daysOf([...inputs.countedByDay.values()].flat(), published).map((day) => ({
    ...day,
    baseMark: baseMark(inputs, day),
    publishedMark: publishedMarks.get(keyOf(day)) ?? '',
  }));
  const dayOffsets = await estimateOffsets(work, inputs.book, days, windowOf(run).toDay);
  const units = days
    .map((day) => ({ ...day, inputMark: fullMark(inputs, day, dayOffsets[day.provider] ?? 0) }))
    .filter((day) => day.publishedMark !== day.inputMark);
  const { observedSince } = inputs;
  const plan = { units, unchangedUnits: days.length - units.length, observedSince, dayOffsets };
  return { units: await orgDb.transaction((inside) => insertGapRunUnits(inside, runId, plan)) };
}

interface ProviderDay {
  provider: Provider;
  day: string;
}

const keyOf = ({ provider, day }: { provider: string; day: string }) => `${provider} ${day}`;

async function readInputs(work: RunWork, run: GapRun): Promise<WindowInputs> {
  const { deps, orgDb } = work;
  const window = windowOf(run);
  const book = await deps.prices.freshOf(orgDb.orgId);
  const wider = { ...window, fromDay: shiftDay(window.fromDay, -1), toDay: shiftDay(window.toDay, 1) };
  const revisions = await orgDb.transaction(
    (inside) => listObservedRevisions(inside, wider),
    'repeatable read',
  );
  const keys = await listKeyDigests(orgDb);
  const firstEventDay = await findFirstEventDay(orgDb);
  const { version: weights } = await currentWeights(orgDb);
  const countedByDay = new Map<string, CountedDay[]>();
  for (const counted of await listCountedDays(orgDb, window)) {
    const known = countedByDay.get(keyOf(counted)) ?? [];
    known.push(counted);
    countedByDay.set(keyOf(counted), known);
  }
  const providers = new Set([...countedByDay.values()].flat().map(({ provider }) => provider));
  const observedSince: GapRun['observedSince'] = {};
  for (const provider of [...providers].sort()) {
    const accounts = await listObservedSince(orgDb, provider);
    observedSince[provider] = Object.fromEntries(
      [...accounts].map(([account, micros]) => [account, isoFromMicros(micros)]),
    );
  }
  const nowMicros = deps.nowMicros();
  return { run, nowMicros, book, countedByDay, revisions, keys, observedSince, firstEventDay, weights };
}

/** Provider-days with a bill or a published result, in the order in which a run processes them. */
function daysOf(
  counted: readonly ProviderDay[],
  published: readonly { provider: string; day: string }[],
): ProviderDay[] {
  const days = new Map<string, ProviderDay>();
  for (const { provider, day } of [...counted, ...published])
    if (isProvider(provider)) days.set(keyOf({ provider, day }), { provider, day });
  return [...days.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The mark of a day's own inputs. The inputs that the provider's time offset adds follow a dot. */
function baseMark(inputs: WindowInputs, { provider, day }: ProviderDay): string {
  return digestOf(
    inputMark({
      day,
      nowMicros: inputs.nowMicros,
      covered: inputs.countedByDay.get(keyOf({ provider, day })) ?? [],
      observedRevision: inputs.revisions.get(keyOf({ provider, day })) ?? 0,
      observedSince: observedSinceOf(inputs, provider),
      keys: inputs.keys.get(provider) ?? '',
      prices: pricesDigest(inputs.book, provider),
      weights: inputs.weights,
      withHours: wantsHours(inputs.run, day),
      callsKept: inputs.firstEventDay !== undefined && inputs.firstEventDay <= day,
    }),
  );
}

/** The whole mark. With a time offset it includes the calls of the neighbouring days and the shifted beginning. */
function fullMark(inputs: WindowInputs, day: MarkedDay, offsetHours: number): string {
  const beside = (days: number) => inputs.revisions.get(keyOf({ ...day, day: shiftDay(day.day, days) })) ?? 0;
  const startMicros = microsOfDay(day.day) - BigInt(offsetHours) * MICROS_PER_HOUR;
  const unseen = [...observedSinceOf(inputs, day.provider)].flatMap(([account, at]) =>
    at > startMicros ? [account] : [],
  );
  const callsKept = inputs.firstEventDay !== undefined && inputs.firstEventDay <= dayOf(startMicros);
  const digest = digestOf(JSON.stringify([unseen.sort(), callsKept])).slice(0, 8);
  return markWithOffset(day.baseMark, offsetHours, `${beside(-1)}/${beside(1)}/${digest}`);
}

/** A provider-day of a run's window. */
interface MarkedDay {
  provider: Provider;
  day: string;
  /** The present mark of its own inputs, and the whole mark that it was published with; '' when it is not published. */
  baseMark: string;
  publishedMark: string;
}

const POINT = '.';

/** A day's mark with its time offset; `beside`: the further inputs of a shifted day. */
function markWithOffset(baseMark: string, offsetHours: number, beside: string): string {
  return `${baseMark}${POINT}${offsetHours}${offsetHours === 0 ? '' : `/${beside}`}`;
}

const offsetOf = (mark: string): number => Number.parseInt(mark.split(POINT)[1] ?? '0', 10);

/**
 * Hours by which each provider's clock is ahead of UTC; providers without an offset are left out. The offset is
 * estimated again where an input of any of the provider's days has changed; else the published one is used.
 */
async function estimateOffsets(
  { orgDb }: RunWork,
  book: PriceBook,
  days: readonly MarkedDay[],
  toDay: string,
): Promise<GapRun['dayOffsets']> {
  const offsets: GapRun['dayOffsets'] = {};
  for (const provider of [...new Set(days.map((day) => day.provider))].sort()) {
    const own = days.filter((day) => day.provider === provider);
    const isUnchanged = own.every((day) => day.publishedMark.startsWith(`${day.baseMark}${POINT}`));
    const offset =
      knownOffsetHours(provider) ??
      (isUnchanged
        ? offsetOf(own.at(-1)?.publishedMark ?? '')
        : await estimateDayOffset(toDay, clockOf(orgDb, provider, book)));
    if (offset !== 0) offsets[provider] = offset;
  }
  return offsets;
}

/** Most fortnights that are searched. */
const FORTNIGHTS_MAX = 3;

/** Inputs of a provider's clock: hours of both sides, and billed days beside observed hours. */
export interface ClockReader {
  hours(toDay: string): Promise<{ hours: readonly HourOfBoth[]; fromDay: string | null }>;
  uses(toDay: string): Promise<{ billed: readonly BilledUse[]; observed: readonly ObservedUse[] }>;
  nameOf(model: string): string;
}

/** Reads the hours that occur both in a provider's usage report and in calls, a fortnight at a time, and its days. */
export const clockOf = (orgDb: OrgDb, provider: Provider, book: PriceBook): ClockReader => ({
  hours: (toDay) =>
    orgDb.transaction((inside) => listHoursOfBoth(inside, { provider, toDay }), 'repeatable read'),
  uses: (toDay) =>
    orgDb.transaction((inside) => listUsesOfBoth(inside, { provider, toDay }), 'repeatable read'),
  nameOf: (model) => book.canonicalModel(provider, model),
});

/**
 * Hours by which a provider's clock is ahead of UTC, from the newest fourteen days of its usage report before `toDay`,
 * or from the fourteen before where these show no offset. A clock with daylight saving time shows no offset in the days
 * around its change, and would be taken for UTC there. A provider whose reports have no hours shows its clock by its
 * billed days. 0 where nothing shows an offset. `read`: `clockOf` of the provider.
 */
export async function estimateDayOffset(toDay: string, read: ClockReader): Promise<number> {
  let before = toDay;
  let hasHours = false;
  for (let at = 0; at < FORTNIGHTS_MAX; at += 1) {
    const { hours, fromDay } = await read.hours(before);
    if (fromDay === null) break;
    const offset = findDayOffset(hours);
    if (offset !== undefined) return offset;
    hasHours ||= hours.length > 0;
    before = fromDay;
  }
  if (hasHours) return 0;
  const { billed, observed } = await read.uses(toDay);
  return findOffsetOfDays(billed, observed, read.nameOf) ?? 0;
}
