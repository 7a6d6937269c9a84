import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addAgreements, addEvents } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { DEMO_SEED, type Demo, generateDemo } from '../../lab/demo/generateDemo.js';
import { createLogger } from '../../platform/logger.js';
import { pollToEnd } from '../support/bills.js';
import { connectAndCompare, listGaps } from '../support/demoReads.js';
import { aConnection, type FetchedProvider } from '../support/fetchedBills.js';
import { type FetchingPlace, startFetchingPlace } from '../support/fetchingPlace.js';
import { type BillTotals, sumCostPages } from '../support/independentBillReader.js';
import { itFindsWhatWasPlanted, yesterday } from '../support/plantedFaults.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const PROVIDERS: readonly FetchedProvider[] = ['openai', 'anthropic'];
const screen = createScreen(false, createLogger({ name: 'demo', level: 'silent' }));

let place: FetchingPlace;
let demo: Demo;
let syncs: Json[];
let run: Json;
let gaps: Json[];
let billed: BillTotals;

/** The pages of the cost reports as received, oldest first: the input of an independent reader. */
async function fetchedCostPages(): Promise<{ account: string; provider: string; text: string }[]> {
  const { rows } = await place.api.database.superuser.query(
    `select c.provider, c.provider_account_id as account, convert_from(p.body, 'UTF8') as text
     from billing_fetched_pages p join billing_connections c on c.org_id = p.org_id and c.id = p.connection_id
     where p.org_id = $1 and p.report in ('costs', 'cost_report') order by p.fetched_at, p.id`,
    [place.api.orgId],
  );
  return rows;
}

/** Connects both providers at once, each with the gap run that follows. */
async function connectBoth(): Promise<void> {
  const compared = await Promise.all(
    PROVIDERS.map((provider) => {
      const settings = provider === 'openai' ? { account: demo.truth.openai.accountId } : {};
      return connectAndCompare(place.api, aConnection(provider, { settings }));
    }),
  );
  syncs = compared.map(({ sync }) => sync);
  run = joined(compared.map((each) => each.run));
}

/** Each sync starts a run over its own provider: together they are one over both. */
function joined(runs: readonly Json[]): Json {
  const all = (name: string) => runs.flatMap(({ result }) => result[name]);
  const sum = (name: string) => runs.reduce((total, { result }) => total + result[name], 0);
  return {
    statuses: runs.map(({ status, error }) => [status, error]),
    result: {
      flagged: sum('flagged'),
      rate_mismatches: all('rate_mismatches'),
      rate_mismatch_count: sum('rate_mismatch_count'),
      suspect_keys: all('suspect_keys'),
    },
  };
}

beforeAll(async () => {
  place = await startFetchingPlace({ backfillDays: null });
  await place.engine.startWorker();
  demo = generateDemo({ seed: DEMO_SEED, endDay: yesterday });
  for (const provider of PROVIDERS) place[provider].setTruth(demo.truth[provider]);
  const client = { base: place.api.baseUrl, key: place.api.adminKey };
  await addAgreements(client, demo);
  await addEvents(client, demo, screen);
  const started = performance.now();
  await connectBoth();
  console.info(
    `connected: 90 days of two providers in ${((performance.now() - started) / 1_000).toFixed(1)} s`,
  );
  gaps = await listGaps(place.api);
  billed = sumCostPages(await fetchedCostPages());
}, 400_000);

afterAll(() => place?.close());

describe('the demo, fetched from its providers', () => {
  it('is connected and fetched whole, and compared without a request', () => {
    expect(syncs.map(({ status, result }) => [status, result.missing])).toEqual([
      ['succeeded', []],
      ['succeeded', []],
    ]);
    expect(run.statuses).toEqual([
      ['succeeded', null],
      ['succeeded', null],
    ]);
  });

  itFindsWhatWasPlanted(() => ({ api: place.api, demo, run, gaps, billed }));

  it('counts once what is fetched and also imported from saved pages: nothing changes', async () => {
    const before = await monthTotals();
    for (const { provider, account, name, text } of demo.files) {
      const form = new FormData();
      form.append('provider', provider);
      form.append('account', account);
      form.append('file', new Blob([text]), name);
      const response = await fetch(`${place.api.baseUrl}/api/v1/billing-imports`, {
        method: 'POST',
        headers: { authorization: `Bearer ${place.api.adminKey}` },
        body: form,
      });
      const read = await pollToEnd(place.api, ((await response.json()) as Json).status_url, 180_000);
      expect(read.status).toBe('succeeded');
    }
    expect(await monthTotals()).toEqual(before);
  });
});

/** The billed dollars in the statements of the demo's months. */
async function monthTotals(): Promise<unknown[]> {
  const months = new Set(demo.calendar.offsets().map((offset) => demo.calendar.dayText(offset).slice(0, 7)));
  return Promise.all(
    [...months].map(async (month) => {
      const { body } = await place.api.get(`/api/v1/reconciliation/statement?period=${month}`);
      return [month, body.total.invoice_total_usd, body.total.billed_usage_usd, body.total.credits_usd];
    }),
  );
}
