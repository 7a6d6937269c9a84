import { afterEach, describe, expect, it } from 'vitest';
import { pollToEnd } from '../support/bills.js';
import { until } from '../support/engine.js';
import {
  BACKFILL_DAYS,
  CONNECTIONS,
  DAY_SECONDS,
  daysAgo,
  expectedDays,
  todaySeconds,
} from '../support/fetchedBills.js';
import { countedDays, type FetchingPlace, startFetchingPlace } from '../support/fetchingPlace.js';
import { isLongRun } from '../support/propertyRuns.js';

let place: FetchingPlace;
afterEach(() => place?.close());

describe('connecting', () => {
  it('fetches all days of both providers whole, to the last digit, and shows the gaps', {
    timeout: 300_000,
  }, async () => {
    const days = isLongRun() ? 90 : 40;
    // The product's own number, where there is time for it.
    place = await startFetchingPlace({ backfillDays: isLongRun() ? null : days - 1 });
    await place.engine.startWorker();
    const [openai, anthropic] = [await place.connect('openai'), await place.connect('anthropic')];
    expect(openai).toMatchObject({
      status: 'connecting',
      provider_account_id: 'org-loop',
      has_credentials: true,
    });
    for (const connection of [openai, anthropic]) {
      const run = await place.ended(connection.sync);
      expect(run).toMatchObject({
        status: 'succeeded',
        kind: 'billing_sync',
        trigger: 'connect',
        waiting: null,
        result: {
          changed_days: days,
          missing: [],
          restated: [],
          period_start: daysAgo(days - 1),
          period_end: daysAgo(0),
        },
      });
      const gapRun = await until(
        'the gap run',
        () => place.api.get(run.status_url),
        ({ body }) => body.result.gap_run_id !== null,
      );
      const gaps = await pollToEnd(
        place.api,
        `/api/v1/reconciliation/gap-explorer/runs/${gapRun.body.result.gap_run_id}`,
        180_000,
      );
      expect(gaps).toMatchObject({ status: 'succeeded', period: '90d', provider: connection.provider });
    }
    const { orgDb } = place.api;
    expect(await countedDays(orgDb, 'openai')).toEqual(expectedDays('openai', daysAgo(days - 1)));
    expect(await countedDays(orgDb, 'anthropic')).toEqual(expectedDays('anthropic', daysAgo(days - 1)));
    expect((await place.api.get(`${CONNECTIONS}/${openai.id}`)).body).toMatchObject({
      status: 'active',
      last_error: null,
    });
    const explorer = await place.api.get('/api/v1/reconciliation/gap-explorer?period=90d');
    expect(explorer.body.total).toBeGreaterThanOrEqual(2 * days);
    expect((await place.api.get('/api/v1/billing-imports')).body.imports).toEqual([]);
  });

  it('requests again what is not settled, stores no unchanged row, and shows when it was confirmed', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace({ backfillDays: 33 });
    await place.engine.startWorker();
    const connection = await place.connect('openai');
    await place.ended(connection.sync);
    const before = [
      await place.count('billing_fetched_pages'),
      await place.count('billing_sources'),
      await place.count('billing_rows'),
    ];
    const confirmed = await place.api.database.superuser.query(
      `select max(confirmed_at) as at from billing_days where day = $1`,
      [daysAgo(0)],
    );
    const requests = place.openai.requests.length;
    const run = await place.syncAgain(connection);
    expect(run).toMatchObject({
      status: 'succeeded',
      trigger: 'request',
      result: { changed_days: 0, rows: 0, gap_run_id: null },
    });
    expect(place.openai.requests.length).toBeGreaterThan(requests);
    const asked = place.openai.requests.slice(requests).map(({ query }) => Number(query.start_time?.[0]));
    expect(Math.min(...asked)).toBeGreaterThanOrEqual(todaySeconds() - 30 * DAY_SECONDS);
    // The daily fetch of 30 days has other spans than the backfill: its pages are new, its rows are not.
    expect((await place.count('billing_sources')) - (before[1] as number)).toBe(0);
    expect(await place.count('billing_rows')).toBe(before[2]);
    const pages = await place.count('billing_fetched_pages');
    await place.syncAgain(connection);
    expect(await place.count('billing_fetched_pages')).toBe(pages);
    const later = await place.api.database.superuser.query(
      `select max(confirmed_at) as at from billing_days where day = $1`,
      [daysAgo(0)],
    );
    expect(later.rows[0].at > confirmed.rows[0].at).toBe(true);
  });
});

describe('a day', () => {
  it('is provisional until the provider repeats it after its restatement period', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const connection = await place.connect('anthropic');
    const provisional = async () => {
      const { body } = await place.api.get('/api/v1/reconciliation/gap-explorer?period=90d');
      return body.gaps
        .filter((gap: { provisional: boolean }) => gap.provisional)
        .map((gap: { bucket: string }) => gap.bucket.slice(0, 10))
        .sort();
    };
    const gapsOf = async (run: { status_url: string }) => {
      const { body } = await until(
        'the gap run',
        () => place.api.get(run.status_url),
        (answer) => Boolean(answer.body.result?.gap_run_id),
        180_000,
      );
      await pollToEnd(
        place.api,
        `/api/v1/reconciliation/gap-explorer/runs/${body.result.gap_run_id}`,
        180_000,
      );
    };
    await gapsOf(connection.sync);
    expect(new Set(await provisional())).toEqual(new Set([daysAgo(1), daysAgo(0)]));
    place.skipDays(3);
    const run = await place.syncAgain(connection);
    // The days are unchanged, so none of them is stored again; three days without a bill are.
    expect(run.result).toMatchObject({ changed_days: 3, rows: 0, restated: [] });
    await gapsOf(run);
    expect(await provisional()).toEqual([]);
  });
});

describe('a worker that stops in order', () => {
  it('while a provider hangs leaves the sync to the next one', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('anthropic');
    place.anthropic.faults.inject({ kind: 'hang', requests: 1 });
    const first = await place.engine.startWorker();
    await until(
      'the request that hangs',
      async () => place.anthropic.requests.filter(({ status }) => status === 0).length,
      (hanging) => hanging === 1,
    );
    await first.stop();
    await place.engine.startWorker();
    expect(await place.ended(connection.sync)).toMatchObject({ status: 'succeeded' });
    expect(await countedDays(place.api.orgDb, 'anthropic')).toEqual(
      expectedDays('anthropic', daysAgo(BACKFILL_DAYS)),
    );
  });
});

describe('a connection that has ended', () => {
  it('in the middle of a sync is asked for no more, and keeps what it brought', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('openai');
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isBetweenParts = false;
    await place.engine.startWorker((activities) => ({
      takeSyncChunk: async (input) => {
        if (input.ordinal === 2) {
          isBetweenParts = true;
          await gate;
        }
        return activities.takeSyncChunk(input);
      },
    }));
    // The costs are stored, and no request is in progress.
    await until(
      'the third part',
      async () => isBetweenParts,
      (reached) => reached,
    );
    expect((await place.endConnection(connection.id)).status).toBe(204);
    const requests = place.openai.requests.length;
    release();
    await place.workflowEnded(connection.sync);
    expect(place.openai.requests.length).toBe(requests);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    expect(await place.count('billing_connections', 'ciphertext is not null')).toBe(0);
    expect((await place.api.get(`${CONNECTIONS}/${connection.id}`)).status).toBe(404);
  });
});
