/**
 * Generates the usage plan: accounts with their projects and keys, and the series of (account, model) that make
 * calls.
 */
import { type BookModel, RATE_BOOK } from '../bills/rateBook.js';
import { DAY_SECONDS, pacificOffsetSeconds } from '../support/days.js';
import type { Random } from '../support/random.js';
import type { RegisteredKey, ToldCall } from '../world.js';
import type { UsedCall } from './traffic.js';

export interface FirstSize {
  /** Number of (account, model) pairs. */
  series: number;
  days: number;
  /** Calls of a median series on a working day. */
  callsPerDay: number;
}

export interface SeriesKey {
  keyId: string;
  project: string | null;
  /** The company's service that makes the calls. */
  serviceName: string;
}

/** The usage of a series. Shares are of calls, unless they are of tokens. */
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

/** Differences between the true calls and the readable documents that are no mistake of the bill. */
export interface Circumstances {
  /** Share of the calls that the company's clients report. */
  coverage: number;
  isUntold: (call: UsedCall) => boolean;
  /** Seconds between the end of a call and the provider's booking. */
  delaySeconds: (call: UsedCall) => number;
  /** A contract that was not entered: the charged price as per mille of the list price. */
  hiddenPerMille: number;
  isFree: (call: UsedCall) => boolean;
  /** The clients report cached tokens as plain input. */
  lacksCache: boolean;
  /** Changes the client's report of a call, e.g. of a client that reports it differently. */
  told: (call: ToldCall) => ToldCall;
  /** Requests of a prepaid tier: used, but not in the cost report. */
  isPaidAhead: (call: UsedCall) => boolean;
}

export interface Series {
  index: number;
  provider: string;
  accountId: string;
  book: BookModel;
  /** The model in the client's reports: the requested alias, or the id that answered. */
  toldModel: string;
  /** The clients report the answering model, and the status of a refused attempt. */
  tellsAnswers: boolean;
  keys: SeriesKey[];
  habits: Habits;
  /** The entered contract's price, per mille of the list price. */
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

/** Shares of the series by provider; the other providers divide the rest. */
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

/** A project id in the provider's format. */
export const projectName = (provider: string, random: Random): string =>
  provider === 'anthropic' ? id(random, 'wrkspc_01', 22) : id(random, 'proj_', 24);

/** A key id in the provider's format. */
export const keyName = (provider: string, random: Random): string =>
  provider === 'anthropic' ? id(random, 'apikey_01', 22) : id(random, 'key_', 16);

/**
 * Most instrumentations record an answer's model and an error's status; the wrappers of one in this number of
 * series do not.
 */
const SILENT_ONE_IN = 6;

/** Draws accounts and series; each (account, model) occurs at most once. */
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
    // Most companies' wrappers report every call; some lose a few.
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

/** Every key of the series, not revoked. */
export const registeredKeys = (series: readonly Series[]): RegisteredKey[] =>
  series.flatMap(({ provider, accountId, keys }) =>
    keys.map(({ keyId }) => ({ provider, accountId, keyId, revokedAtSeconds: null })),
  );

/** Seconds before midnight in which calls may be booked on the next day: three in a thousand of a day. */
const LEAK_SECONDS = Math.round(DAY_SECONDS * 0.003);

/**
 * The time at which the provider books a call: its end or a little later; in Pacific time if the provider's days
 * are Pacific.
 */
export function bookedSeconds(call: UsedCall, series: Series, isPacific: boolean): number {
  const shift = isPacific ? pacificOffsetSeconds(call.endSeconds) : 0;
  const local = call.endSeconds - shift + series.circumstances.delaySeconds(call);
  const isLate = local % DAY_SECONDS >= DAY_SECONDS - LEAK_SECONDS;
  return isLate ? local + LEAK_SECONDS : local;
}
