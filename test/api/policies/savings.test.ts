import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { picoFromDecimal } from '../../../domain/money.js';
import type { TestOrganization } from '../../support/api.js';
import { storeModeledResult } from '../../support/modeledResult.js';
import { type LimitedApi, startLimitedApi } from '../support/limits.js';
import { anEvent, aTime, ingest } from '../support/requests.js';

const SAVINGS = '/api/v1/enforcement/savings';
const RUNS = `${SAVINGS}/runs`;
const RULES = '/api/v1/enforcement-rules';

let api: LimitedApi;
beforeAll(async () => {
  api = await startLimitedApi({ openRunsMax: 2, runs: { quota: 5, windowSeconds: 3_600, burst: 5 } });
});
afterAll(() => api.close());

const aRule = async ({ adminKey }: TestOrganization, name: string) =>
  (await api.post(RULES, { type: 'token_ceiling', name, config: { max_tokens: 10 } }, adminKey)).body.id;
const cents = (usd: number) => picoFromDecimal(String(usd)) ?? 0n;
const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

describe('savings', () => {
  it('show what was prevented by rule, to the cent and adding up, beside what is preventable', async () => {
    const org = await api.addOrganization();
    const rules = [await aRule(org, 'one'), await aRule(org, 'two'), await aRule(org, 'three')];
    // A third of a cent and a bit each: together a cent that no row has by itself.
    const blocked = [...rules, 'a rule of somebody else'].map((id, index) =>
      anEvent({ status: 'blocked', blocked_rule_id: id, prevented_usd: 0.0034, timestamp: aTime(index) }),
    );
    await ingest(api, [...blocked, anEvent({ status: 'blocked', timestamp: aTime(9) })], org.ingestKey);
    const before = (await api.get(SAVINGS, org.adminKey)).body;
    expect(before).toMatchObject({
      prevented_usd: 0.01,
      prevented_usd_exact: '0.0136',
      prevented: { calls: 5, calls_without_amount: 1, by_other_rules: null },
      preventable_modeled_usd: null,
      modeled: null,
    });
    const rows = before.prevented.by_rule as { rule_id: string | null; prevented_usd: number }[];
    expect(sum(rows.map((row) => cents(row.prevented_usd)))).toBe(cents(before.prevented_usd));
    expect(rows.map((row) => row.rule_id).sort()).toEqual([...rules, 'a rule of somebody else', null].sort());
    await storeModeledResult(org.orgDb);
    const after = (await api.get(SAVINGS, org.adminKey)).body;
    expect(after).toMatchObject({ prevented_usd: 0.01, preventable_modeled_usd: 3, open_run: null });
    expect(after.modeled.by_rule.map((row: { name: string }) => row.name)).toEqual(['one', 'two', 'three']);
  });

  it('are of the period that is asked for, both bounds included', async () => {
    const org = await api.addOrganization();
    const at = (timestamp: string) => anEvent({ status: 'blocked', prevented_usd: 1, timestamp });
    await ingest(
      api,
      [at('2026-03-01T00:00:00Z'), at('2026-03-31T23:59:59.999999Z'), at('2026-04-01T00:00:00Z')],
      org.ingestKey,
    );
    const { body } = await api.get(`${SAVINGS}?from=2026-03-01&to=2026-03-31`, org.adminKey);
    expect(body).toMatchObject({
      from: '2026-03-01T00:00:00Z',
      to: '2026-03-31T23:59:59.999999Z',
      prevented_usd: 2,
      prevented: { calls: 2 },
    });
  });

  it.each([
    ['from=2026-03-01', 'invalid_parameter', 'to'],
    ['to=2026-03-01', 'invalid_parameter', 'from'],
    ['from=2026-03-02&to=2026-03-01', 'invalid_range', 'from'],
  ])('refuse %s', async (query, code, field) => {
    const { status, body } = await api.get(`${SAVINGS}?${query}`);
    expect([status, body.code, body.errors[0].field]).toEqual([400, code, field]);
  });
});

describe('a savings run', () => {
  it.each([
    [{ from: '2026-03-01' }, 'invalid_body', 'to'],
    [{ from: '2026-03-02', to: '2026-03-01' }, 'invalid_range', 'from'],
    [{ from: '2026-01-01', to: '2026-04-03' }, 'invalid_range', 'from'],
    [{ from: 'yesterday', to: '2026-04-03' }, 'invalid_body', 'from'],
  ])('is not started for %j', async (wanted, code, field) => {
    const { status, body } = await api.post(RUNS, wanted);
    expect([status, body.code, body.errors[0].field]).toEqual([400, code, field]);
  });

  it('of a period that is open is the answer, also when ten ask for it at once; another period is another run', async () => {
    const { adminKey } = await api.addOrganization();
    const period = { from: '2026-01-01', to: '2026-04-02' };
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.post(RUNS, period, adminKey)));
    expect(new Set(answers.map(({ body }) => body.run_id)).size).toBe(1);
    expect(answers.filter(({ body }) => body.existing === undefined).length).toBe(1);
    const other = await api.post(RUNS, {}, adminKey);
    expect(other.body.run_id).not.toBe(answers[0]?.body.run_id);
    const third = await api.post(RUNS, { from: '2026-02-01', to: '2026-02-02' }, adminKey);
    expect([third.status, third.body.code, third.body['violated-policies']]).toEqual([
      429,
      'rate_limited',
      ['open-savings-runs'],
    ]);
    expect((await api.get(RUNS, adminKey)).body).toMatchObject({ count: 2, has_more: false });
  });

  it('is refused beyond as many as may be begun in an hour; those that were open already do not count', async () => {
    const { orgId, adminKey } = await api.addOrganization();
    const end = () =>
      api.database.superuser.query(`update savings_runs set status = 'cancelled' where org_id = $1`, [orgId]);
    for (let begun = 0; begun < 5; begun += 1) {
      expect((await api.post(RUNS, {}, adminKey)).status).toBe(202);
      expect((await api.post(RUNS, {}, adminKey)).body.existing).toBe(true);
      await end();
    }
    const refused = await api.post(RUNS, {}, adminKey);
    expect([refused.status, refused.body['violated-policies']]).toEqual([429, ['savings-runs']]);
  });
});

describe('the calls of a result', () => {
  it('are none before there is one, and what names no rule and no result is refused', async () => {
    const { adminKey } = await api.addOrganization();
    const none = await api.get(`${SAVINGS}/calls`, adminKey);
    expect(none.body).toEqual({ run_id: null, calls: [], count: 0, has_more: false, next_cursor: null });
    for (const [query, field] of [
      ['rule_id=mine', 'rule_id'],
      ['run_id=mine', 'run_id'],
      ['cursor=mine', 'cursor'],
    ]) {
      const { status, body } = await api.get(`${SAVINGS}/calls?${query}`, adminKey);
      expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_parameter', field]);
    }
  });

  it('come newest first, of all rules or of one, each once', async () => {
    const org = await api.addOrganization();
    const ids = [await aRule(org, 'one'), await aRule(org, 'two'), await aRule(org, 'three')];
    await storeModeledResult(org.orgDb);
    const seen = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body }: { body: { calls: { rule_id: string }[]; next_cursor: string | null } } = await api.get(
        `${SAVINGS}/calls?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`,
        org.adminKey,
      );
      seen.push(...body.calls);
      cursor = body.next_cursor;
    }
    expect(seen.map((call) => call.rule_id).sort()).toEqual([...ids].sort());
    const { body } = await api.get(`${SAVINGS}/calls?rule_id=${ids[1]}`, org.adminKey);
    expect(body.calls).toMatchObject([
      { rule_id: ids[1], action: 'block', saved_usd: 1, saved_usd_exact: '1', event: null },
    ]);
  });
});
