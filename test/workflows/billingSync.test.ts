import { afterEach, describe, expect, it } from 'vitest';
import type { OrgDb } from '../../db/orgDb.js';
import { listBilledTotals } from '../../db/queries/billedDays.js';
import { listSourceDifferences } from '../../db/queries/sourceDifferences.js';
import type { TestOrganization } from '../support/api.js';
import { importBill, pollToEnd } from '../support/bills.js';
import { until } from '../support/engine.js';
import {
  ADMIN_KEYS,
  aConnection,
  BACKFILL_DAYS,
  CONNECTIONS,
  DAY_SECONDS,
  daysAgo,
  expectedDays,
  FAST,
  type FetchedProvider,
  type FetchingPlace,
  openaiResult,
  openaiTruth,
  PARTS,
  startFetchingPlace,
  todaySeconds,
} from '../support/fetchedBills.js';

const LIMIT_MS = 60_000;
const ALL = { provider: null, fromDay: '2000-01-01', toDay: '2100-01-01' };

let place: FetchingPlace;
afterEach(() => place?.close());

/** What counts by day, of one provider. */
async function countedDays(orgDb: OrgDb, provider: FetchedProvider): Promise<Record<string, bigint>> {
  const totals = await listBilledTotals(orgDb, { ...ALL, provider });
  const days: Record<string, bigint> = {};
  for (const { day, amountPico } of totals) days[day] = (days[day] ?? 0n) + amountPico;
  return days;
}

const post = (path: string, body: unknown, key?: string) => place.api.post(path, body, key);

async function connect(
  provider: FetchedProvider,
  more: object = {},
  organization: TestOrganization = place.api,
) {
  const { status, body } = await post(CONNECTIONS, aConnection(provider, more), organization.adminKey);
  expect(body, JSON.stringify(body)).toMatchObject({ provider });
  expect(status).toBe(201);
  return body;
}

const ended = (run: { status_url: string }, key = place.api.adminKey) =>
  pollToEnd(place.api, run.status_url, LIMIT_MS, key);

const syncAgain = async (connection: { id: string }) => {
  const { status, body } = await post(`${CONNECTIONS}/${connection.id}/sync`, {});
  expect(status).toBe(202);
  return ended(body);
};

const count = async (table: string, where = 'true') =>
  (await place.api.database.superuser.query(`select count(*)::int as n from ${table} where ${where}`)).rows[0]
    .n as number;

describe('connecting', () => {
  it('fetches 90 days of both providers whole, to the last digit, and shows the gaps', {
    timeout: 120_000,
  }, async () => {
    place = await startFetchingPlace({ backfillDays: null });
    await place.engine.startWorker();
    const [openai, anthropic] = [await connect('openai'), await connect('anthropic')];
    expect(openai).toMatchObject({
      status: 'connecting',
      provider_account_id: 'org-loop',
      has_credentials: true,
    });
    for (const connection of [openai, anthropic]) {
      const run = await ended(connection.sync);
      expect(run).toMatchObject({
        status: 'succeeded',
        kind: 'billing_sync',
        trigger: 'connect',
        waiting: null,
        result: {
          changed_days: 91,
          missing: [],
          restated: [],
          period_start: daysAgo(90),
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
        LIMIT_MS,
      );
      expect(gaps).toMatchObject({ status: 'succeeded', period: '90d', provider: connection.provider });
    }
    const { orgDb } = place.api;
    expect(await countedDays(orgDb, 'openai')).toEqual(expectedDays('openai', daysAgo(90)));
    expect(await countedDays(orgDb, 'anthropic')).toEqual(expectedDays('anthropic', daysAgo(90)));
    expect((await place.api.get(`${CONNECTIONS}/${openai.id}`)).body).toMatchObject({
      status: 'active',
      last_error: null,
    });
    const explorer = await place.api.get('/api/v1/reconciliation/gap-explorer?period=90d');
    expect(explorer.body.total).toBeGreaterThanOrEqual(2 * 90);
    expect((await place.api.get('/api/v1/billing-imports')).body.imports).toEqual([]);
  });

  it('asks again for what is not settled, stores nothing that is the same, and says when it was confirmed', {
    timeout: 120_000,
  }, async () => {
    place = await startFetchingPlace({ backfillDays: 45 });
    await place.engine.startWorker();
    const connection = await connect('openai');
    await ended(connection.sync);
    const before = [
      await count('billing_fetched_pages'),
      await count('billing_sources'),
      await count('billing_rows'),
    ];
    const confirmed = await place.api.database.superuser.query(
      `select max(confirmed_at) as at from billing_days where day = $1`,
      [daysAgo(0)],
    );
    const requests = place.openai.requests.length;
    const run = await syncAgain(connection);
    expect(run).toMatchObject({
      status: 'succeeded',
      trigger: 'request',
      result: { changed_days: 0, rows: 0, gap_run_id: null },
    });
    expect(place.openai.requests.length).toBeGreaterThan(requests);
    const asked = place.openai.requests.slice(requests).map(({ query }) => Number(query.start_time?.[0]));
    expect(Math.min(...asked)).toBeGreaterThanOrEqual(todaySeconds() - 30 * DAY_SECONDS);
    // The daily look at 30 days asks for other spans than the backfill did: those pages are new, rows are not.
    expect((await count('billing_sources')) - (before[1] as number)).toBe(0);
    expect(await count('billing_rows')).toBe(before[2]);
    const pages = await count('billing_fetched_pages');
    await syncAgain(connection);
    expect(await count('billing_fetched_pages')).toBe(pages);
    const later = await place.api.database.superuser.query(
      `select max(confirmed_at) as at from billing_days where day = $1`,
      [daysAgo(0)],
    );
    expect(later.rows[0].at > confirmed.rows[0].at).toBe(true);
  });
});

describe('a provider that', () => {
  it('fails for longer than the first waits is waited for, and the run says so', {
    timeout: 120_000,
  }, async () => {
    place = await startFetchingPlace({ syncPace: { ...FAST, firstWaitMs: 300, longestWaitMs: 700 } });
    const connection = await connect('openai');
    place.openai.faults.inject({ kind: 'outage', status: 404, report: 'costs', requests: 4 });
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
    expect(await ended(connection.sync)).toMatchObject({ status: 'succeeded', waiting: null });
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
  });

  it('answers 429 is asked again no sooner than it says', { timeout: 120_000 }, async () => {
    place = await startFetchingPlace();
    const connection = await connect('anthropic');
    place.anthropic.faults.inject({
      kind: 'rate_limit',
      retryAfter: '2',
      report: 'cost_report',
      requests: 1,
    });
    const began = Date.now();
    await place.engine.startWorker();
    expect(await ended(connection.sync)).toMatchObject({ status: 'succeeded' });
    expect(Date.now() - began).toBeGreaterThan(2_000);
    expect(await countedDays(place.api.orgDb, 'anthropic')).toEqual(
      expectedDays('anthropic', daysAgo(BACKFILL_DAYS)),
    );
  });

  it('outlasts the patience of a sync leaves a partial one that names what is missing; the next takes it up', {
    timeout: 120_000,
  }, async () => {
    place = await startFetchingPlace({ syncPace: { ...FAST, giveUpAfterMs: 1_000 } });
    const connection = await connect('anthropic');
    const over = place.anthropic.faults.inject({ kind: 'outage', status: 503, report: 'messages' });
    await place.engine.startWorker();
    const run = await ended(connection.sync);
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
    expect(await syncAgain(connection)).toMatchObject({ status: 'succeeded', result: { missing: [] } });
    expect(await count('billing_days', `feed = 'usage' and report = 'messages'`)).toBe(BACKFILL_DAYS + 1);
    expect((await place.api.get(`${CONNECTIONS}/${connection.id}`)).body.status).toBe('active');
  });

  it('changes its paging in the middle is asked from the beginning: no page lost or twice', {
    timeout: 120_000,
  }, async () => {
    place = await startFetchingPlace();
    place.openai.limitPages(3, 'costs');
    const connection = await connect('openai');
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
    expect(await ended(connection.sync)).toMatchObject({
      status: 'succeeded',
      result: { changed_days: BACKFILL_DAYS + 1 },
    });
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    expect(place.openai.requests.some(({ status }) => status === 400)).toBe(true);
    expect(await count('sync_chunks', 'restarts > 0')).toBeGreaterThan(0);
    await worker.stop();
  });

  it('restates a day that it had closed changes what counts; the old version stays and the run names both', {
    timeout: 120_000,
  }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const connection = await connect('openai');
    await ended(connection.sync);
    const start = todaySeconds() - 12 * DAY_SECONDS;
    place.openai.restate('costs', {
      startSeconds: start,
      endSeconds: start + DAY_SECONDS,
      results: PARTS.openai.map((part) =>
        openaiResult('org-loop', start, part, part === 'proj_a' ? 5_000_000 : 0),
      ),
    });
    const run = await syncAgain(connection);
    expect(run.result).toMatchObject({
      changed_days: 1,
      restated_count: 1,
      restated: [{ day: daysAgo(12), feed: 'cost' }],
    });
    const [{ old_usd: oldUsd, new_usd: newUsd }] = run.result.restated;
    expect(newUsd - oldUsd).toBeCloseTo(5, 9);
    const expected = expectedDays('openai', daysAgo(BACKFILL_DAYS));
    expected[daysAgo(12)] = (expected[daysAgo(12)] ?? 0n) + 5_000_000_000_000n;
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(expected);
    expect(
      await count('billing_days', `day = '${daysAgo(12)}' and feed = 'cost' and superseded_at is not null`),
    ).toBe(6);
    expect(await listSourceDifferences(place.api.orgDb, { ...ALL, limit: 10 })).toEqual([]);
  });

  it('refuses the credentials ends the sync at once with what to grant', { timeout: 60_000 }, async () => {
    place = await startFetchingPlace();
    const connection = await connect('openai');
    place.openai.faults.inject({ kind: 'denied' });
    await place.engine.startWorker();
    const run = await ended(connection.sync);
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
    // A report that is refused is not asked for again part by part.
    expect(asked).toBeLessThanOrEqual(11);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual({});
  });
});

describe('a day', () => {
  it('is provisional until the provider has said the same of it after the time in which it changes', {
    timeout: 120_000,
  }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const connection = await connect('anthropic');
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
        LIMIT_MS,
      );
      await pollToEnd(
        place.api,
        `/api/v1/reconciliation/gap-explorer/runs/${body.result.gap_run_id}`,
        LIMIT_MS,
      );
    };
    await gapsOf(connection.sync);
    expect(new Set(await provisional())).toEqual(new Set([daysAgo(1), daysAgo(0)]));
    place.skipDays(3);
    const run = await syncAgain(connection);
    // The days say the same, so nothing of them is stored anew; three days without a bill are.
    expect(run.result).toMatchObject({ changed_days: 3, rows: 0, restated: [] });
    await gapsOf(run);
    expect(await provisional()).toEqual([]);
  });
});

describe('a worker that stops in order', () => {
  it('while a provider hangs leaves the sync to the next one', { timeout: 120_000 }, async () => {
    place = await startFetchingPlace();
    const connection = await connect('anthropic');
    place.anthropic.faults.inject({ kind: 'hang', requests: 1 });
    const first = await place.engine.startWorker();
    await until(
      'the request that hangs',
      async () => place.anthropic.requests.filter(({ status }) => status === 0).length,
      (hanging) => hanging === 1,
    );
    await first.stop();
    await place.engine.startWorker();
    expect(await ended(connection.sync)).toMatchObject({ status: 'succeeded' });
    expect(await countedDays(place.api.orgDb, 'anthropic')).toEqual(
      expectedDays('anthropic', daysAgo(BACKFILL_DAYS)),
    );
  });
});

describe('the same account', () => {
  it('by API and by saved file counts once, and the file is a cross-check', {
    timeout: 120_000,
  }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const start = todaySeconds() - 10 * DAY_SECONDS;
    const results = PARTS.openai.map((part) =>
      openaiResult('org-loop', start, part, part === 'proj_a' ? 1_000_000 : 0),
    );
    const bucket = { object: 'bucket', start_time: start, end_time: start + DAY_SECONDS, results };
    const file = JSON.stringify({ object: 'page', data: [bucket], has_more: false, next_page: null }).replace(
      /\{"\$number":"([^"]+)"\}/g,
      '$1',
    );
    await importBill(place.api, file, { provider: 'openai' });
    const connection = await connect('openai');
    await ended(connection.sync);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    const differences = await listSourceDifferences(place.api.orgDb, { ...ALL, limit: 10 });
    expect(differences).toMatchObject([
      { day: daysAgo(10), countedKind: 'api', otherKind: 'file', accountId: 'org-loop' },
    ]);
  });

  it('of a file that named nobody is that of the first connection', { timeout: 120_000 }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const csv = `date,model,token_class,quantity,amount_usd\n${daysAgo(120)},claude-opus-5,input,1000,7.5\n${daysAgo(20)},claude-opus-5,input,1000,99\n`;
    const imported = await importBill(place.api, csv, { provider: 'anthropic' });
    expect(imported.provider_account_id).toBe('default');
    const connection = await connect('anthropic');
    await ended(connection.sync);
    expect(await countedDays(place.api.orgDb, 'anthropic')).toEqual({
      ...expectedDays('anthropic', daysAgo(BACKFILL_DAYS)),
      [daysAgo(120)]: 7_500_000_000_000n,
    });
    const { body } = await place.api.get(imported.status_url);
    expect(body.provider_account_id).toBe('0d5c1f0e-anthropic');
    expect(await count('billing_rows', `provider_account_id = 'default'`)).toBe(0);
    const next = await importBill(place.api, csv.replace('7.5', '8.5'), { provider: 'anthropic' });
    expect(next.provider_account_id).toBe('0d5c1f0e-anthropic');
  });

  it('under another name than its bill gives it is not counted: the sync says what to do', {
    timeout: 60_000,
  }, async () => {
    place = await startFetchingPlace();
    const named = openaiTruth('org-of-the-bill');
    const anonymous = openaiTruth('org-of-the-bill');
    for (const bucket of anonymous.reports.costs ?? [])
      bucket.results = bucket.results.map((result) => ({ ...result, organization_id: null }));
    place.openai.setTruth(anonymous);
    const connection = await connect('openai', { settings: { account: 'by-hand' } });
    place.openai.setTruth(named);
    await place.engine.startWorker();
    const run = await ended(connection.sync);
    expect(run).toMatchObject({ status: 'partial', error: { code: 'account_mismatch' } });
    expect(run.error.message).toContain('settings.account org-of-the-bill');
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual({});
  });

  it('in disjoint parts is connected twice, and both count', { timeout: 120_000 }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const other = await place.api.addOrganization();
    const a = await connect('openai', { settings: { scope: { projects: ['proj_a'] } } });
    const b = await connect('openai', { settings: { scope: { projects: ['proj_b'] } } });
    await ended(a.sync);
    await ended(b.sync);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    const refused = await post(CONNECTIONS, aConnection('openai'), other.adminKey);
    expect([refused.status, refused.body.code]).toEqual([409, 'account_already_connected']);
    const anthropic = await connect(
      'anthropic',
      { settings: { scope: { workspaces: ['wrkspc_b'] } } },
      other,
    );
    await ended(anthropic.sync, other.adminKey);
    expect(await countedDays(other.orgDb, 'anthropic')).toEqual(
      expectedDays('anthropic', daysAgo(BACKFILL_DAYS), ['wrkspc_b']),
    );
  });
});

describe('a connection that has ended', () => {
  it('in the middle of a sync is asked for no more, and keeps what it brought', {
    timeout: 60_000,
  }, async () => {
    place = await startFetchingPlace();
    const connection = await connect('openai');
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
    // The costs are there, and no request is under way.
    await until(
      'the third part',
      async () => isBetweenParts,
      (reached) => reached,
    );
    const gone = await fetch(`${place.api.baseUrl}${CONNECTIONS}/${connection.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${place.api.adminKey}` },
    });
    expect(gone.status).toBe(204);
    const requests = place.openai.requests.length;
    release();
    await until(
      'the end of the workflow',
      () => place.engine.orchestrator.describe(`sync-run:${place.api.orgId}:${runUuid(connection.sync.id)}`),
      (state) => state === 'closed',
    );
    expect(place.openai.requests.length).toBe(requests);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    expect(await count('billing_connections', 'ciphertext is not null')).toBe(0);
    expect((await place.api.get(`${CONNECTIONS}/${connection.id}`)).status).toBe(404);
  });
});

const runUuid = (id: string) => id.slice(4).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
