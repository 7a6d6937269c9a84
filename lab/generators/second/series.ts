/**
 * Plans the calls of a company of the second kind: few models cause most of the cost, many cause little; some
 * begin or end within a month; keys are rotated; some make few large calls instead of many small ones.
 */
import { type BookModel, periodAt, RATE_BOOK } from '../bills/rateBook.js';
import { DAY_SECONDS } from '../support/days.js';
import type { Random } from '../support/random.js';

export interface SeriesPlan {
  id: string;
  accountId: string;
  model: BookModel;
  /** First and below last day of use. */
  firstDay: number;
  lastDay: number;
  /** Calls of an ordinary day, before bursts. */
  callsPerDay: number;
  /** Minimum whole input of a call; inputs follow a power law with the exponent below. */
  inputLeast: number;
  inputExponent: number;
  /** Shares of the whole input that are read from and written to the cache. */
  readShare: number;
  writeShare: number;
  hourWrites: boolean;
  outputMedian: number;
  reasoningShare: number;
  batchShare: number;
  tier: 'standard' | 'flex' | 'priority';
  tierShare: number;
  geoShare: number;
  /** The paid share of the list price, per mille, and whether the company has entered the contract. */
  contract: { perMille: number; isReported: boolean } | null;
  projects: readonly string[];
  services: readonly string[];
  /** Keys in the order of use, each with its first second. */
  keys: readonly { keyId: string; fromSeconds: number; untilSeconds: number | null }[];
}

/** A draw from a power law from `least` on, cut at `most`: most values are near `least`, a few are large. */
export function pareto(random: Random, least: number, exponent: number, most: number): number {
  return Math.min(most, least / (1 - random.next()) ** (1 / exponent));
}

interface Span {
  firstDay: number;
  lastDay: number;
}

const ACCOUNTS: readonly { provider: string; accountId: string; models: number }[] = [
  { provider: 'openai', accountId: 'org-harbour', models: 6 },
  { provider: 'anthropic', accountId: 'a3f0c1d2-quay', models: 5 },
  { provider: 'openai', accountId: 'org-lighthouse', models: 4 },
  { provider: 'anthropic', accountId: 'b7715e90-mole', models: 4 },
  { provider: 'google', accountId: 'billing-0042', models: 1 },
  { provider: 'openai', accountId: 'org-breakwater', models: 5 },
  { provider: 'anthropic', accountId: 'c90d11aa-pier', models: 5 },
  { provider: 'aws_bedrock', accountId: '111122223333', models: 1 },
];

/** The series of a company; `size` is a factor on the number of accounts. */
export function planSeries(random: Random, span: Span, size: number): SeriesPlan[] {
  const count = Math.max(2, Math.round(ACCOUNTS.length * size));
  const series: SeriesPlan[] = [];
  const contracts = planContracts(random);
  for (let at = 0; at < count; at += 1) {
    const account = ACCOUNTS[at % ACCOUNTS.length] as (typeof ACCOUNTS)[number];
    const round = Math.floor(at / ACCOUNTS.length);
    const accountId = round === 0 ? account.accountId : `${account.accountId}-${round + 1}`;
    const offered = RATE_BOOK.filter((model) => model.provider === account.provider);
    for (const model of random.shuffled(offered).slice(0, account.models))
      series.push({ ...planOne(random, accountId, model, span), contract: contracts.get(model) ?? null });
  }
  return series;
}

const CONTRACTS = 4;

/** A contract covers a model at a provider for every account. The company has not entered a third of them. */
function planContracts(random: Random): Map<BookModel, SeriesPlan['contract']> {
  const agreed = random.shuffled(RATE_BOOK).slice(0, CONTRACTS);
  return new Map(
    agreed.map((model) => [
      model,
      { perMille: 1_000 - random.whole(3, 22) * 10, isReported: random.chance(0.67) },
    ]),
  );
}

function planOne(
  random: Random,
  accountId: string,
  model: BookModel,
  span: Span,
): Omit<SeriesPlan, 'contract'> {
  const startsLate = random.chance(0.2);
  const endsEarly = !startsLate && random.chance(0.1);
  const firstDay = startsLate ? random.whole(span.firstDay + 8, span.firstDay + 40) : span.firstDay;
  const lastDay = endsEarly ? random.whole(span.lastDay - 30, span.lastDay - 5) : span.lastDay;
  const isFewAndLarge = random.chance(0.2);
  const hasWrites = model.periods.some((period) => (period.standard[2] ?? 0) > 0);
  const period = periodAt(model, firstDay);
  const id = `${accountId}/${model.model}`;
  const tier = random.chance(0.35) && period.priority ? 'priority' : period.flex ? 'flex' : 'standard';
  const canBatch = model.periods.every((one) => one.batch !== undefined);
  const canTier = tier !== 'standard' && model.periods.every((one) => one[tier] !== undefined);
  return {
    id,
    accountId,
    model,
    firstDay,
    lastDay,
    callsPerDay: isFewAndLarge ? random.between(3, 9) : pareto(random, 10, 1.1, 130),
    inputLeast: isFewAndLarge ? random.between(40_000, 110_000) : random.lognormal(9_000, 0.8),
    inputExponent: random.between(1.05, 1.9),
    readShare: random.chance(0.75) ? random.between(0.05, 0.9) : 0,
    writeShare: hasWrites && random.chance(0.7) ? random.between(0.01, 0.3) : 0,
    hourWrites: model.provider === 'anthropic' && random.chance(0.4),
    outputMedian: random.lognormal(2_200, 0.9),
    reasoningShare: random.chance(0.5) ? random.between(0.1, 0.8) : 0,
    batchShare: canBatch && random.chance(0.45) ? random.between(0.08, 0.7) : 0,
    tier: canTier ? tier : 'standard',
    tierShare: canTier && random.chance(0.4) ? random.between(0.05, 0.5) : 0,
    geoShare:
      model.provider === 'anthropic' && model.usPerMille && random.chance(0.2) ? random.between(0.1, 0.6) : 0,
    projects: projectsOf(random, model.provider, id),
    services: Array.from({ length: random.whole(1, 3) }, (_, n) => `${model.model}-worker-${n + 1}`),
    keys: rotateKeys(random, model.provider, id, span),
  };
}

function projectsOf(random: Random, provider: string, id: string): string[] {
  const word = provider === 'openai' ? 'proj' : provider === 'anthropic' ? 'wrkspc' : 'team';
  return Array.from({ length: random.whole(1, 2) }, (_, n) => `${word}_${id.replaceAll(/\W/g, '')}${n + 1}`);
}

/** Seconds between the start of the next key and the revocation of the old one. */
export const REVOKED_AFTER_SECONDS = 3_600;

/** A third of the series rotate their key once or twice; the old one is revoked an hour later. */
function rotateKeys(random: Random, provider: string, id: string, span: Span): SeriesPlan['keys'] {
  const changes = random.chance(0.35) ? random.whole(1, 2) : 0;
  const begin = span.firstDay * DAY_SECONDS;
  const end = (span.lastDay + 1) * DAY_SECONDS;
  const times = Array.from({ length: changes }, () => Math.floor(random.between(begin, end))).sort(
    (a, b) => a - b,
  );
  const starts = [0, ...times];
  return starts.map((fromSeconds, n) => ({
    keyId: `${provider === 'anthropic' ? 'apikey' : 'key'}_${id.replaceAll(/\W/g, '')}_${n + 1}`,
    fromSeconds,
    untilSeconds: starts[n + 1] ?? null,
  }));
}
