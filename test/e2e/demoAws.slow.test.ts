import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addEvents } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { decimalFromPico } from '../../domain/money.js';
import { microsFromDate } from '../../domain/period.js';
import { TOKEN_CLASSES, type TokenClass } from '../../lab/bills/results.js';
import { type AnswerKey, answerKeyOf } from '../../lab/demo/answerKey.js';
import { type BilledLine, billedLines, isDoubled } from '../../lab/demo/billed.js';
import { Calendar, DAY_COUNT } from '../../lab/demo/calendar.js';
import { type DemoCall, makeCalls, rightRate } from '../../lab/demo/calls.js';
import { CONTRACT } from '../../lab/demo/company.js';
import { eventOf, isReported } from '../../lab/demo/events.js';
import { DEMO_SEED } from '../../lab/demo/generateDemo.js';
import { priceOf, type Rates, TERRA_BEFORE } from '../../lab/demo/prices.js';
import { createLogger } from '../../platform/logger.js';
import { type AwsCharge, type AwsFake, startCostExplorer } from '../fakes/billing/costExplorer.js';
import type { TestApi } from '../support/api.js';
import { AWS_KEYS, AWS_MEMBER, AWS_PAYER } from '../support/awsBills.js';
import { testConnectors } from '../support/connectors.js';
import {
  byText,
  cents,
  connectAndCompare,
  dayOf,
  fieldsAsIn,
  firstOpenDay,
  listGaps,
  oddOf,
} from '../support/demoReads.js';
import { daysAgo, FAST } from '../support/fetchedBills.js';
import { startWorkingApi } from '../support/workingApi.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

/**
 * Days for which the demo ended before today: all planted faults are within the ninety days of a new connection, except
 * for its first weeks.
 */
const ENDED_DAYS_AGO = 25;
/** Days from here on Amazon still calls estimated. */
const FINAL_BEFORE = daysAgo(30);
/** Days after its end in which Amazon issues a month's bill, which closes the days that it calls estimated. */
const OPEN_AFTER_MONTH = 7;
const MONTHS_OPEN_FROM = firstOpenDay(OPEN_AFTER_MONTH, daysAgo(0));
const OPEN_FROM = FINAL_BEFORE > MONTHS_OPEN_FROM ? FINAL_BEFORE : MONTHS_OPEN_FROM;
const PROVIDER = 'aws_bedrock';
const screen = createScreen(false, createLogger({ name: 'demo', level: 'silent' }));

/** Models of the demo that Bedrock sells from anywhere at the same prices: as bills and as calls name them. */
const MODELS: Readonly<
  Record<string, { id: string; usageTypeOf(line: BilledLine): string; edition?: string; shownAs?: string }>
> = {
  'gpt-6-sol': { id: 'global.openai.gpt-6-sol', usageTypeOf: mantle('openai.gpt-6-sol') },
  'gpt-5.6-terra': { id: 'global.openai.gpt-5.6-terra', usageTypeOf: mantle('openai.gpt-5.6-terra') },
  'claude-haiku-4-5-20251001': {
    id: 'global.anthropic.claude-haiku-4-5-20251001-v1:0',
    shownAs: 'anthropic.claude-haiku-4-5',
    usageTypeOf: named('Claude4.5Haiku'),
  },
  'claude-opus-5': {
    id: 'global.anthropic.claude-opus-5',
    usageTypeOf: marketplace,
    edition: 'Claude Opus 5 (Amazon Bedrock Edition)',
  },
  'claude-sonnet-5-5': {
    id: 'global.anthropic.claude-sonnet-5-5',
    usageTypeOf: marketplace,
    edition: 'Claude Sonnet 5.5 (Amazon Bedrock Edition)',
  },
};

/** A thousand tokens: `USE1-openai.gpt-6-sol-mantle-cache-read-tokens-global-standard`. */
function mantle(name: string): (line: BilledLine) => string {
  const meters: Partial<Record<TokenClass, string>> = {
    input: 'input-tokens',
    cache_read: 'cache-read-tokens',
    cache_write_5m: 'cache-write-tokens',
    output: 'output-tokens',
  };
  return ({ tokenClass, isLong }) =>
    `USE1-${name}-mantle-${meters[tokenClass]}-global-standard${isLong ? '-long-context' : ''}`;
}

/** A thousand tokens: `USE1-Claude4.5Haiku-cache-read-input-token-count-cross-region-global-batch`. */
function named(name: string): (line: BilledLine) => string {
  const meters: Record<TokenClass, string> = {
    input: 'input-tokens',
    cache_read: 'cache-read-input-token-count',
    cache_write_5m: 'cache-write-input-token-count',
    cache_write_1h: 'cache-write-input-token-count-1h',
    output: 'output-tokens',
  };
  return ({ tokenClass, isBatch }) =>
    `USE1-${name}-${meters[tokenClass]}-cross-region-global${isBatch ? '-batch' : ''}`;
}

/** A million tokens, the model is the product's name: `USE1-MP:USE1_CacheReadInputTokenCount_Global-Units`. */
function marketplace({ tokenClass }: BilledLine): string {
  const meters: Record<TokenClass, string> = {
    input: 'InputTokenCount',
    cache_read: 'CacheReadInputTokenCount',
    cache_write_5m: 'CacheWriteInputTokenCount',
    cache_write_1h: 'CacheWrite1hInputTokenCount',
    output: 'OutputTokenCount',
  };
  return `USE1-MP:USE1_${meters[tokenClass]}_Global-Units`;
}

/** Bedrock does not cache in batches: cached tokens are input there. */
function retold(call: DemoCall): DemoCall {
  if (call.batchId === null) return call;
  const { input, cache_read, cache_write_5m, cache_write_1h, output } = call.tokens;
  const tokens = {
    input: input + cache_read + cache_write_5m + cache_write_1h,
    cache_read: 0,
    cache_write_5m: 0,
    cache_write_1h: 0,
    output,
  };
  const pico = TOKEN_CLASSES.reduce((sum, name) => sum + BigInt(tokens[name]) * rightRate(call, name), 0n);
  return { ...call, tokens, pico };
}

/** The demo ended so long ago that all but its last days are final at Amazon. */
const calendar = new Calendar(daysAgo(ENDED_DAYS_AGO));
const firstDay = calendar.dayText(1 - DAY_COUNT);
const calls = makeCalls(DEMO_SEED, calendar)
  .filter(({ model }) => MODELS[model])
  .map(retold);
const answerKey: AnswerKey = answerKeyOf(calls, calendar);

/**
 * Bedrock's bill for the demo's calls: a linked account for each half of the company, a day billed twice as two lines.
 */
function chargesOf(): AwsCharge[] {
  return billedLines(calls).flatMap((line) => {
    const model = MODELS[line.model];
    if (!model) return [];
    const tokensOfUnit = model.edition === undefined ? 1_000n : 1_000_000n;
    const charge: AwsCharge = {
      day: calendar.dayText(line.offset),
      recordType: 'Usage',
      service: model.edition ?? 'Amazon Bedrock',
      usageType: model.usageTypeOf(line),
      account: line.key.team === 'search' || line.key.team === 'platform' ? AWS_MEMBER : AWS_PAYER,
      cost: decimalFromPico(line.billedPico),
      quantity: decimalFromPico((BigInt(line.quantity) * 1_000_000_000_000n) / tokensOfUnit),
    };
    return isDoubled(line.provider, line.offset) ? [charge, charge] : [charge];
  });
}

/** Enters prices that the list lacks, because it has no days on which Bedrock's prices began. */
async function agree(entry: 'contract-rates' | 'overrides', model: string, terms: object): Promise<void> {
  const { status, body } = await api.post(`/api/v1/pricing/${entry}`, {
    provider: PROVIDER,
    model,
    effective_to: null,
    source: { document: 'Private pricing agreement', clause: 'prices of models' },
    ...terms,
  });
  expect(status, JSON.stringify(body)).toBe(201);
}

const ratesOf = (rates: Rates) =>
  Object.fromEntries(Object.entries(rates).map(([name, pico]) => [name, Number(pico) / 1_000_000]));

async function agreeOnPrices(): Promise<void> {
  const terra = 'global.openai.gpt-5.6-terra';
  await agree('overrides', terra, {
    source: null,
    rates: ratesOf(TERRA_BEFORE),
    effective_from: daysAgo(200),
    effective_to: firstDay,
  });
  await agree('overrides', terra, {
    source: null,
    rates: ratesOf(priceOf('gpt-5.6-terra').standard),
    effective_from: firstDay,
  });
  for (const [name, { id }] of Object.entries(MODELS)) {
    const { provider, standard } = priceOf(name);
    if (provider === 'anthropic')
      await agree('contract-rates', id, {
        discount_percent: CONTRACT.discountPercent,
        effective_from: calendar.dayText(CONTRACT.fromOffset),
      });
    else if (name === 'gpt-6-sol')
      await agree('contract-rates', id, { rates: ratesOf(standard), effective_from: firstDay });
  }
}

let api: TestApi;
let aws: AwsFake;
let run: Json;
let gaps: Json[];

beforeAll(async () => {
  aws = await startCostExplorer({
    truth: {
      accessKeyId: AWS_KEYS.access_key_id,
      secretAccessKey: AWS_KEYS.secret_access_key,
      charges: chargesOf(),
      finalBefore: FINAL_BEFORE,
    },
    nowSeconds: () => Math.floor(Date.now() / 1_000),
  });
  aws.limitGroups(500);
  const nowMicros = () => microsFromDate(new Date());
  const connectors = testConnectors({ awsCostExplorer: aws.origin }, nowMicros);
  api = await startWorkingApi({ connectors, syncPace: FAST, nowMicros });
  await agreeOnPrices();
  const events = calls.filter(isReported).map((call) => {
    const id = MODELS[call.model]?.id;
    return {
      ...eventOf(call),
      provider: PROVIDER,
      provider_account_id: AWS_PAYER,
      model: id,
      response_model: id,
    };
  });
  await addEvents({ base: api.baseUrl, key: api.adminKey }, { events }, screen);
  ({ run } = await connectAndCompare(api, {
    provider: PROVIDER,
    credentials: AWS_KEYS,
    settings: { account: AWS_PAYER, region: 'us-east-1' },
  }));
  gaps = await listGaps(api);
}, 400_000);

afterAll(async () => {
  await api?.close();
  await aws?.close();
});

/** The name of a demo's model in buckets and findings: the price list's first name of it. */
function idOf(alias: string): string | undefined {
  const [, model] = Object.entries(MODELS).find(([name]) => priceOf(name).alias === alias) ?? [];
  return model?.shownAs ?? model?.id;
}

/** The planted gaps of closed days, of models that Bedrock sells. */
const planted = () =>
  answerKey.gaps
    .map((gap) => ({ ...gap, day: calendar.dayText(gap.offset), model: idOf(gap.model) }))
    .filter(({ model, day }) => model !== undefined && day < OPEN_FROM);

describe('the demo as Amazon bills it', () => {
  it('is asked by signed queries of at most two groups, page by page, for cents', () => {
    const costs = aws.requests.filter(({ action }) => action === 'GetCostAndUsage');
    expect(new Set(aws.requests.map(({ status }) => status))).toEqual(new Set([200]));
    expect(Math.max(...costs.map(({ body }) => body.GroupBy.length))).toBe(2);
    expect(costs.filter(({ body }) => body.NextPageToken !== undefined).length).toBeGreaterThan(2);
    expect(aws.costUsd()).toBeLessThan(0.5);
  });

  it('flags the planted days with their exact dollars, and nothing else', () => {
    expect(run.status).toBe('succeeded');
    const expected = planted().map((gap) => ({
      day: gap.day,
      model: gap.model,
      gap: cents(decimalFromPico(gap.gapPico)),
      rate: cents(decimalFromPico(gap.ratePico)),
      volume: cents(decimalFromPico(gap.volumePico)),
      own: '0.00',
    }));
    const found = gaps
      .filter(({ flagged_gap }) => flagged_gap)
      .map((gap) => ({
        day: dayOf(gap),
        model: gap.model,
        gap: cents(gap.provider_cost_usd - gap.our_cost_usd),
        rate: cents(gap.gap_parts.rate_usd),
        volume: cents(gap.gap_parts.volume_usd),
        own: cents(gap.gap_parts.own_pricing_usd),
      }));
    expect(expected.length).toBeGreaterThan(30);
    expect(found.sort(byText)).toEqual(expected.sort(byText));
  });

  it('matches every other day, at HIGH once Amazon calls it final or has issued the bill of its month', () => {
    const rest = gaps.filter((gap) => !gap.flagged_gap);
    expect(rest.length).toBeGreaterThan(250);
    expect(oddOf(rest)).toEqual([]);
    expect(rest.filter((gap) => gap.provisional !== dayOf(gap) >= OPEN_FROM).map(dayOf)).toEqual([]);
  });

  /**
   * Cost Explorer has one amount and one quantity for each usage type and day, so wrong rates are found as for the
   * providers themselves. It has no second count of usage, so a day that is billed twice looks like usage without
   * calls.
   */
  it('explains wrong rates by the names, days and dollars that they have at the providers, and accuses of nothing else', async () => {
    const wrongRates = answerKey.findings.filter(({ fault }) => fault !== 'doubled_day');
    const expected = wrongRates.map((finding) => ({
      kind: finding.kind,
      model: idOf(finding.model),
      period_start: calendar.dayText(finding.days.first),
      period_end: calendar.dayText(finding.days.last),
      impact_usd_exact: decimalFromPico(finding.impactPico),
      // The list has the dates of OpenAI's price, and none of Bedrock's: only the organization entered, without a
      // document, that the old price had ended, so there is no claim.
      ...(finding.fault === 'stale_price'
        ? { confidence: 'MEDIUM', claimable: false }
        : { confidence: finding.grade, claimable: finding.claimable }),
    }));
    const { body } = await api.get('/api/v1/financial/findings?limit=1000');
    const told = body.findings
      .filter(({ kind }: Json) => kind !== 'unobserved_usage')
      .map((one: Json) => fieldsAsIn(expected[0], one));
    expect(expected).toHaveLength(6);
    expect(told.sort(byText)).toEqual(expected.sort(byText));
  });

  it('shows unobserved use on the doubled day and in the missing hours, to the last digit, and blames neither side', async () => {
    const expected = planted()
      .filter(({ kind }) => kind === 'doubled_day' || kind === 'missing_window')
      .map(({ day, model, gapPico }) => ({ day, model, impact: decimalFromPico(gapPico), claimable: false }));
    const { body } = await api.get('/api/v1/financial/findings?limit=1000&kind=unobserved_usage');
    const told = body.findings.map((one: Json) => ({
      day: one.period_start,
      model: one.model,
      impact: one.impact_usd_exact,
      claimable: one.claimable,
    }));
    expect(expected).toHaveLength(4);
    expect(told.sort(byText)).toEqual(expected.sort(byText));
  });
});
