import { afterEach, describe, expect, it } from 'vitest';
import { listSourceDifferences } from '../../db/billing/billCoverage.js';
import { until } from '../support/engine.js';
import {
  ADMIN_KEYS,
  BACKFILL_DAYS,
  CONNECTIONS,
  daysAgo,
  expectedDays,
  FAST,
} from '../support/fetchedBills.js';
import {
  countedDays,
  type FetchingPlace,
  restatedDays,
  startFetchingPlace,
} from '../support/fetchingPlace.js';

const ALL = { provider: null, fromDay: '2000-01-01', toDay: '2100-01-01' };

let place: FetchingPlace;
afterEach(() => place?.close());

describe('a sync of a provider that', () => {
  it('fails for longer than the first retries waits for it, and its run shows that', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace({ syncPace: { ...FAST, firstWaitMs: 300, longestWaitMs: 700 } });
    const connection = await place.connect('openai');
    const over = place.openai.faults.inject({ kind: 'outage', status: 404, report: 'costs' });
    await place.engine.startWorker();
    const waiting = await until(
      'the wait',
      () => place.api.get(connection.sync.status_url),
      ({ body }) => body.waiting !== null,
    );
    expect(waiting.body).toMatchObject({
      status: 'running',
      progress: { stage: 'waiting_for_provider' },
      waiting: { code: 'provider_unavailable', message: 'OpenAI answered 404 for costs' },
    });
    over();
    expect(await place.ended(connection.sync)).toMatchObject({ status: 'succeeded', waiting: null });
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
  });

  it('answers 429 asks again no sooner than Retry-After', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('anthropic');
    place.anthropic.faults.inject({
      kind: 'rate_limit',
      retryAfter: '2',
      report: 'cost_report',
      requests: 1,
    });
    const began = Date.now();
    await place.engine.startWorker();
    expect(await place.ended(connection.sync)).toMatchObject({ status: 'succeeded' });
    expect(Date.now() - began).toBeGreaterThan(2_000);
    expect(await countedDays(place.api.orgDb, 'anthropic')).toEqual(
      expectedDays('anthropic', daysAgo(BACKFILL_DAYS)),
    );
  });

  it('fails longer than its retries ends partial and names what is missing; the next sync fetches it', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace({ syncPace: { ...FAST, giveUpAfterMs: 1_000 } });
    const connection = await place.connect('anthropic');
    const over = place.anthropic.faults.inject({ kind: 'outage', status: 503, report: 'messages' });
    await place.engine.startWorker();
    const run = await place.ended(connection.sync);
    expect(run).toMatchObject({ status: 'partial', error: { code: 'provider_unavailable' } });
    expect(run.result.missing.map(({ report }: { report: string }) => report)).toEqual(
      run.result.missing.map(() => 'messages'),
    );
    expect(run.result.missing.at(-1).period_start).toBe(daysAgo(BACKFILL_DAYS));
    expect(await countedDays(place.api.orgDb, 'anthropic')).toEqual(
      expectedDays('anthropic', daysAgo(BACKFILL_DAYS)),
    );
    expect((await place.api.get(`${CONNECTIONS}/${connection.id}`)).body).toMatchObject({
      status: 'failing',
      last_error: { code: 'provider_unavailable' },
    });
    over();
    expect(await place.syncAgain(connection)).toMatchObject({ status: 'succeeded', result: { missing: [] } });
    expect(await place.count('billing_days', `feed = 'usage' and report = 'messages'`)).toBe(
      BACKFILL_DAYS + 1,
    );
    expect((await place.api.get(`${CONNECTIONS}/${connection.id}`)).body.status).toBe('active');
  });

  it('changes its paging midway starts again from the beginning: no page is lost or stored twice', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    place.openai.limitPages(3, 'costs');
    const connection = await place.connect('openai');
    place.openai.faults.inject({ kind: 'outage', status: 500, report: 'costs', after: 4, requests: 1 });
    const worker = await place.engine.startWorker((activities) => ({
      takeSyncChunk: async (input) => {
        if (
          place.openai.requests.filter(({ report, status }) => report === 'costs' && status === 500)
            .length === 1
        )
          place.openai.invalidatePages();
        return activities.takeSyncChunk(input);
      },
    }));
    expect(await place.ended(connection.sync)).toMatchObject({
      status: 'succeeded',
      result: { changed_days: BACKFILL_DAYS + 1 },
    });
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    expect(place.openai.requests.some(({ status }) => status === 400)).toBe(true);
    expect(await place.count('sync_chunks', 'restarts > 0')).toBeGreaterThan(0);
    await worker.stop();
  });

  it('restates a closed day changes what counts; the old version stays and the run names both', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const connection = await place.connect('openai');
    await place.ended(connection.sync);
    place.restate(12);
    const run = await place.syncAgain(connection);
    expect(run.result).toMatchObject({
      changed_days: 1,
      restated_count: 1,
      restated: [{ day: daysAgo(12), feed: 'cost' }],
    });
    const [{ old_usd: oldUsd, new_usd: newUsd }] = run.result.restated;
    expect(newUsd - oldUsd).toBeCloseTo(5, 9);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(restatedDays(12));
    expect(
      await place.count(
        'billing_days',
        `day = '${daysAgo(12)}' and feed = 'cost' and superseded_at is not null`,
      ),
    ).toBe(6);
    expect(await listSourceDifferences(place.api.orgDb, { ...ALL, limit: 10 })).toEqual([]);
  });

  it('refuses the credentials ends at once and names what to grant', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('openai');
    place.openai.faults.inject({ kind: 'denied' });
    await place.engine.startWorker();
    const run = await place.ended(connection.sync);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'credentials_refused' } });
    expect(run.error.message).toContain('api.usage.read');
    const { body: feed } = await place.api.get('/api/v1/alerts');
    expect(feed.alerts).toMatchObject([
      {
        kind: 'notice',
        notice: 'connection_broken',
        subject: { type: 'connection', id: connection.id },
        provider: 'openai',
        details: { error_code: 'credentials_refused', last_synced_at: null },
      },
    ]);
    expect(place.workerLines.length).toBeGreaterThan(0);
    expect(place.workerLines.join('')).not.toContain(ADMIN_KEYS.openai);
    const asked = place.openai.requests.filter(({ status }) => status === 403).length;
    // A refused report is not requested again for each part.
    expect(asked).toBeLessThanOrEqual(11);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual({});
  });
});
