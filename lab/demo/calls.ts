/** Generates every call of Demo Labs as it happened, before faults of recording or billing. */
import { TOKEN_CLASSES, type TokenClass } from '../bills/results.js';
import { type Calendar, DAY_SECONDS, HOUR_SECONDS } from './calendar.js';
import { CONTRACT, type DemoKey, PREVIEW_MODEL, STRAY_KEY, TRAFFIC, type Traffic } from './company.js';
import { BATCH_DIVISOR, type DemoProvider, priceOf } from './prices.js';
import { apportion, between, randomOf } from './random.js';
import { covers, isFaultDay, SCHEDULE } from './schedule.js';

export interface DemoCall {
  /** Unique, and equal for the same seed: the request id of its event. */
  id: string;
  provider: DemoProvider;
  /** The model's name on the bill, and below the requested name. */
  model: string;
  askedModel: string;
  key: DemoKey;
  team: string | null;
  feature: string;
  service: string;
  environment: 'production' | 'staging';
  sessionId: string;
  batchId: string | null;
  /** The day of its end, on which providers book it. */
  offset: number;
  startSeconds: number;
  endSeconds: number;
  isLong: boolean;
  tokens: Record<TokenClass, number>;
  /** The right cost, including the contract. */
  pico: bigint;
  /** Text of the prompt; null: none is stored. */
  prompt: string | null;
  /** A call with the unregistered key, which no client of Demo Labs made. */
  isStray: boolean;
}

type Charged = Pick<DemoCall, 'model' | 'isLong' | 'batchId' | 'offset'>;

/** The provider's list rate for a class of a call, pico-dollars per token. */
export function listRate(call: Charged, name: TokenClass): bigint {
  const price = priceOf(call.model);
  const listed = (call.isLong ? price.long?.rates : price.standard)?.[name] ?? 0n;
  return call.batchId === null ? listed : listed / BATCH_DIVISOR;
}

/** The right rate: the list rate less the contract's discount. */
export function rightRate(call: Charged, name: TokenClass): bigint {
  const listed = listRate(call, name);
  return isUnderContract(priceOf(call.model).provider, call.offset) ? discounted(listed) : listed;
}

function isUnderContract(provider: DemoProvider, offset: number): boolean {
  return provider === CONTRACT.provider && offset >= CONTRACT.fromOffset;
}

function discounted(rate: bigint): bigint {
  return (rate * BigInt(100 - CONTRACT.discountPercent)) / 100n;
}

const WEEKEND_SHARE = 0.35;
/** Weights of calls by UTC hour: a European company with some customers overseas. */
const HOUR_WEIGHTS = [1, 1, 1, 1, 1, 2, 3, 5, 7, 9, 9, 8, 7, 8, 9, 9, 8, 6, 4, 3, 2, 2, 1, 1];
const CALLS_PER_SESSION = 7;
const PROMPT_EVERY = 40;

/** All calls by day. */
export function makeCalls(seed: number, calendar: Calendar): DemoCall[] {
  const calls: DemoCall[] = [];
  for (const offset of calendar.offsets()) {
    for (const traffic of TRAFFIC) {
      if (traffic.fromOffset !== undefined && offset < traffic.fromOffset) continue;
      calls.push(...callsOfDay(seed, calendar, traffic, offset));
    }
    markCalls(calls, offset);
    if (offset === SCHEDULE.runawayLoop.first) calls.push(...runawayLoop(seed, calendar));
    if (covers(SCHEDULE.strayKey, offset)) calls.push(...strayCalls(seed, calendar, offset));
  }
  return calls;
}

function callsOfDay(seed: number, calendar: Calendar, traffic: Traffic, offset: number): DemoCall[] {
  const random = randomOf(seed, traffic.name, offset);
  const isQuiet = calendar.isWeekend(offset) && !traffic.everyDay && !isFaultDay(traffic.model, offset);
  const growth = 1 + (offset + 45) / 450;
  const count = Math.round(
    traffic.callsPerWorkday * growth * (isQuiet ? WEEKEND_SHARE : 1) * (0.92 + random() * 0.16),
  );
  const calls: DemoCall[] = [];
  for (const [hour, ofHour] of apportion(count, HOUR_WEIGHTS).entries()) {
    for (let n = 0; n < ofHour; n += 1)
      calls.push(makeCall(calendar, traffic, offset, hour, calls.length, random));
  }
  return calls;
}

function makeCall(
  calendar: Calendar,
  traffic: Traffic,
  offset: number,
  hour: number,
  number: number,
  random: () => number,
): DemoCall {
  const price = priceOf(traffic.model);
  const isLong = price.long !== undefined && random() < traffic.longShare;
  const isBatch = random() < traffic.batchShare;
  const whole = isLong
    ? (price.long?.above ?? 0) + between(random, [1_000, 80_000])
    : between(random, traffic.input);
  const tokens = tokensOf(traffic, whole, random);
  const { startSeconds, endSeconds } = timesOf(calendar, offset, hour, random);
  const session = Math.floor(number / CALLS_PER_SESSION);
  const call: DemoCall = {
    id: `demo-${traffic.name}-${offset + 1_000}-${number}`,
    provider: price.provider,
    model: traffic.model,
    askedModel: random() < 0.6 ? price.alias : traffic.model,
    key: traffic.key,
    team: traffic.team,
    feature: traffic.feature,
    service: traffic.name,
    environment: 'production',
    sessionId: `sess-${traffic.name}-${offset + 1_000}-${session}`,
    batchId: isBatch ? `batch_${traffic.name}_${offset + 1_000}` : null,
    offset,
    startSeconds,
    endSeconds,
    isLong,
    tokens,
    pico: 0n,
    prompt: number % PROMPT_EVERY === 0 ? `Please handle ${traffic.feature} item ${number}.` : null,
    isStray: false,
  };
  return { ...call, pico: rightCost(call) };
}

function tokensOf(traffic: Traffic, whole: number, random: () => number): Record<TokenClass, number> {
  const rates = priceOf(traffic.model).standard;
  const read = Math.floor(whole * random() * traffic.cachedShareMax);
  const left = whole - read;
  const write5m = rates.cache_write_5m !== undefined && random() < 0.5 ? Math.floor(left * 0.3) : 0;
  const write1h = rates.cache_write_1h !== undefined && random() < 0.15 ? Math.floor(left * 0.2) : 0;
  return {
    input: left - write5m - write1h,
    cache_read: read,
    cache_write_5m: write5m,
    cache_write_1h: write1h,
    output: between(random, traffic.output),
  };
}

/** A call ends within its hour; its start may be in the previous hour or day. */
function timesOf(calendar: Calendar, offset: number, hour: number, random: () => number) {
  const day = calendar.startSeconds(offset);
  const endSeconds = day + hour * HOUR_SECONDS + Math.floor(random() * HOUR_SECONDS);
  const started = endSeconds - 3 - Math.floor(random() * 85);
  // The start determines the price, the end the day of the bill; so no call spans the midnight of a price change.
  const startSeconds = offset === CONTRACT.fromOffset ? Math.max(started, day) : started;
  return { startSeconds, endSeconds };
}

function rightCost(call: DemoCall): bigint {
  return TOKEN_CLASSES.reduce((sum, name) => sum + BigInt(call.tokens[name]) * rightRate(call, name), 0n);
}

/** The cost of a call at list prices. */
export function listCost(call: DemoCall): bigint {
  return TOKEN_CLASSES.reduce((sum, name) => sum + BigInt(call.tokens[name]) * listRate(call, name), 0n);
}

const STAGING_HOURS = [13, 14, 15];
const PREVIEW_CALLS = 5;
/** Invented secrets in a format that no provider uses. */
const SECRET_PROMPTS: Readonly<Record<string, string>> = {
  'code-review':
    'Why does this deploy step fail? export DEPLOY_TOKEN=demo-secret-not-real-4711 && ./deploy.sh',
  'answer-bot': 'The customer writes: my password is correct-horse-demo-battery, please log in for me.',
};

/**
 * Adds a production key that is used from staging for an afternoon, two prompts with secrets, and a few calls that
 * request a model by an unapproved name.
 */
function markCalls(calls: DemoCall[], offset: number): void {
  const isStaging = covers(SCHEDULE.staging, offset);
  const secretOf =
    offset === SCHEDULE.secrets.first ? 'code-review' : offset === SCHEDULE.secrets.last ? 'answer-bot' : '';
  for (const call of calls) {
    if (call.offset !== offset) continue;
    if (isStaging && call.service === 'semantic-search' && STAGING_HOURS.includes(clockHour(call)))
      call.environment = 'staging';
  }
  const first = calls.find((call) => call.offset === offset && call.service === secretOf);
  if (first) first.prompt = SECRET_PROMPTS[secretOf] ?? null;
  if (!covers(SCHEDULE.preview, offset)) return;
  const summaries = calls.filter((call) => call.offset === offset && call.service === 'search-summaries');
  for (const call of summaries.slice(0, PREVIEW_CALLS)) call.askedModel = PREVIEW_MODEL;
}

const LOOP_CALLS = 460;
const LOOP_STARTS_HOUR = 1;
const LOOP_STEP_SECONDS = 21;

/** An agent that answers itself through a night: one session, hundreds of calls. */
function runawayLoop(seed: number, calendar: Calendar): DemoCall[] {
  const traffic = TRAFFIC.find(({ name }) => name === 'code-review') as Traffic;
  const offset = SCHEDULE.runawayLoop.first;
  const random = randomOf(seed, 'runaway loop');
  const begin = calendar.startSeconds(offset) + LOOP_STARTS_HOUR * HOUR_SECONDS;
  return Array.from({ length: LOOP_CALLS }, (_, number) => {
    const call = makeCall(calendar, traffic, offset, LOOP_STARTS_HOUR, number, random);
    const startSeconds = begin + number * LOOP_STEP_SECONDS;
    return {
      ...call,
      id: `demo-loop-${number}`,
      sessionId: 'sess-runaway-loop',
      startSeconds,
      endSeconds: startSeconds + LOOP_STEP_SECONDS - 1,
      prompt: number === 0 ? 'Review the change again until no finding is left.' : null,
    };
  });
}

const STRAY: Traffic = {
  name: 'stray',
  key: STRAY_KEY,
  team: null,
  feature: '',
  model: 'gpt-4o-2024-11-20',
  callsPerWorkday: 0,
  input: [20_000, 110_000],
  output: [1_000, 9_000],
  batchShare: 0,
  longShare: 0,
  cachedShareMax: 0.3,
};
const STRAY_CALLS = 120;

/** Calls with an unregistered key, which only the provider saw. */
function strayCalls(seed: number, calendar: Calendar, offset: number): DemoCall[] {
  const random = randomOf(seed, 'stray key', offset);
  return Array.from({ length: STRAY_CALLS }, (_, number) => {
    const hour = Math.floor((number * 24) / STRAY_CALLS);
    return { ...makeCall(calendar, STRAY, offset, hour, number, random), isStray: true };
  });
}

/** Hour of the day at which a call ended, 0 to 23. */
export function clockHour(call: DemoCall): number {
  return Math.floor((call.endSeconds % DAY_SECONDS) / HOUR_SECONDS);
}
