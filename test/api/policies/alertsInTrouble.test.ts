import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { sweepTraces } from '../../../usecases/events/traceSweep.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { NOWHERE } from '../../support/outbound.js';
import { listAlerts, putPolicy, type ShownAlert } from '../support/policies.js';
import { anEvent, aSpan, aTrace, ingest, send, sendJson } from '../support/requests.js';

/** Two API servers on one database. */
let database: TestDatabase;
let here: TestApi;
let there: TestApi;
let prices: PriceBook;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 16 });
  here = await startTestApi({ database });
  there = await startTestApi({ database });
  prices = await loadPriceBook(database.database);
});
afterAll(async () => {
  await here.close();
  await there.close();
  await database.close();
});

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

/** An endpoint for all messages, made over the API; no worker delivers to it. */
async function addEndpoint(org: TestOrganization, api = here): Promise<string> {
  const { status, body } = await sendJson(api, {
    method: 'POST',
    path: '/api/v1/webhook-endpoints',
    key: org.adminKey,
    json: { url: `${NOWHERE}/hook` },
  });
  expect(status, JSON.stringify(body)).toBe(201);
  return body.id;
}

async function messageIds({ orgId }: TestOrganization): Promise<string[]> {
  const { rows } = await database.superuser.query(
    `select body::jsonb->'data'->>'alert_id' as id from webhook_messages where org_id = $1 and type = 'alert.created' order by created_at, id`,
    [orgId],
  );
  return rows.map(({ id }) => id);
}

const shown = async (org: TestOrganization) =>
  (await listAlerts(here, org.adminKey)).map(({ id, policy_type }: ShownAlert) => `${policy_type} ${id}`);

describe('a call of a large request', () => {
  it('keeps its alert when the last statement of it completes what the first one has stored', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'approval_required_threshold_cents', { threshold_cents: 5 });
    const traceId = hex(16);
    const outer = hex(8);
    const attributes = (more: object) => ({
      'gen_ai.usage.input_tokens': 10_000,
      'gen_ai.usage.output_tokens': 4_000,
      ...more,
    });
    const at = (ms: number) => {
      const start = BigInt(Date.now() - 3_600_000 + ms) * 1_000_000n;
      return { startTimeUnixNano: String(start), endTimeUnixNano: String(start + 1_000_000_000n) };
    };
    const winner = aSpan(attributes({ 'gen_ai.response.id': `chatcmpl-${hex(8)}` }), {
      traceId,
      spanId: hex(8),
      parentSpanId: outer,
      ...at(5),
    });
    const filler = Array.from({ length: 2_100 }, (_, index) =>
      aSpan(
        { 'gen_ai.usage.input_tokens': 1, 'gen_ai.usage.output_tokens': 1 },
        { traceId: hex(16), spanId: hex(8), ...at(10_000 + index) },
      ),
    );
    const last = aSpan(attributes({}), { traceId, spanId: outer, ...at(0) });
    const { status, body } = await here.post('/v1/traces', aTrace(winner, ...filler, last), org.ingestKey);
    expect(status, JSON.stringify(body)).toBe(202);
    expect(await listAlerts(here, org.adminKey)).toHaveLength(1);
    const { rows } = await database.superuser.query(
      'select count(*)::int as n from events where org_id = $1 and superseded_by is not null',
      [org.orgId],
    );
    expect(rows).toEqual([{ n: 1 }]);
  });
});

describe('an alert', () => {
  it('of a call that is stored again after retention removed it sends no second message', async () => {
    const org = await here.addOrganization();
    await addEndpoint(org);
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    const event = anEvent();
    await ingest(here, [event], org.ingestKey);
    const before = await messageIds(org);
    await database.superuser.query('delete from alerts where org_id = $1', [org.orgId]);
    await database.superuser.query('delete from events where org_id = $1', [org.orgId]);
    await ingest(there, [event], org.ingestKey);
    expect(await listAlerts(here, org.adminKey)).toHaveLength(1);
    expect(await messageIds(org)).toEqual(before);
  });

  it('is sent to an endpoint that was made just before, at another server', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    await ingest(here, [anEvent()], org.ingestKey);
    await ingest(there, [anEvent()], org.ingestKey);
    expect(await messageIds(org)).toEqual([]);
    for (let round = 1; round <= 4; round += 1) {
      const id = await addEndpoint(org, round % 2 ? here : there);
      await ingest(round % 2 ? there : here, [anEvent()], org.ingestKey);
      expect(await messageIds(org)).toHaveLength(2 * round - 1);
      await ingest(round % 2 ? here : there, [anEvent()], org.ingestKey);
      expect(await messageIds(org)).toHaveLength(2 * round);
      const gone = await send(there, {
        method: 'DELETE',
        path: `/api/v1/webhook-endpoints/${id}`,
        key: org.adminKey,
      });
      expect(gone.status).toBeLessThan(300);
      await ingest(here, [anEvent()], org.ingestKey);
      expect(await messageIds(org)).toHaveLength(2 * round);
    }
  });

  it('holds no more than the beginning of what a client calls its key’s prefix', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'key_environment_check', {
      prod_key_prefixes: ['sk-live-'],
      allowed_envs: ['production'],
    });
    await ingest(
      here,
      [anEvent({ _service: { environment: 'staging', api_key_prefix: `sk-live-${'x'.repeat(100_000)}` } })],
      org.ingestKey,
    );
    const [alert] = await listAlerts(here, org.adminKey);
    expect(alert?.details.key_prefix.length).toBe(20);
  });
});

/** Sends two requests with one span of a call each, which only their trace connects. */
async function reportTwice(org: TestOrganization): Promise<void> {
  const traceId = hex(16);
  const [outer, inner] = [hex(8), hex(8)];
  const spans = [
    aSpan({}, { traceId, spanId: outer }),
    aSpan({}, { traceId, spanId: inner, parentSpanId: outer }),
  ];
  for (const span of spans)
    expect((await here.post('/v1/traces', aTrace(span), org.ingestKey)).status).toBe(202);
}

/** Sweeps until the organization has this many alerts, because transactions of other databases delay the sweep. */
async function sweepUntil(org: TestOrganization, alerts: number): Promise<void> {
  await expect
    .poll(
      async () => {
        await sweepTraces(database.database, { of: async () => prices });
        return (await listAlerts(here, org.adminKey)).length;
      },
      { interval: 5 },
    )
    .toBe(alerts);
}

describe('two alerts of what turns out to be one call', () => {
  it.each([
    ['the older one', [0]],
    ['the younger one', [1]],
    ['both', [1, 0]],
    ['neither', []],
  ] as const)('count as acknowledged once a person acknowledged either: %s', async (_, acknowledged) => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    await reportTwice(org);
    const [younger, older] = (await listAlerts(here, org.adminKey)) as [ShownAlert, ShownAlert];
    const answers: ShownAlert[] = [];
    for (const place of acknowledged) {
      const { id } = [older, younger][place] as ShownAlert;
      const { status, body } = await here.post(`/api/v1/alerts/${id}/acknowledge`, {}, org.adminKey);
      expect(status).toBe(200);
      answers.push(body);
    }
    await sweepUntil(org, 1);
    for (const { id } of [older, younger]) {
      const { body } = await there.get(`/api/v1/alerts/${id}`, org.adminKey);
      expect(body).toMatchObject({
        id: older.id,
        status: acknowledged.length > 0 ? 'acknowledged' : 'open',
        acknowledged_by: answers[0]?.acknowledged_by ?? null,
      });
      // Its earlier time stays; else it takes the other one's time.
      const own = answers.find((answer) => answer.id === older.id) ?? answers[0];
      expect(body.acknowledged_at).toBe(own?.acknowledged_at ?? null);
    }
  });
});

describe('alerts that are acknowledged while they are put together', () => {
  it('are acknowledged afterwards, whichever comes first', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    for (let call = 0; call < 12; call += 1) await reportTwice(org);
    const alerts = await listAlerts(here, org.adminKey);
    expect(alerts).toHaveLength(24);
    // Every other one: the younger of each two.
    const younger = alerts.filter((_, index) => index % 2 === 0);
    const acknowledge = async () => {
      for (const { id } of younger)
        expect((await there.post(`/api/v1/alerts/${id}/acknowledge`, {}, org.adminKey)).status).toBe(200);
    };
    await Promise.all([acknowledge(), sweepUntil(org, 12)]);
    expect((await listAlerts(here, org.adminKey)).map(({ status }) => status)).toEqual(
      younger.map(() => 'acknowledged'),
    );
  });
});

describe('a transaction that loses a race after its alerts were made', () => {
  it.each(['40P01', '40001'])(
    '%s: is repeated, and each alert is stored, sent and counted once',
    async (code) => {
      const org = await here.addOrganization();
      await addEndpoint(org);
      await putPolicy(here, org, 'approved_models', { models: ['other'] });
      await ingest(here, [anEvent()], org.ingestKey);
      const name = `trouble_${code.toLowerCase()}`;
      await database.superuser.query(`
      create sequence ${name};
      grant usage on sequence ${name} to public;
      create function ${name}() returns trigger language plpgsql as $$
        begin
          if new.org_id = '${org.orgId}' and nextval('${name}') <= 3 then
            raise exception 'lost' using errcode = '${code}';
          end if;
          return new;
        end $$;
      create trigger ${name} after insert on webhook_deliveries for each row execute function ${name}();`);
      const counted = async () =>
        Number(
          /^trueup_policy_alerts_total\{policy_type="approved_models"\} (\d+)$/m.exec(
            (await here.get('/metrics')).body,
          )?.[1] ?? 0,
        );
      const before = await counted();
      await ingest(here, [anEvent(), anEvent()], org.ingestKey);
      await database.superuser.query(
        `drop trigger ${name} on webhook_deliveries; drop function ${name}; drop sequence ${name}`,
      );
      expect(await counted()).toBe(before + 2);
      expect(await shown(org)).toHaveLength(3);
      expect(await messageIds(org)).toHaveLength(3);
    },
  );
});
