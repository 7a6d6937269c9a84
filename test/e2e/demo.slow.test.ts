import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LoadedDemo, loadDemo } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { decimalFromPico } from '../../domain/money.js';
import { DEMO_SEED, type Demo, generateDemo } from '../../lab/demo/generateDemo.js';
import { SCHEDULE } from '../../lab/demo/schedule.js';
import { createLogger } from '../../platform/logger.js';
import type { TestApi } from '../support/api.js';
import { exact, listGaps } from '../support/demoReads.js';
import { type BillTotals, sumCostPages } from '../support/independentBillReader.js';
import { itFindsWhatWasPlanted, yesterday } from '../support/plantedFaults.js';
import { startWorkingApi } from '../support/workingApi.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const screen = createScreen(false, createLogger({ name: 'demo', level: 'silent' }));

let api: TestApi;
let demo: Demo;
let loaded: LoadedDemo;
let gaps: Json[];
let billed: BillTotals;

beforeAll(async () => {
  api = await startWorkingApi({ readsInvoices: true });
  demo = generateDemo({ seed: DEMO_SEED, endDay: yesterday });
  billed = sumCostPages(demo.files.filter(({ name }) => /cost/.test(name)));
  const started = performance.now();
  loaded = await loadDemo({ base: api.baseUrl, key: api.adminKey }, demo, screen);
  console.info(`the demo: loaded and compared in ${((performance.now() - started) / 1_000).toFixed(1)} s`);
  gaps = await listGaps(api);
}, 300_000);

afterAll(() => api?.close());

describe('the demo, brought in as events and saved bills', () => {
  it('comes in whole', () => {
    expect(loaded).toMatchObject({ events: demo.events.length, duplicates: 0 });
  });

  itFindsWhatWasPlanted(() => ({ api, demo, run: loaded.run, gaps, billed }));

  it('shows what is no fault of a bill: the loop, the calls without a team, staging, secrets, the restated day', async () => {
    const { runawayLoop, unlabelled, staging, secrets, restated } = demo.answerKey;
    const dayText = (offset: number) => demo.calendar.dayText(offset);
    const breakdown = async (dimension: string, since: string, until: string) =>
      (await api.get(`/api/v1/dashboard/breakdown/${dimension}?since=${since}&until=${until}`)).body.items;
    const [loopDay, stagingDay] = [dayText(SCHEDULE.runawayLoop.first), dayText(SCHEDULE.staging.first)];
    const [session] = await breakdown('session', loopDay, loopDay);
    expect([session.key, session.call_count, exact(session.cost_usd)]).toEqual([
      runawayLoop.sessionId,
      runawayLoop.events,
      runawayLoop.pico,
    ]);
    const teams = await breakdown('team', dayText(-89), demo.endDay);
    const unset = teams.find((item: Json) => item.key === '<unset>');
    expect([unset.call_count, exact(unset.cost_usd)]).toEqual([unlabelled.events, unlabelled.pico]);
    const search = `feature=semantic-search&since=${stagingDay}&until=${stagingDay}&limit=1000`;
    const { events } = (await api.get(`/api/v1/events?${search}`)).body;
    const staged = events.filter((event: Json) => event.environment === 'staging');
    expect(new Set(staged.map((event: Json) => event.provider_key_id))).toEqual(new Set([staging.keyId]));
    expect(staged).toHaveLength(staging.events);
    const prompts = await Promise.all(
      [SCHEDULE.secrets.first, SCHEDULE.secrets.last].map(async (offset) => {
        const query = `since=${dayText(offset)}&until=${dayText(offset)}&limit=1000&include_payload=true`;
        return (await api.get(`/api/v1/events?${query}`)).body.events;
      }),
    );
    const secret = prompts.flat().filter((event: Json) => secrets.requestIds.includes(event.request_id));
    expect(secret).toHaveLength(2);
    expect(secret.every((event: Json) => /demo-/.test(event.payload.prompt))).toBe(true);
    const [difference, ...more] = loaded.run.result.source_differences;
    expect(more).toEqual([]);
    expect([difference.provider, difference.day]).toEqual(['openai', dayText(restated.offset)]);
    expect(difference.counted_usd - difference.other_usd).toBeCloseTo(
      Number(decimalFromPico(restated.addedPico)),
      9,
    );
  });

  it('breaks its policies by exactly the calls that are meant to, with one alert for each in the feed', async () => {
    const { wanted, secrets, staging, ofTraffic } = demo.answerKey;
    const callsOf = async (type: string) => {
      const { body } = await api.get(`/api/v1/alerts?policy_type=${type}&limit=1000`);
      expect(body.has_more).toBe(false);
      return body.alerts.map(({ event_id: id }: Json) => id as string);
    };
    const requestsOf = async (type: string) => {
      const found = await Promise.all(
        (await callsOf(type)).map((id: string) => api.get(`/api/v1/events/${id}`)),
      );
      return found.map(({ body }) => body.request_id).sort();
    };
    expect(await requestsOf('approved_models')).toEqual(wanted.unapproved.requestIds);
    expect(await requestsOf('banned_patterns')).toEqual([...secrets.requestIds].sort());
    expect(await callsOf('key_environment_check')).toHaveLength(staging.events);
    expect(await callsOf('approval_required_threshold_cents')).toHaveLength(ofTraffic.dear.calls);
    expect(ofTraffic.dear.calls).toBeGreaterThan(10);
    expect(
      (await api.get('/api/v1/alerts?limit=1000')).body.alerts.map(({ kind }: Json) => kind),
    ).not.toContain('notice');
  });

  it('has rules that would have saved what the loop spent beyond its budget, and the drafts’ difference', () => {
    const { wanted, ofTraffic } = demo.answerKey;
    const found = loaded.savings.modeled.by_rule.map((rule: Json) => [
      rule.type,
      rule.blocked_calls + rule.downgraded_calls,
      exact(rule.preventable_modeled_usd_exact),
    ]);
    expect(found).toEqual([
      ['session_budget_usd', wanted.budget.calls, wanted.budget.pico],
      ['model_downgrade', ofTraffic.drafts.calls, ofTraffic.drafts.pico],
    ]);
  });

  it('comes in a second time without any change', async () => {
    const alertsBefore = (await api.get('/api/v1/alerts?limit=1000')).body;
    const again = await loadDemo({ base: api.baseUrl, key: api.adminKey }, demo, screen);
    expect(again).toMatchObject({ events: demo.events.length, duplicates: demo.events.length });
    expect(again.run.result).toMatchObject({
      flagged: loaded.run.result.flagged,
      rate_mismatches: loaded.run.result.rate_mismatches,
    });
    expect(again.savings.preventable_modeled_usd_exact).toBe(loaded.savings.preventable_modeled_usd_exact);
    expect((await api.get('/api/v1/alerts?limit=1000')).body).toEqual(alertsBefore);
    expect((await api.get('/api/v1/enforcement-rules')).body.count).toBe(demo.rules.length);
    expect((await api.get('/api/v1/policies')).body.policies).toHaveLength(demo.policies.length);
    expect((await api.get('/api/v1/pricing/contract-rates')).body.count).toBe(1);
    expect((await api.get('/api/v1/billing-imports')).body.count).toBe(demo.files.length);
  }, 300_000);
});
