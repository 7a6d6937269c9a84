import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { microsFromDate } from '../../domain/period.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import { type DraftDeps, draftConfirmed } from '../../usecases/claims/draftClaims.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { claimsOf } from '../api/support/claims.js';
import { day, financialOf, USD } from '../api/support/financial.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { runGaps } from '../support/bills.js';
import { testInvoicePages } from '../support/blobs.js';
import { testConnectors } from '../support/connectors.js';
import { type RunningWorker, startTestEngine, type TestEngine } from '../support/engine.js';
import { aFindingDay, type FindingToStore, storeFindings } from '../support/findings.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { anEndpoint } from '../support/webhooks.js';

let api: TestApi;
let engine: TestEngine;
let worker: RunningWorker;
let connection: Connection;
let client: Client;
let deps: DraftDeps;
beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
  worker = await engine.startWorker();
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection, namespace: TEST_NAMESPACE });
  const prices = await PriceBookHolder.open(api.database.database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  deps = {
    nowMicros: () => microsFromDate(new Date()),
    prices,
    pages: createPageReaders(testConnectors()),
    ...testInvoicePages(),
  };
}, 300_000);
afterAll(async () => {
  await engine?.close();
  await connection?.close();
  await api?.close();
});

const claims = claimsOf(() => api);

const tooLittle = (usd: bigint, on: string, given: FindingToStore = {}): FindingToStore => ({
  ...{ direction: 'undercharge', kind: 'list_rate_mismatch', model: 'gpt-4o-mini', claimable: false },
  days: [aFindingDay(on, -usd * USD)],
  ...given,
});

/** Starts a run and waits until its workflow has ended; returns the run with its drafts. */
async function runAndDraft(org: TestOrganization, query = '') {
  const { run_id, status_url } = await runGaps(api, query, 180_000, org.adminKey);
  const runId = findUuid('run', run_id) ?? '';
  await client.workflow.getHandle(runWorkflowId('gap_run', { orgId: org.orgId, id: runId })).result();
  return (await api.get(status_url, org.adminKey)).body;
}

const claimIds = async (org: TestOrganization) =>
  (await claims.list(org)).map(({ id }: { id: string }) => id);

describe('a gap run', () => {
  it('drafts confirmed findings, one claim for each account, kind and month, and lists the claims', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      { days: [day(100n)], model: 'a' },
      { days: [day(30n, '2026-03-20')], model: 'b', grade: 'LOW' },
      { days: [day(7n, '2026-04-20')], model: 'a' },
      { days: [day(5n)], kind: 'tool_fee_mismatch' },
      { days: [day(4n)], accountId: 'acc-2' },
      { days: [day(3n)], provider: 'anthropic' },
    );
    await storeFindings(org.orgDb, [tooLittle(10n, '2026-03-31'), { model: 'not confirmed' }]);
    await anEndpoint(org, 'https://receiver.example/', ['claim.created']);
    const run = await runAndDraft(org);
    const [a, b, april, tool, second, anthropic] = disputes;
    const made = await Promise.all((await claimIds(org)).map((id: string) => claims.get(org, id)));
    const told = made.map((claim) => [
      claim.total_recoverable_cents,
      claim.confidence_tier,
      ...[...claim.dispute_ids].sort(),
    ]);
    expect(told.sort(([x], [y]) => Number(y) - Number(x))).toEqual([
      [12_000, 'LOW', ...[a, b].sort()],
      [700, 'HIGH', april],
      [500, 'HIGH', tool],
      [400, 'HIGH', second],
      [300, 'HIGH', anthropic],
    ]);
    expect(new Set(made.map((claim) => claim.created_by))).toEqual(new Set([run.run_id]));
    expect([...run.result.claims_drafted].sort()).toEqual(made.map(({ id }) => id).sort());
    expect(run.result.claims_withheld).toEqual([]);
    expect(await claims.actionsOf(org)).toEqual(Array.from({ length: 5 }, () => 'claim.created'));
    const messages = await org.orgDb.rows('select id from webhook_messages where org_id = $1', [org.orgId]);
    expect(messages).toHaveLength(5);
  });

  it('drafts nothing twice, and what was confirmed since the last one', async () => {
    const { org } = await claims.orgWithDisputes({});
    expect((await runAndDraft(org)).result.claims_drafted).toHaveLength(1);
    const before = await claims.list(org);
    expect((await runAndDraft(org)).result.claims_drafted).toEqual([]);
    expect(await claims.list(org)).toEqual(before);
    const [finding = ''] = await storeFindings(org.orgDb, [{ model: 'later' }]);
    const { body } = await financialOf(() => api).confirm(org, `fnd_${finding.replaceAll('-', '')}`);
    const { result } = await runAndDraft(org);
    expect(result.claims_drafted).toHaveLength(1);
    expect((await claims.dispute(org, body.id)).claim_id).toBe(result.claims_drafted[0]);
  });

  it('of one provider drafts that one’s', async () => {
    const { org, disputes } = await claims.orgWithDisputes({ provider: 'anthropic' }, {});
    await runAndDraft(org, '?provider=openai');
    expect((await claims.dispute(org, disputes[0] ?? '')).claim_id).toBeNull();
    expect((await claims.dispute(org, disputes[1] ?? '')).claim_id).not.toBeNull();
  });

  it('drafts no day that is gone, may be restated again, is not sure or is found for less', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      { model: 'gone' },
      { model: 'provisional' },
      { model: 'unverified' },
      { model: 'less' },
      { model: 'shorter', days: [day(5n), day(5n, '2026-03-11')] },
    );
    const set = (model: string, change: string) =>
      org.orgDb.run(`update findings set ${change} where org_id = $1 and model = $2`, [org.orgId, model]);
    await set('gone', `status = 'gone'`);
    await set('provisional', 'provisional = true');
    await set('unverified', `grade = 'UNVERIFIED'`);
    await org.orgDb.run(
      `update finding_days d set impact_usd = 12, rate_usd = 12, expected_usd = 988 from findings f
       where d.org_id = $1 and f.org_id = $1 and f.id = d.finding_id and f.model = 'less'`,
      [org.orgId],
    );
    await org.orgDb.run(
      `delete from finding_days d using findings f where d.org_id = $1 and f.id = d.finding_id and f.model = 'shorter' and d.day = '2026-03-11'`,
      [org.orgId],
    );
    expect((await runAndDraft(org)).result.claims_drafted).toEqual([]);
    await set('provisional', 'provisional = false');
    const { result } = await runAndDraft(org);
    expect(result.claims_drafted).toHaveLength(1);
    expect((await claims.dispute(org, disputes[1] ?? '')).claim_id).toBe(result.claims_drafted[0]);
  });

  it('withholds claims that net to nothing, and lists them until they do not', async () => {
    const { org, disputes } = await claims.orgWithDisputes({ days: [day(10n)] });
    const [under = ''] = await storeFindings(org.orgDb, [tooLittle(11n, '2026-03-02')]);
    const withheld = {
      ...{ provider: 'openai', provider_account_id: 'acc-1', kind: 'cache_read_rate_mismatch' },
      ...{ month: '2026-03', dispute_ids: disputes, disputed_usd: 10, undercharged_usd: 11 },
    };
    for (let run = 0; run < 2; run += 1)
      expect((await runAndDraft(org)).result).toMatchObject({
        claims_drafted: [],
        claims_withheld: [withheld],
      });
    await financialOf(() => api).dismiss(org, `fnd_${under.replaceAll('-', '')}`);
    expect((await runAndDraft(org)).result).toMatchObject({
      claims_drafted: [expect.any(String)],
      claims_withheld: [],
    });
  });
});

describe('drafting', () => {
  it('by many at once, while others claim and resolve, puts no dispute in two claims and nets nothing twice', async () => {
    const models = ['a', 'b', 'c', 'd'];
    const { org, disputes } = await claims.orgWithDisputes(
      ...models.map((model): FindingToStore => ({ model, days: [day(10n)] })),
    );
    await storeFindings(org.orgDb, [tooLittle(3n, '2026-03-02')]);
    const asked = () =>
      draftConfirmed(org.orgDb, { provider: null, by: 'test' }, deps).catch(() => undefined);
    await Promise.all([
      ...[asked(), asked(), asked()],
      claims.create(org, disputes.slice(0, 2)),
      claims.create(org, disputes.slice(1, 3)),
      api.post(`/api/v1/financial/disputes/${disputes[3]}`, { resolution: 'other' }, org.adminKey),
    ]);
    await draftConfirmed(org.orgDb, { provider: null, by: 'test' }, deps);
    const found = await Promise.all((await claimIds(org)).map((id: string) => claims.get(org, id)));
    const claimed = found.flatMap((claim) => claim.dispute_ids);
    expect(new Set(claimed).size).toBe(claimed.length);
    const resolved = (await claims.dispute(org, disputes[3] ?? '')).status === 'resolved';
    expect(claimed).toHaveLength(resolved ? 3 : 4);
    const cents = found.reduce((sum, claim) => sum + claim.total_recoverable_cents, 0);
    expect(cents).toBe(claimed.length * 1_000 - 300);
  });

  it('continues with the others where one cannot be made, and makes that one the next time', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      { days: [day(90n)] },
      { days: [day(10n)], kind: 'tool_fee_mismatch' },
    );
    const { superuser } = api.database;
    await superuser.query(`create function refuse_large() returns trigger language plpgsql as $$ begin
        if new.total_recoverable_cents > 5000 then raise exception 'no paper left'; end if; return new; end $$;
      create trigger refuse_large before insert on claims for each row execute function refuse_large()`);
    const first = await draftConfirmed(org.orgDb, { provider: null, by: 'test' }, deps);
    await superuser.query('drop trigger refuse_large on claims; drop function refuse_large()');
    expect(first.claims.map(({ recoverableCents }) => recoverableCents)).toEqual([1_000]);
    expect(first.failed.map(({ error }) => (error as Error).message)).toEqual(['no paper left']);
    expect((await claims.dispute(org, disputes[0] ?? '')).claim_id).toBeNull();
    const second = await draftConfirmed(org.orgDb, { provider: null, by: 'test' }, deps);
    expect(second.claims.map(({ recoverableCents }) => recoverableCents)).toEqual([9_000]);
  });
});

describe('a run whose drafting is interrupted', () => {
  it('continues with what is left, and its result has what was drafted before', async () => {
    const { org } = await claims.orgWithDisputes(
      { days: [day(90n)] },
      { days: [day(20n)], kind: 'tool_fee_mismatch' },
      { days: [day(10n)], kind: 'list_rate_mismatch' },
    );
    await worker.stop();
    const made: number[] = [];
    const interrupted = await engine.startWorker(({ draftRunClaims }) => ({
      draftRunClaims: async (ref) => {
        const checkpoint = () => {
          if (made.push(1) > 1) throw new Error('the process is gone');
        };
        const by = publicId('run', ref.runId);
        if (made.length === 0) await draftConfirmed(org.orgDb, { provider: null, by, checkpoint }, deps);
        return draftRunClaims(ref);
      },
    }));
    const { result } = await runAndDraft(org);
    await interrupted.stop();
    worker = await engine.startWorker();
    expect(made).toHaveLength(2);
    expect(result.claims_drafted).toHaveLength(3);
    const found = await claims.list(org);
    expect(found.map(({ id }: { id: string }) => id).sort()).toEqual([...result.claims_drafted].sort());
    expect(
      found.map((claim: { total_recoverable_cents: number }) => claim.total_recoverable_cents).sort(),
    ).toEqual([1_000, 2_000, 9_000]);
    expect(await claims.actionsOf(org)).toHaveLength(3);
  });
});
