import { createHash, randomUUID } from 'node:crypto';
import { heartbeat } from '@temporalio/activity';
import { afterEach, describe, expect, it } from 'vitest';
import type { BillingConnector, FetchedPage } from '../../adapters/billing/connector.js';
import { recordFetchedPage } from '../../db/billing/fetchedPages.js';
import { SYNC_RUNS } from '../../db/billing/syncRuns.js';
import { findOpenRun } from '../../db/runs/runTable.js';
import { findUuid } from '../../domain/ids.js';
import { uploadBill } from '../support/bills.js';
import { until } from '../support/engine.js';
import {
  BACKFILL_DAYS,
  CONNECTIONS,
  DAY_SECONDS,
  daysAgo,
  expectedDays,
  openaiResult,
  openaiTruth,
  todaySeconds,
} from '../support/fetchedBills.js';
import {
  countedDays,
  type FetchingPlace,
  restatedDays,
  startFetchingPlace,
} from '../support/fetchingPlace.js';

/** Events while a chunk is fetched: other attempts, changed settings, an end. */

let place: FetchingPlace;
afterEach(() => place?.close());

type FetchPage = BillingConnector['fetchPage'];

/** Puts something before or after requests of the report costs; `ask` is the request itself. */
function aroundCosts(step: (ask: FetchPage, ...asked: Parameters<FetchPage>) => Promise<FetchedPage>): void {
  const connector = place.connectors.openai;
  const ask = connector.fetchPage.bind(connector);
  connector.fetchPage = (...asked) => (asked[1].report === 'costs' ? step(ask, ...asked) : ask(...asked));
}

describe('a chunk that', () => {
  it('two workers fetch in pages of other sizes is read from the pages that one of them has checked', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    place.openai.limitPages(10, 'costs');
    const connection = await place.connect('openai');
    let isDisturbed = false;
    aroundCosts(async (ask, access, chunk, cursor) => {
      if (cursor !== null && !isDisturbed) {
        isDisturbed = true;
        place.openai.limitPages(4, 'costs');
        const first = await ask(access, chunk, null);
        place.openai.limitPages(10, 'costs');
        const run = await findOpenRun(place.api.orgDb, SYNC_RUNS, {
          connectionId: findUuid('con', connection.id) ?? '',
        });
        await recordFetchedPage(place.api.orgDb, {
          ...first,
          id: randomUUID(),
          connectionId: findUuid('con', connection.id) ?? '',
          runId: run?.id ?? '',
          ordinal: 0,
          pageNo: 0,
          report: 'costs',
          requestKey: `costs 1d ${chunk.startMicros}-${chunk.endMicros}  page 0`,
          sha256: createHash('sha256').update(first.body).digest('hex'),
        });
      }
      return ask(access, chunk, cursor);
    });
    await place.engine.startWorker();
    expect(await place.ended(connection.sync)).toMatchObject({
      status: 'succeeded',
      result: { changed_days: BACKFILL_DAYS + 1 },
    });
    expect(isDisturbed).toBe(true);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
  });

  it('comes late, after its run was given up and another has fetched the days, changes nothing', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const connection = await place.connect('openai');
    let requests = 0;
    let isLate = false;
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    aroundCosts(async (ask, ...asked) => {
      requests += 1;
      if (requests > 1) return ask(...asked);
      const page = await ask(...asked);
      await gate;
      isLate = true;
      return page;
    });
    await place.engine.startWorker();
    await until(
      'the first page',
      async () =>
        place.openai.requests.filter(({ report, status }) => report === 'costs' && status === 200).length,
      (pages) => pages > 1,
    );
    await place.api.database.superuser.query(
      `update sync_runs set status = 'failed', stage = 'failed', finished_at = now() where status = 'running'`,
    );
    place.restate(12);
    expect(await place.syncAgain(connection)).toMatchObject({ status: 'succeeded' });
    release();
    await place.workflowEnded(connection.sync);
    expect(isLate).toBe(true);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(restatedDays(12));
  });

  it('has more pages is asked for no more when its connection ends between two of them', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    place.openai.limitPages(4, 'costs');
    const connection = await place.connect('openai');
    let pages = 0;
    aroundCosts(async (ask, ...asked) => {
      pages += 1;
      if (pages === 3) await place.endConnection(connection.id);
      return ask(...asked);
    });
    await place.engine.startWorker();
    await place.workflowEnded(connection.sync);
    expect(pages).toBe(3);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual({});
  });

  it('waits while the connection is widened does not continue behind the pages of the narrow one', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    place.openai.limitPages(14, 'costs');
    const connection = await place.connect('openai', { settings: { scope: { projects: ['proj_a'] } } });
    let isWidened = false;
    aroundCosts(async (ask, ...asked) => {
      const [, , cursor] = asked;
      if (cursor !== null && !isWidened) {
        isWidened = true;
        expect((await place.changeConnection(connection.id, { settings: {} })).status).toBe(200);
        place.openai.faults.inject({ kind: 'outage', status: 503, report: 'costs', requests: 1 });
      }
      return ask(...asked);
    });
    await place.engine.startWorker();
    await place.ended(connection.sync);
    expect(isWidened).toBe(true);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    // The run had planned by the former settings: another one follows at once, and finds every report whole.
    const { body } = await until(
      'the sync that follows',
      () => place.api.get(`${CONNECTIONS}/${connection.id}/runs`),
      (answer) => answer.body.runs.length === 2 && answer.body.runs[0].status === 'succeeded',
    );
    expect(body.runs[0].trigger).toBe('settings');
    expect(await place.count('billing_days', `superseded_at is null and scope <> ''`)).toBe(0);
  });
});

describe('a day that the provider', () => {
  it('leaves out is named, not guessed, and holds back no other day; once it is billed it counts', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace({ backfillDays: 45 });
    const leftOut = todaySeconds() - 40 * DAY_SECONDS;
    const whole = aroundBuckets(leftOut);
    const connection = await place.connect('openai');
    await place.engine.startWorker();
    const run = await place.ended(connection.sync);
    expect(run).toMatchObject({ status: 'partial', error: { code: 'days_left_out' } });
    expect(run.error.message).toContain(daysAgo(40));
    expect(run.result.missing).toMatchObject([
      { report: 'costs', period_start: daysAgo(40), period_end: daysAgo(40) },
    ]);
    const expected = expectedDays('openai', daysAgo(45));
    const { [daysAgo(40)]: absent, ...others } = expected;
    expect(absent).toBeDefined();
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(others);
    whole();
    expect(await place.syncAgain(connection)).toMatchObject({
      status: 'succeeded',
      result: { missing: [], changed_days: 1 },
    });
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(expected);
  });

  it('was last asked about while it was still open is asked about again, however long the pause was', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const connection = await place.connect('openai');
    await place.ended(connection.sync);
    // The rest of that day came after the last sync; then no sync ran for longer than days are fetched again.
    place.restate(0);
    place.skipDays(45);
    expect(await place.syncAgain(connection)).toMatchObject({ status: 'succeeded' });
    expect(await countedDays(place.api.orgDb, 'openai')).toMatchObject(restatedDays(0));
  });

  it('had billed and now bills nothing counts nothing: charges and credits are taken back', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const start = todaySeconds() - 12 * DAY_SECONDS;
    const bucket = { startSeconds: start, endSeconds: start + DAY_SECONDS };
    const truth = openaiTruth('org-loop');
    place.openai.setTruth(truth);
    place.openai.restate('costs', {
      ...bucket,
      results: [
        openaiResult('org-loop', start, 'proj_a'),
        {
          ...openaiResult('org-loop', start, 'proj_a'),
          line_item: 'Credit grant',
          amount: { value: { $number: '-0.75' }, currency: 'usd' },
          quantity: null,
          quantity_unit: null,
        },
      ],
    });
    const connection = await place.connect('openai');
    await place.engine.startWorker();
    await place.ended(connection.sync);
    const before = (await countedDays(place.api.orgDb, 'openai'))[daysAgo(12)] ?? 0n;
    expect(before).toBe(
      (expectedDays('openai', daysAgo(BACKFILL_DAYS), ['proj_a'])[daysAgo(12)] ?? 0n) - 750_000_000_000n,
    );
    place.openai.restate('costs', { ...bucket, results: [] });
    const run = await place.syncAgain(connection);
    expect(run.result.restated).toMatchObject([{ day: daysAgo(12), new_usd: 0 }]);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual({
      ...expectedDays('openai', daysAgo(BACKFILL_DAYS)),
      [daysAgo(12)]: 0n,
    });
  });
});

describe('a file without an account name', () => {
  it('and was being read while the first connection was made is counted once all the same', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    await place.engine.startWorker((activities) => ({
      readBillingImport: async (input) => {
        // The account is settled before the rows are read.
        await place.api.database.superuser.query(
          `update billing_sources set provider_account_id = 'default' where kind = 'file'`,
        );
        // However long that takes, the attempt is alive.
        const beat = setInterval(() => heartbeat(), 1_000);
        await gate;
        clearInterval(beat);
        return activities.readBillingImport(input);
      },
    }));
    const csv = `date,model,token_class,quantity,amount_usd\n${daysAgo(20)},gpt-4o,input,1000,99\n`;
    const { body: imported } = await uploadBill(
      place.api,
      csv,
      { provider: 'openai' },
      { filename: 'a.csv' },
    );
    const connection = await place.connect('openai');
    await place.ended(connection.sync);
    release();
    expect(await place.ended(imported)).toMatchObject({ status: 'succeeded' });
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    const { body } = await place.api.get(imported.status_url);
    expect(body.provider_account_id).toBe('org-loop');
  });
});

/** The provider returns costs without the bucket that starts then, until the returned function is called. */
function aroundBuckets(startSeconds: number): () => void {
  let isOver = false;
  aroundCosts(async (ask, ...asked) => {
    const page = await ask(...asked);
    if (isOver) return page;
    const json = JSON.parse(page.body.toString('utf8')) as { data: { start_time: number }[] };
    const data = json.data.filter(({ start_time: start }) => start !== startSeconds);
    const buckets = page.buckets.filter(
      ({ startMicros }) => startMicros !== BigInt(startSeconds) * 1_000_000n,
    );
    return { ...page, body: Buffer.from(JSON.stringify({ ...json, data })), buckets };
  });
  return () => {
    isOver = true;
  };
}
