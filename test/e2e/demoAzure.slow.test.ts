import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addEvents } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { decimalFromPico } from '../../domain/money.js';
import { microsFromDate } from '../../domain/period.js';
import type { TokenClass } from '../../lab/bills/results.js';
import { type BilledLine, billedLines, isDoubled } from '../../lab/demo/billed.js';
import { makeCalls } from '../../lab/demo/calls.js';
import { DEMO_SEED, type Demo, generateDemo } from '../../lab/demo/generateDemo.js';
import { priceOf, type Rates, TERRA_BEFORE } from '../../lab/demo/prices.js';
import { createLogger } from '../../platform/logger.js';
import { type AzureCharge, type AzureFake, startAzureBilling } from '../fakes/billing/azureBilling.js';
import type { TestApi } from '../support/api.js';
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

const SUBSCRIPTION = 'aaaaaaaa-0000-4000-8000-000000000001';
const SCOPE = `/subscriptions/${SUBSCRIPTION}`;
const CREDENTIALS = { tenant_id: 'tenant', client_id: 'trueup', client_secret: 'S3cret~OfTheApplication' };
/**
 * Days for which the demo ended before today: all but the last of its faults are on days that Azure has closed on any
 * date of the year, and none too far back.
 */
const ENDED_DAYS_AGO = 25;
/** Days after its end in which Azure may change a month. */
const OPEN_AFTER_MONTH = 5;
const OPEN_FROM = firstOpenDay(OPEN_AFTER_MONTH, daysAgo(0));
const screen = createScreen(false, createLogger({ name: 'demo', level: 'silent' }));

/** Meters as Azure names them: `5 mini Batch Cd Inp Gl 1M Tokens`. */
const METERS: Readonly<Record<string, string>> = {
  'gpt-6-sol': '6 sol',
  'gpt-5.6-terra': '5.6 terra',
  'gpt-5-mini-2025-08-07': 'GPT 5 Mini',
  'gpt-4o-2024-11-20': 'gpt-4o-1120',
};
const TOKEN_CLASSES: Partial<Record<TokenClass, string>> = {
  input: 'Inp',
  cache_read: 'Cd Inp',
  cache_write_5m: 'Cd Wr',
  output: 'Outp',
};
/** Models whose meters separate long requests. */
const HAS_LENGTHS = /^gpt-(?:6|5\.6)/;

function meterOf({ model, tokenClass, isBatch, isLong }: BilledLine): string {
  const words = [
    METERS[model],
    isBatch ? 'Batch' : '',
    HAS_LENGTHS.test(model) ? (isLong ? 'LongCo' : 'ShortCo') : '',
    TOKEN_CLASSES[tokenClass],
    'Gl 1M Tokens',
  ];
  return words.filter((word) => word !== '').join(' ');
}

/** The demo's OpenAI bill as Azure would state it: a resource for each project, a day billed twice as two lines. */
function chargesOf(demo: Demo): AzureCharge[] {
  const calls = makeCalls(demo.seed, demo.calendar).filter(({ provider }) => provider === 'openai');
  return billedLines(calls).flatMap((line) => {
    const charge: AzureCharge = {
      day: demo.calendar.dayText(line.offset),
      cost: decimalFromPico(line.billedPico),
      quantity: decimalFromPico(BigInt(line.quantity) * 1_000_000n),
      dimensions: {
        Meter: meterOf(line),
        MeterCategory: 'Foundry Models',
        ResourceId: `${SCOPE}/resourceGroups/demo/providers/Microsoft.CognitiveServices/accounts/${line.key.project}`,
        SubscriptionId: SUBSCRIPTION,
      },
    };
    return isDoubled('openai', line.offset) ? [charge, charge] : [charge];
  });
}

/** Enters prices that the list lacks, because its prices for Azure come from one source and have no dates. */
async function agree(
  entry: 'contract-rates' | 'overrides',
  model: string,
  rates: Rates,
  days: { from: string; to: string | null },
): Promise<void> {
  const { status } = await api.post(`/api/v1/pricing/${entry}`, {
    provider: 'azure_openai',
    model,
    rates: Object.fromEntries(Object.entries(rates).map(([name, pico]) => [name, Number(pico) / 1_000_000])),
    effective_from: days.from,
    effective_to: days.to,
    source: { document: 'Enterprise Agreement', clause: 'prices of models' },
  });
  expect(status).toBe(201);
}

let api: TestApi;
let azure: AzureFake;
let demo: Demo;
let run: Json;
let gaps: Json[];

beforeAll(async () => {
  demo = generateDemo({ seed: DEMO_SEED, endDay: daysAgo(ENDED_DAYS_AGO) });
  const started = Math.floor(Date.now() / 1_000);
  azure = await startAzureBilling({
    truth: {
      tenantId: CREDENTIALS.tenant_id,
      clientId: CREDENTIALS.client_id,
      clientSecret: CREDENTIALS.client_secret,
      scopes: { [SCOPE]: chargesOf(demo) },
      currency: 'USD',
    },
    nowSeconds: () => started,
  });
  const nowMicros = () => microsFromDate(new Date());
  const connectors = testConnectors({ azureManagement: azure.origin, azureLogin: azure.origin }, nowMicros);
  api = await startWorkingApi({ connectors, syncPace: FAST, nowMicros });
  const events = demo.events
    .filter((event) => (event as Json).provider === 'openai')
    .map((event) => ({ ...event, provider: 'azure_openai', provider_account_id: SUBSCRIPTION }));
  await addEvents({ base: api.baseUrl, key: api.adminKey }, { ...demo, events }, screen);
  const { firstDay } = demo;
  const terra = priceOf('gpt-5.6-terra').standard;
  await agree('overrides', 'gpt-5.6-terra', TERRA_BEFORE, { from: daysAgo(200), to: firstDay });
  await agree('overrides', 'gpt-5.6-terra', terra, { from: firstDay, to: null });
  await agree('contract-rates', 'gpt-6-sol', priceOf('gpt-6-sol').standard, { from: firstDay, to: null });
  ({ run } = await connectAndCompare(api, {
    provider: 'azure_openai',
    credentials: CREDENTIALS,
    settings: { scope: SCOPE },
  }));
  gaps = await listGaps(api);
}, 400_000);

afterAll(async () => {
  await api?.close();
  await azure?.close();
});

/** The planted gaps of closed days. */
const planted = () =>
  demo.answerKey.gaps
    .map((gap) => ({ ...gap, day: demo.calendar.dayText(gap.offset) }))
    .filter(({ provider, day }) => provider === 'openai' && day < OPEN_FROM);

describe('the demo’s OpenAI as Azure bills it', () => {
  it('flags the planted days with their exact dollars, and nothing else', () => {
    expect(run.status).toBe('succeeded');
    const expected = planted().map((gap) => ({
      day: gap.day,
      model: gap.model,
      gap: cents(decimalFromPico(gap.gapPico)),
      rate: gap.hasEvents ? cents(decimalFromPico(gap.ratePico)) : null,
      volume: gap.hasEvents ? cents(decimalFromPico(gap.volumePico)) : null,
    }));
    const found = gaps
      .filter(({ flagged_gap }) => flagged_gap)
      .map((gap) => ({
        day: dayOf(gap),
        model: gap.model,
        gap: cents(gap.provider_cost_usd - gap.our_cost_usd),
        rate: gap.match_status === 'partial' ? cents(gap.gap_parts.rate_usd) : null,
        volume: gap.match_status === 'partial' ? cents(gap.gap_parts.volume_usd) : null,
      }));
    expect(expected.length).toBeGreaterThan(20);
    expect(found.sort(byText)).toEqual(expected.sort(byText));
  });

  it('matches every other day, at HIGH once it is closed', () => {
    const missing = demo.answerKey.gaps
      .filter(({ kind }) => kind === 'missing_window')
      .map(({ offset }) => demo.calendar.dayText(offset));
    const rest = gaps.filter((gap) => !gap.flagged_gap && !missing.includes(dayOf(gap)));
    expect(rest.length).toBeGreaterThan(150);
    expect(oddOf(rest)).toEqual([]);
    expect(rest.filter((gap) => gap.provisional !== dayOf(gap) >= OPEN_FROM).map(dayOf)).toEqual([]);
  });

  /**
   * A wrong rate shows in the bill itself. Finding a day that is billed twice requires the provider's usage report, and
   * finding an unknown key requires keys. Azure reports neither, so those days are gaps without a finding.
   */
  it('explains wrong rates by the names, days and dollars that they have at OpenAI, and accuses of nothing else', async () => {
    const faults = ['stale_price', 'cache_at_full_rate'];
    const expected = demo.answerKey.findings
      .filter(({ provider, fault }) => provider === 'openai' && faults.includes(fault))
      .map((finding) => ({
        kind: finding.kind,
        model: finding.model,
        period_start: demo.calendar.dayText(finding.days.first),
        period_end: demo.calendar.dayText(finding.days.last),
        impact_usd_exact: decimalFromPico(finding.impactPico),
        // The document that states both prices proves them.
        confidence: 'HIGH',
        claimable: true,
      }));
    const { body } = await api.get('/api/v1/financial/findings?limit=1000');
    const found = body.findings.filter(({ kind }: Json) => kind !== 'unobserved_usage');
    const told = found.map((one: Json) => fieldsAsIn(expected[0], one));
    expect(expected).toHaveLength(2);
    expect(told.sort(byText)).toEqual(expected.sort(byText));
  });
});
