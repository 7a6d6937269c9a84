import { afterEach, describe, expect, it } from 'vitest';
import { listSourceDifferences } from '../../db/billing/billCoverage.js';
import { importBill } from '../support/bills.js';
import {
  aConnection,
  BACKFILL_DAYS,
  CONNECTIONS,
  DAY_SECONDS,
  daysAgo,
  expectedDays,
  openaiResult,
  openaiTruth,
  PARTS,
  todaySeconds,
} from '../support/fetchedBills.js';
import { countedDays, type FetchingPlace, startFetchingPlace } from '../support/fetchingPlace.js';

const ALL = { provider: null, fromDay: '2000-01-01', toDay: '2100-01-01' };

let place: FetchingPlace;
afterEach(() => place?.close());

describe('the same account', () => {
  it('by API and by saved file counts once, and the file is a cross-check', {
    timeout: 300_000,
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
    const connection = await place.connect('openai');
    await place.ended(connection.sync);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    const differences = await listSourceDifferences(place.api.orgDb, { ...ALL, limit: 10 });
    expect(differences).toMatchObject([
      { day: daysAgo(10), countedKind: 'api', otherKind: 'file', accountId: 'org-loop' },
    ]);
  });

  it('in a file without an account name belongs to the first connection', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const csv = `date,model,token_class,quantity,amount_usd\n${daysAgo(120)},claude-opus-5,input,1000,7.5\n${daysAgo(20)},claude-opus-5,input,1000,99\n`;
    const imported = await importBill(place.api, csv, { provider: 'anthropic' });
    expect(imported.provider_account_id).toBe('default');
    const connection = await place.connect('anthropic');
    await place.ended(connection.sync);
    expect(await countedDays(place.api.orgDb, 'anthropic')).toEqual({
      ...expectedDays('anthropic', daysAgo(BACKFILL_DAYS)),
      [daysAgo(120)]: 7_500_000_000_000n,
    });
    const { body } = await place.api.get(imported.status_url);
    expect(body.provider_account_id).toBe('0d5c1f0e-anthropic');
    expect(await place.count('billing_rows', `provider_account_id = 'default'`)).toBe(0);
    const next = await importBill(place.api, csv.replace('7.5', '8.5'), { provider: 'anthropic' });
    expect(next.provider_account_id).toBe('0d5c1f0e-anthropic');
  });

  it('with a name other than the one on its bill is not counted, and the sync shows what to do', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const named = openaiTruth('org-of-the-bill');
    const anonymous = openaiTruth('org-of-the-bill');
    for (const bucket of anonymous.reports.costs ?? [])
      bucket.results = bucket.results.map((result) => ({ ...result, organization_id: null }));
    place.openai.setTruth(anonymous);
    const connection = await place.connect('openai', { settings: { account: 'by-hand' } });
    place.openai.setTruth(named);
    await place.engine.startWorker();
    const run = await place.ended(connection.sync);
    expect(run).toMatchObject({ status: 'partial', error: { code: 'account_mismatch' } });
    expect(run.error.message).toContain('settings.account org-of-the-bill');
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual({});
  });

  it('in disjoint parts is connected twice, and both count', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const other = await place.api.addOrganization();
    const a = await place.connect('openai', { settings: { scope: { projects: ['proj_a'] } } });
    const b = await place.connect('openai', { settings: { scope: { projects: ['proj_b'] } } });
    await place.ended(a.sync);
    await place.ended(b.sync);
    expect(await countedDays(place.api.orgDb, 'openai')).toEqual(
      expectedDays('openai', daysAgo(BACKFILL_DAYS)),
    );
    const refused = await place.api.post(CONNECTIONS, aConnection('openai'), other.adminKey);
    expect([refused.status, refused.body.code]).toEqual([409, 'account_already_connected']);
    const anthropic = await place.connect(
      'anthropic',
      { settings: { scope: { workspaces: ['wrkspc_b'] } } },
      other,
    );
    await place.ended(anthropic.sync, other);
    expect(await countedDays(other.orgDb, 'anthropic')).toEqual(
      expectedDays('anthropic', daysAgo(BACKFILL_DAYS), ['wrkspc_b']),
    );
  });
});
