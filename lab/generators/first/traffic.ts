/** Generates the true calls of a series as the provider served them, and the company's reports of them. */
import { INPUT, OUTPUT, periodAt, READ, WRITE_1H, WRITE_5M } from '../bills/rateBook.js';
import { DAY_SECONDS, dayOf, HOUR_SECONDS, weekday } from '../support/days.js';
import type { Random } from '../support/random.js';
import type { ToldCall } from '../world.js';
import type { Series, SeriesKey } from './series.js';

export interface UsedCall {
  key: SeriesKey;
  endSeconds: number;
  isBatch: boolean;
  isLong: boolean;
  tier: 'standard' | 'flex' | 'priority' | 'fast';
  geo: 'global' | 'us';
  status: ToldCall['status'];
  /** In the order of CLASSES. */
  tokens: number[];
  reasoning: number;
  /** For a cancelled call, the output without the cancellation; else its output. */
  wholeOutput: number;
  /** Output that the client saw. */
  toldOutput: number;
}

/** Weights of a day's calls by hour. */
const HOURS = [2, 1, 1, 1, 1, 2, 3, 5, 8, 10, 11, 11, 10, 11, 12, 12, 11, 9, 8, 7, 6, 5, 4, 3];
const HOURS_TOTAL = HOURS.reduce((sum, weight) => sum + weight, 0);

/** All calls of the days [firstDay, lastDay], in the order of their end. */
export function makeCalls(series: Series, firstDay: number, lastDay: number, random: Random): UsedCall[] {
  const calls: UsedCall[] = [];
  const { habits } = series;
  for (let day = firstDay; day <= lastDay; day += 1) {
    const isWeekend = weekday(day) === 0 || weekday(day) === 6;
    const mean = habits.callsPerDay * (isWeekend ? habits.weekendFactor : 1) * random.lognormal(1, 0.25);
    const count = random.poisson(mean);
    for (let at = 0; at < count; at += 1)
      calls.push(makeCall(series, day * DAY_SECONDS + secondOfDay(random), random));
  }
  return calls.sort((a, b) => a.endSeconds - b.endSeconds);
}

function secondOfDay(random: Random): number {
  let left = random.next() * HOURS_TOTAL;
  let hour = 0;
  while (left >= (HOURS[hour] as number)) {
    left -= HOURS[hour] as number;
    hour += 1;
  }
  return hour * HOUR_SECONDS + random.whole(0, HOUR_SECONDS - 1);
}

function makeCall(series: Series, endSeconds: number, random: Random): UsedCall {
  const { habits, book } = series;
  const period = periodAt(book, dayOf(endSeconds));
  const isBatch = period.batch !== undefined && random.chance(habits.batchShare);
  const isLong = Boolean(isBatch ? period.long?.batch : period.long) && random.chance(habits.longShare);
  const tier = !isBatch && !isLong ? drawTier(series, period, random) : 'standard';
  const limit = Math.floor(book.contextTokens * 0.9);
  const boundary = period.long?.above ?? limit;
  const prompt = isLong
    ? Math.min(limit, boundary + 1 + Math.floor(random.lognormal(50_000, 0.6)))
    : Math.min(boundary, limit, Math.max(200, Math.floor(random.lognormal(habits.promptMedian, 0.7))));
  const output = Math.max(1, Math.min(60_000, Math.floor(random.lognormal(habits.outputMedian, 0.8))));
  const call: UsedCall = {
    key: random.pick(series.keys),
    endSeconds,
    isBatch,
    isLong,
    tier,
    geo: random.chance(habits.usShare) ? 'us' : 'global',
    status: 'ok',
    tokens: [...split(prompt, habits.promptMix, random.chance(habits.cachedShare), random), output],
    reasoning: Math.floor(output * habits.reasoningShare * random.next()),
    wholeOutput: output,
    toldOutput: output,
  };
  if (!isBatch && tier !== 'flex') endEarly(call, habits, random);
  return call;
}

function drawTier(series: Series, period: ReturnType<typeof periodAt>, random: Random): UsedCall['tier'] {
  const at = random.next();
  const { priorityShare, flexShare } = series.habits;
  if (at < priorityShare && period.priority) return 'priority';
  return at >= priorityShare && at < priorityShare + flexShare && period.flex ? 'flex' : 'standard';
}

/** Divides a prompt's tokens by class into whole numbers; without a cache all of them are plain. */
function split(prompt: number, mix: readonly number[], isCached: boolean, random: Random): number[] {
  if (!isCached) return [prompt, 0, 0, 0];
  const tokens = [0, 0, 0, 0];
  let left = prompt;
  for (const tokenClass of [READ, WRITE_5M, WRITE_1H]) {
    const share = (mix[tokenClass] as number) * random.between(0.6, 1.3);
    tokens[tokenClass] = Math.min(left, Math.floor(prompt * share));
    left -= tokens[tokenClass] as number;
  }
  tokens[INPUT] = left;
  return tokens;
}

/** Some attempts fail and are not billed; some answers are cancelled, and the output until then is billed. */
function endEarly(call: UsedCall, habits: Series['habits'], random: Random): void {
  if (random.chance(habits.failedShare)) {
    call.status = 'error';
    call.tokens[OUTPUT] = 0;
    call.reasoning = 0;
    call.wholeOutput = 0;
    call.toldOutput = 0;
  } else if (random.chance(habits.cancelledShare)) {
    call.status = 'cancelled';
    const made = Math.max(1, Math.floor((call.tokens[OUTPUT] as number) * random.between(0.1, 0.7)));
    call.tokens[OUTPUT] = made;
    call.reasoning = Math.min(call.reasoning, made);
    // The client did not receive the last chunk with the token counts, so it counts the output that it saw.
    call.toldOutput = Math.floor(made * random.between(0.6, 1));
  }
}

/** Statuses of refused attempts: too many requests, provider errors, overload. */
const REFUSALS = [429, 500, 503, 529];
const refusalOf = (seconds: number): number => REFUSALS[seconds % REFUSALS.length] as number;

/** The company's own report of the call. */
export function tellCall(call: UsedCall, series: Series): ToldCall {
  const { tokens } = call;
  return series.circumstances.told({
    provider: series.provider,
    accountId: series.accountId,
    keyId: call.key.keyId,
    model: series.toldModel,
    serviceTier: series.circumstances.isPaidAhead(call)
      ? 'priority'
      : call.tier === 'standard'
        ? null
        : call.tier,
    isBatch: call.isBatch,
    status: call.status,
    httpStatus: call.status === 'error' && series.tellsAnswers ? refusalOf(call.endSeconds) : null,
    isNamedByAnswer: series.tellsAnswers,
    serviceName: call.key.serviceName,
    endSeconds: call.endSeconds,
    input: tokens[INPUT] as number,
    cacheRead: tokens[READ] as number,
    cacheWrite5m: tokens[WRITE_5M] as number,
    cacheWrite1h: tokens[WRITE_1H] as number,
    output: call.toldOutput,
    reasoning: Math.min(call.reasoning, call.toldOutput),
    lacksCache: false,
    inferenceGeo: call.geo === 'us' ? 'us' : null,
  });
}
