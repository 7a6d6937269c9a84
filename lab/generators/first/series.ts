/** Who uses what: accounts with their projects and keys, and the series of (account, model) whose calls are made. */
import { type BookModel, RATE_BOOK } from '../bills/rateBook.js';
import { DAY_SECONDS, pacificOffsetSeconds } from '../support/days.js';
import type { Random } from '../support/random.js';
import type { RegisteredKey, ToldCall } from '../world.js';
import type { UsedCall } from './traffic.js';

export interface FirstSize {
  /** How many (account, model) there are. */
  series: number;
  days: number;
  /** Calls of a middling series on a working day. */
  callsPerDay: number;
}

export interface SeriesKey {
  keyId: string;
  project: string | null;
  /** The service of the company that uses it. */
  serviceName: string;
}

/** How a series is used. Shares are of calls, unless of tokens. */
export interface Habits {
  callsPerDay: number;
  weekendFactor: number;
  promptMedian: number;
  outputMedian: number;
  /** Shares of a prompt's tokens: plain, read from the cache, written for 5 minutes, for an hour. */
  promptMix: number[];
  cachedShare: number;
  reasoningShare: number;
  batchShare: number;
  longShare: number;
  priorityShare: number;
  flexShare: number;
  usShare: number;
  failedShare: number;
  cancelledShare: number;
}

/** What stands between the provider's truth and what can be read, and is nobody's wrong bill. */
export interface Circumstances {
  /** Share of the calls that the company's side tells of. */
  coverage: number;
  isUntold: (call: UsedCall) => boolean;
  /** Seconds by which the provider books a call later than it ended. */
  delaySeconds: (call: UsedCall) => number;
  /** An agreed price that was not entered: what the provider charges of the list, per mille. */
  hiddenPerMille: number;
  isFree: (call: UsedCall) => boolean;
  /** The clients tell cached tokens as plain input. */
  lacksCache: boolean;
  /** How the client tells it, where it tells it otherwise. */
  told: (call: ToldCall) => ToldCall;
  /** Requests of a tier that is paid for ahead: used, and left out of the cost report. */
  isPaidAhead: (call: UsedCall) => boolean;
}

export interface Series {
  index: number;
  provider: string;
  accountId: string;
  book: BookModel;
  /** The model as the client tells it: the alias that was asked for, or the id that answered. */
  toldModel: string;
  /** The clients tell which model answered, and with what status an attempt was refused. */
  tellsAnswers: boolean;
  keys: SeriesKey[];
  habits: Habits;
  /** What was agreed and entered, per mille of the list. */
  contractPerMille: number;
  circumstances: Circumstances;
}

export const PLAIN: Circumstances = {
  coverage: 1,
  isUntold: () => false,
  delaySeconds: () => 0,
  hiddenPerMille: 1_000,
  isFree: () => false,
  lacksCache: false,
  told: (call) => call,
  isPaidAhead: () => false,
};

/** Shares of the series by provider; the rest of the list gets what is left. */
const PROVIDER_SHARES: readonly (readonly [string, number])[] = [
  ['openai', 0.5],
  ['anthropic', 0.38],
  ['google', 0.06],
  ['azure_openai', 0.03],
  ['aws_bedrock', 0.03],
];

const SERVICES = ['chat', 'search', 'support-bot', 'summaries', 'code-review', 'extraction', 'agents'];

const id = (random: Random, prefix: string, length: number): string => {
  const letters = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789';
  let text = prefix;
  for (let at = 0; at < length; at += 1) text += letters.charAt(random.whole(0, letters.length - 1));
  return text;
};

const accountName = (provider: string, random: Random): string => {
  if (provider === 'openai') return id(random, 'org-', 24);
  if (provider === 'anthropic')
    return `${id(random, '', 8)}-0000-4000-8000-${String(random.whole(1e11, 9e11))}`.toLowerCase();
  if (provider === 'aws_bedrock') return String(random.whole(1e11, 9e11));
  return id(random, `${provider.slice(0, 2)}-`, 12);
};

/** A project's id in the provider's spelling. */
export const projectName = (provider: string, random: Random): string =>
  provider === 'anthropic' ? id(random, 'wrkspc_01', 22) : id(random, 'proj_', 24);

/** A key's id in the provider's spelling. */
export const keyName = (provider: string, random: Random): string =>
  provider === 'anthropic' ? id(random, 'apikey_01', 22) : id(random, 'key_', 16);

/** Instrumentations mostly record an answer's model and an error's status; wrappers of one in so many series do not. */
const SILENT_ONE_IN = 6;

/** Draws accounts and series: each (account, model) at most once. */
export function drawSeries(random: Random, size: FirstSize): Series[] {
  const series: Series[] = [];
  for (const [provider, share] of PROVIDER_SHARES) {
    const models = RATE_BOOK.filter((model) => model.provider === provider);
    const wanted = Math.max(1, Math.round(size.series * share));
    const accounts = Math.max(1, Math.ceil(wanted / (models.length * 0.85)));
    const pairs = Array.from({ length: accounts }, () => {
      const accountId = accountName(provider, random);
      const projects = [
        provider === 'anthropic' ? null : projectName(provider, random),
        projectName(provider, random),
      ];
      return models.map((book) => ({ accountId, book, projects }));
    }).flat();
    for (const { accountId, book, projects } of random.shuffled(pairs).slice(0, wanted))
      series.push(makeSeries(series.length, accountId, book, projects, random, size));
  }
  return series;
}

function makeSeries(
  index: number,
  accountId: string,
  book: BookModel,
  projects: readonly (string | null)[],
  random: Random,
  size: FirstSize,
): Series {
  const keys = Array.from({ length: random.pick([1, 1, 2, 3]) }, () => ({
    keyId: keyName(book.provider, random),
    project: random.pick(projects),
    serviceName: random.pick(SERVICES),
  }));
  return {
    index,
    provider: book.provider,
    accountId,
    book,
    toldModel: random.chance(0.7) ? book.billed : book.model,
    tellsAnswers: index % SILENT_ONE_IN !== 0,
    keys,
    habits: drawHabits(book, random, size),
    contractPerMille: 1_000,
    // Most companies' wrappers tell of everything; some lose a little.
    circumstances: { ...PLAIN, coverage: random.chance(0.75) ? 1 : 1 - random.between(0.002, 0.02) },
  };
}

function drawHabits(book: BookModel, random: Random, size: FirstSize): Habits {
  const period = book.periods.find((one) => one.batch) ?? book.periods[0];
  const [, , write5m, write1h] = period?.standard ?? [];
  const now = (share: number, isOffered: boolean): number => (isOffered && random.chance(0.4) ? share : 0);
  return {
    callsPerDay: random.lognormal(size.callsPerDay, 0.6),
    weekendFactor: random.between(0.2, 0.9),
    promptMedian: random.lognormal(40_000, 0.8),
    outputMedian: random.lognormal(2_500, 0.7),
    promptMix: random.dirichlet([4, 4, write5m === null ? 0 : 1, write1h === null ? 0 : 0.6]),
    cachedShare: random.between(0.5, 1),
    reasoningShare: random.pick([0, 0.2, 0.5]),
    batchShare: now(random.between(0.1, 0.6), period?.batch !== undefined),
    longShare: now(random.between(0.02, 0.12), period?.long !== undefined),
    priorityShare: now(random.between(0.05, 0.25), period?.priority !== undefined),
    flexShare: now(random.between(0.05, 0.2), period?.flex !== undefined),
    usShare: now(random.between(0.2, 0.7), book.provider === 'anthropic' && book.usPerMille !== undefined),
    failedShare: random.between(0.002, 0.03),
    cancelledShare: random.between(0, 0.03),
  };
}

/** Every key of the series, in use. */
export const registeredKeys = (series: readonly Series[]): RegisteredKey[] =>
  series.flatMap(({ provider, accountId, keys }) =>
    keys.map(({ keyId }) => ({ provider, accountId, keyId, revokedAtSeconds: null })),
  );

/** Seconds of a day in which what ends is booked on the next: three in a thousand. */
const LEAK_SECONDS = Math.round(DAY_SECONDS * 0.003);

/** When the provider books a call: when it ended, or a little later; by Pacific days where it counts those. */
export function bookedSeconds(call: UsedCall, series: Series, isPacific: boolean): number {
  const shift = isPacific ? pacificOffsetSeconds(call.endSeconds) : 0;
  const local = call.endSeconds - shift + series.circumstances.delaySeconds(call);
  const isLate = local % DAY_SECONDS >= DAY_SECONDS - LEAK_SECONDS;
  return isLate ? local + LEAK_SECONDS : local;
}
