/** The requests of the connectors: parameters, addresses and pace. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { MICROS_PER_DAY, microsOfDay, startOfDay } from '../../../domain/period.js';
import {
  accessOf,
  connectorAt,
  PROVIDER_NAMES,
  startProvider,
  stopProviders,
} from './support/connections.js';
import { ANTHROPIC_ACCOUNT, NOW_MICROS, OPENAI_ACCOUNT } from './support/truths.js';

const WINDOW = { fromDay: '2026-07-13', toDay: '2026-10-12' };
const HOUR_MICROS = MICROS_PER_DAY / 24n;

afterEach(stopProviders);

describe.each(PROVIDER_NAMES)('the plan of %s', (provider) => {
  const connector = connectorAt(provider, 'http://127.0.0.1:1');

  it('tiles the window for every report, by chunks of at most one page', () => {
    fc.assert(
      fc.property(fc.integer({ min: -400, max: 5 }), fc.integer({ min: 1, max: 200 }), (offset, days) => {
        const from = startOfDay(NOW_MICROS) + BigInt(offset) * MICROS_PER_DAY;
        const to = from + BigInt(days) * MICROS_PER_DAY;
        const day = (micros: bigint) => new Date(Number(micros / 1_000n)).toISOString().slice(0, 10);
        const plan = connector.plan({ fromDay: day(from), toDay: day(to) }, NOW_MICROS);
        for (const report of new Set(plan.map((chunk) => chunk.report))) {
          const chunks = plan.filter((chunk) => chunk.report === report).reverse();
          expect(chunks[0]?.startMicros).toBe(from);
          expect(chunks[chunks.length - 1]?.endMicros).toBe(to);
          chunks.forEach((chunk, at) => {
            if (at > 0) expect(chunk.startMicros).toBe(chunks[at - 1]?.endMicros);
            const width = chunk.bucketWidth === '1h' ? HOUR_MICROS : MICROS_PER_DAY;
            const most =
              chunk.feed === 'cost'
                ? provider === 'openai'
                  ? 180n
                  : 31n
                : chunk.bucketWidth === '1h'
                  ? 168n
                  : 31n;
            expect(chunk.endMicros - chunk.startMicros).toBeLessThanOrEqual(most * width);
          });
        }
      }),
      { numRuns: 60 },
    );
  });

  it('asks usage by the hour for the last 31 days and by the day before, costs always by the day', () => {
    const border = startOfDay(NOW_MICROS) - 31n * MICROS_PER_DAY;
    for (const chunk of connector.plan(WINDOW, NOW_MICROS)) {
      const expected = chunk.feed === 'usage' && chunk.startMicros >= border ? '1h' : '1d';
      expect(chunk.bucketWidth, chunk.report).toBe(expected);
    }
  });

  it('begins with the costs, the latest days first', () => {
    const plan = connector.plan(WINDOW, NOW_MICROS);
    expect(plan[0]).toMatchObject({ feed: 'cost', endMicros: microsOfDay(WINDOW.toDay) });
  });

  it('is empty for an empty window', () => {
    expect(connector.plan({ fromDay: '2026-09-01', toDay: '2026-09-01' }, NOW_MICROS)).toEqual([]);
  });

  it('needs so few requests for ninety days that pacing leaves it under two minutes', () => {
    const requests = connector.plan(WINDOW, NOW_MICROS).length;
    expect((requests * connector.facts.requestGapMs) / 1_000).toBeLessThan(120);
  });
});

describe('OpenAI is asked', () => {
  it('for every report that is read, grouped by all that it allows', async () => {
    const fake = await startProvider('openai');
    const connector = connectorAt('openai', fake.origin);
    const firsts = new Map(connector.plan(WINDOW, NOW_MICROS).map((chunk) => [chunk.report, chunk]));
    for (const chunk of firsts.values()) await connector.fetchPage(accessOf('openai'), chunk, null);
    const grouped = Object.fromEntries(
      fake.requests.map((request) => [request.report, request.query.group_by]),
    );
    const keyed = ['project_id', 'api_key_id', 'model'];
    expect(grouped).toEqual({
      costs: ['project_id', 'line_item', 'api_key_id'],
      completions: [...keyed, 'batch', 'service_tier'],
      embeddings: keyed,
      moderations: keyed,
      images: keyed,
      audio_speeches: keyed,
      audio_transcriptions: keyed,
      web_search_calls: keyed,
      file_search_calls: ['project_id', 'api_key_id'],
      vector_stores: ['project_id'],
      code_interpreter_sessions: ['project_id'],
    });
    expect(fake.requests.every(({ status }) => status === 200)).toBe(true);
    expect(fake.requests[0]?.query.limit).toEqual(['180']);
  });

  it('for the projects of the scope alone', async () => {
    const fake = await startProvider('openai');
    const connector = connectorAt('openai', fake.origin);
    const access = accessOf('openai', { scope: { projects: ['proj_shop'] } });
    for (const report of ['costs', 'completions']) {
      const chunk = connector.plan(WINDOW, NOW_MICROS).find((one) => one.report === report);
      if (!chunk) throw new Error(`no chunk of ${report}`);
      const { body } = await connector.fetchPage(access, chunk, null);
      expect(body.toString()).toContain('proj_shop');
      expect(body.toString()).not.toContain('proj_chat');
    }
    expect(fake.requests.map(({ query }) => query.project_ids)).toEqual([['proj_shop'], ['proj_shop']]);
  });

  it('under a path of the base address, which appears in the stored request', async () => {
    const fake = await startProvider('openai');
    const connector = connectorAt('openai', `${fake.origin}/gateway/`);
    await connector.identify(accessOf('openai')).catch(() => undefined);
    expect(fake.requests[0]?.path).toBe('/gateway/v1/organization/costs');
  });

  it('for the organization: results name it, or it stays unknown', async () => {
    const fake = await startProvider('openai');
    const connector = connectorAt('openai', fake.origin);
    expect(await connector.identify(accessOf('openai'))).toEqual({
      accountId: OPENAI_ACCOUNT,
      name: 'loopback',
    });
    fake.setTruth({ accountId: OPENAI_ACCOUNT, reports: {} });
    expect(await connector.identify(accessOf('openai'))).toEqual({ accountId: null, name: 'loopback' });
  });

  it('for each permission; a missing one fails its own check and names the remedy', async () => {
    const fake = await startProvider('openai');
    const connector = connectorAt('openai', fake.origin);
    expect(await connector.test(accessOf('openai'))).toEqual([
      { name: 'costs', ok: true, detail: 'the report costs of 2026-10-10 can be read' },
      { name: 'usage', ok: true, detail: 'the report completions of 2026-10-10 can be read' },
    ]);
    fake.faults.inject({ kind: 'denied', report: 'completions' });
    const checks = await connector.test(accessOf('openai'));
    expect(checks.map(({ ok }) => ok)).toEqual([true, false]);
    expect(checks[1]?.detail).toMatch(/permission api\.usage\.read for completions.*Admin keys/);
  });
});

describe('Anthropic is asked', () => {
  it('for both reports with every group that needs no beta', async () => {
    const fake = await startProvider('anthropic');
    const connector = connectorAt('anthropic', fake.origin);
    const firsts = new Map(connector.plan(WINDOW, NOW_MICROS).map((chunk) => [chunk.report, chunk]));
    for (const chunk of firsts.values()) await connector.fetchPage(accessOf('anthropic'), chunk, null);
    expect(fake.requests.map(({ status, query }) => [status, query.group_by])).toEqual([
      [200, ['workspace_id', 'description']],
      [200, ['api_key_id', 'workspace_id', 'model', 'service_tier', 'context_window', 'inference_geo']],
    ]);
  });

  it('for the workspaces of the scope in the usage report; the cost report has no such filter', async () => {
    const fake = await startProvider('anthropic');
    const connector = connectorAt('anthropic', fake.origin);
    const plan = connector.plan(WINDOW, NOW_MICROS);
    const ask = async (report: string, workspaces: string[]) => {
      const chunk = plan.find((one) => one.report === report);
      if (!chunk) throw new Error(`no chunk of ${report}`);
      await connector.fetchPage(accessOf('anthropic', { scope: { workspaces } }), chunk, null);
      return fake.requests[fake.requests.length - 1]?.query.workspace_ids;
    };
    expect(await ask('messages', ['wrkspc_a'])).toEqual(['wrkspc_a']);
    expect(await ask('cost_report', ['wrkspc_a'])).toBeUndefined();
    // The default workspace has no id, so nothing is filtered and the rows are narrowed when they are read.
    expect(await ask('messages', ['wrkspc_a', 'default'])).toBeUndefined();
  });

  it('who it is, and for each permission', async () => {
    const fake = await startProvider('anthropic');
    const connector = connectorAt('anthropic', fake.origin);
    const account = { accountId: ANTHROPIC_ACCOUNT, name: 'Loopback, Inc.' };
    expect(await connector.identify(accessOf('anthropic'))).toEqual(account);
    const checks = await connector.test(accessOf('anthropic'));
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual([
      ['organization', true],
      ['costs', true],
      ['usage', true],
    ]);
    fake.faults.inject({ kind: 'denied', report: 'cost_report' });
    const [, costs] = await connector.test(accessOf('anthropic'));
    expect(costs?.ok).toBe(false);
    expect(costs?.detail).toMatch(/may not read cost_report.*Settings → Admin keys/);
  });
});

describe.each(PROVIDER_NAMES)('a test of %s', (provider) => {
  it('throws a temporary failure: an outage shows nothing about the connection', async () => {
    const fake = await startProvider(provider);
    fake.faults.inject({ kind: 'outage', status: 503 });
    const work = connectorAt(provider, fake.origin).test(accessOf(provider));
    await expect(work).rejects.toMatchObject({ code: 'provider_unavailable' });
  });
});
