import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PolicyToPut, putPolicy } from '../../db/queries/policies.js';
import { loadPriceBook } from '../../db/queries/prices.js';
import { sweepTraces } from '../../db/queries/traceSweep.js';

import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { listAlerts } from './support/policies.js';
import { anEvent, aSpan, aTrace, ingest } from './support/requests.js';

const WORD = 'forbidden-word';
const BANNED: PolicyToPut = {
  type: 'banned_patterns',
  config: { regexes: [WORD] },
  enabled: true,
  skipped: [],
};
const APPROVED: PolicyToPut = {
  type: 'approved_models',
  config: { models: ['gpt-4o'] },
  enabled: true,
  skipped: [],
};
const thresholdOf = (threshold_cents: number): PolicyToPut => ({
  type: 'approval_required_threshold_cents',
  config: { threshold_cents },
  enabled: true,
  skipped: [],
});

let api: TestApi;
let prices: PriceBook;
beforeAll(async () => {
  api = await startTestApi();
  prices = await loadPriceBook(api.database.database);
});
afterAll(() => api.close());

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

/** Sweeps until every span has been looked at: transactions of other databases of the cluster hold the sweep back. */
async function sweep(): Promise<void> {
  for (;;) {
    await sweepOnce();
    const { rows } = await api.database.superuser.query<{ done: boolean }>(
      'select swept_xid > (select coalesce(max(ingest_xid), 0) from call_spans) as done from sweep_state',
    );
    if (rows[0]?.done) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const sweepOnce = () => sweepTraces(api.database.database, { of: async () => prices });

async function anOrganization(...policies: PolicyToPut[]): Promise<TestOrganization> {
  const org = await api.addOrganization();
  for (const policy of policies) await putPolicy(org.orgDb, policy, 'key_test');
  return org;
}

interface Told {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  responseId?: string;
  model?: string;
  input?: number | undefined;
  output?: number | undefined;
  tier?: string;
  costUsd?: number | undefined;
  text?: string;
  project?: string;
  startMs?: number;
}

const START_MS = Date.now() - 3_600_000;

function spanOf(told: Told): unknown {
  const start = BigInt(START_MS + (told.startMs ?? 0)) * 1_000_000n;
  return aSpan(
    {
      'gen_ai.request.model': told.model ?? 'gpt-4o',
      'gen_ai.usage.input_tokens': 'input' in told ? told.input : 100,
      'gen_ai.usage.output_tokens': 'output' in told ? told.output : 50,
      'gen_ai.openai.response.service_tier': told.tier,
      'gen_ai.response.id': told.responseId,
      'gen_ai.usage.cost': told.costUsd,
      'gen_ai.input.messages': told.text,
      project_id: told.project,
    },
    {
      traceId: told.traceId,
      spanId: told.spanId,
      ...(told.parentSpanId === undefined ? {} : { parentSpanId: told.parentSpanId }),
      startTimeUnixNano: String(start),
      endTimeUnixNano: String(start + 1_000_000_000n),
    },
  );
}

/** One request. */
async function tell(org: TestOrganization, ...spans: Told[]): Promise<void> {
  const { status } = await api.post('/v1/traces', aTrace(...spans.map(spanOf)), org.ingestKey);
  expect(status).toBe(202);
}

interface StoredAlert {
  id: string;
  event_id: string;
  policy_type: string;
  merged_into: string | null;
  project_id: string | null;
  subject_id: string;
  cents: number | null;
}

async function storedAlerts({ orgId }: TestOrganization): Promise<StoredAlert[]> {
  const { rows } = await api.database.superuser.query(
    `select id, event_id, policy_type, merged_into, project_id, subject_id, (details->>'cost_cents')::int as cents
     from alerts where org_id = $1 order by created_at, id`,
    [orgId],
  );
  return rows;
}

interface StoredCall {
  id: string;
  superseded_by: string | null;
  model: string;
  project_id: string | null;
  cents: number | null;
  said: boolean;
  prompt_hash: string | null;
}

async function storedCalls({ orgId }: TestOrganization): Promise<StoredCall[]> {
  const { rows } = await api.database.superuser.query(
    `select e.id, e.superseded_by, e.model, e.project_id, e.prompt_hash::text as prompt_hash,
       case when e.cost_source = 'unpriced' then null else (e.cost_usd * 100)::float8 end as cents,
       coalesce(strpos(p.payload::text, $2) > 0, false) as said
     from events e left join event_payloads p on p.org_id = e.org_id and p.timestamp = e.timestamp and p.event_id = e.id
     where e.org_id = $1`,
    [orgId, WORD],
  );
  return rows;
}

/** Alerts that stand, as `policy type of request`, where each is of the only call that stands. */
async function alertsOfOnlyCall(org: TestOrganization): Promise<string[]> {
  const live = (await storedCalls(org)).filter(({ superseded_by }) => superseded_by === null);
  expect(live).toHaveLength(1);
  const alerts = await listAlerts(api, org.adminKey);
  const id = `evt_${live[0]?.id.replaceAll('-', '')}`;
  for (const alert of alerts) expect([alert.event_id, alert.subject.id]).toEqual([id, id]);
  return alerts.map(({ policy_type }) => policy_type).sort();
}

/** Two spans of one response: the outer one says less, so the inner one stands. */
function aPair(): { outer: Told; inner: Told } {
  const traceId = hex(16);
  const responseId = `chatcmpl-${hex(8)}`;
  const outer = { traceId, spanId: hex(8) };
  return {
    outer: { ...outer, responseId },
    // Another start: the same id at the same time would be the same event again.
    inner: { traceId, spanId: hex(8), parentSpanId: outer.spanId, responseId, startMs: 5 },
  };
}

describe('two tellings of one call', () => {
  it.each([
    ['the one that stands comes last', false],
    ['the one that stands comes first', true],
  ])('in two requests have one alert a policy, on the event that stands: %s', async (_, innerFirst) => {
    const org = await anOrganization(BANNED);
    const { outer, inner } = aPair();
    const both = [
      { ...outer, text: `outer ${WORD}` },
      { ...inner, text: `inner ${WORD}` },
    ];
    for (const told of innerFirst ? both.toReversed() : both) await tell(org, told);
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    // The second one was told to nobody, so nothing of it is kept.
    expect(await storedAlerts(org)).toHaveLength(1);
  });

  it.each([
    ['outer', false],
    ['outer', true],
    ['inner', false],
    ['inner', true],
  ] as const)(
    'have an alert by what one of them says: the %s one, the inner one first: %s',
    async (who, innerFirst) => {
      const org = await anOrganization(BANNED);
      const { outer, inner } = aPair();
      const both = [outer, inner].map((told) => ({
        ...told,
        text: told === (who === 'outer' ? outer : inner) ? WORD : 'fine',
      }));
      for (const told of innerFirst ? both.toReversed() : both) await tell(org, told);
      expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    },
  );

  it('without a shared id are joined by the sweep: the older alert stays, the other one points to it', async () => {
    const org = await anOrganization(BANNED);
    const traceId = hex(16);
    const outer = { traceId, spanId: hex(8), text: WORD };
    await tell(org, { traceId, spanId: hex(8), parentSpanId: outer.spanId, text: WORD });
    await tell(org, outer);
    const before = await listAlerts(api, org.adminKey);
    expect(before).toHaveLength(2);
    await sweep();
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    const [younger, older] = before as [{ id: string }, { id: string }];
    const standing = (await api.get(`/api/v1/alerts/${older.id}`, org.adminKey)).body;
    expect(standing.id).toBe(older.id);
    expect((await api.get(`/api/v1/alerts/${younger.id}`, org.adminKey)).body).toEqual(standing);
    await sweep();
    expect(await storedAlerts(org)).toHaveLength(2);
  });

  it('joined once more by a third one, all lead to the first alert', async () => {
    const org = await anOrganization(BANNED);
    const traceId = hex(16);
    const ids = [hex(8), hex(8), hex(8)];
    const spans = ids.map((spanId, depth) => ({
      traceId,
      spanId,
      ...(depth === 0 ? {} : { parentSpanId: ids[depth - 1] as string }),
      text: WORD,
      startMs: depth,
    })) as [Told, Told, Told];
    await tell(org, spans[2]);
    await tell(org, spans[1]);
    await sweep();
    await tell(org, { ...spans[0], responseId: `chatcmpl-${hex(8)}` });
    await sweep();
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    const alerts = await storedAlerts(org);
    expect(alerts).toHaveLength(3);
    expect(new Set(alerts.map(({ merged_into }) => merged_into))).toEqual(
      new Set([null, alerts[0]?.id as string]),
    );
  });

  it('that were joined before they are joined to an older one: all lead to that one’s alert', async () => {
    const org = await anOrganization(BANNED);
    const traceId = hex(16);
    const ids = [hex(8), hex(8), hex(8), hex(8)];
    const spans = ids.map((spanId, depth) => ({
      traceId,
      spanId,
      ...(depth === 0 ? {} : { parentSpanId: ids[depth - 1] as string }),
      text: WORD,
      startMs: depth,
    })) as [Told, Told, Told, Told];
    for (const span of [spans[0], spans[3], spans[2]]) await tell(org, span);
    await sweep();
    const merged = (await storedAlerts(org)).map(({ merged_into }) => merged_into);
    expect(merged.map((id) => id === null)).toEqual([true, true, false]);
    // The span that was missing between them.
    await tell(org, { ...spans[1], text: 'fine' });
    await sweep();
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    const [first, ...others] = await storedAlerts(org);
    expect(others.map(({ merged_into }) => merged_into)).toEqual([first?.id, first?.id]);
  });

  it('whose second one completes a call of the same request that is stored already: it is judged too', async () => {
    const org = await anOrganization(BANNED);
    const { outer, inner } = aPair();
    await tell(org, inner);
    expect(await alertsOfOnlyCall(org)).toEqual([]);
    await tell(org, { ...outer, text: WORD }, inner);
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
  });

  it('are judged by the model of the one that stands, where the other one was told with it', async () => {
    const org = await anOrganization(APPROVED);
    const { outer, inner } = aPair();
    await tell(org, { ...outer, model: 'gpt-4o-2024-08-06' }, inner);
    expect(await alertsOfOnlyCall(org)).toEqual([]);
    const late = aPair();
    const other = await anOrganization(APPROVED);
    await tell(other, late.inner);
    await tell(other, { ...late.outer, model: 'gpt-4o-2024-08-06' });
    expect(await alertsOfOnlyCall(other)).toEqual([]);
  });

  it.each([
    ['the request that completes it', (org: TestOrganization, spans: Told[]) => eachApart(org, spans, true)],
    [
      'the sweep',
      async (org: TestOrganization, spans: Told[]) => {
        await eachApart(org, spans, false);
        await sweep();
      },
    ],
  ])('that only together cost the threshold are judged in %s', async (_, send) => {
    // One knows of the tokens, the other one that they were of a dearer tier.
    const org = await anOrganization(thresholdOf(10));
    await wantAlerts(org);
    const traceId = hex(16);
    const outer: Told = { traceId, spanId: hex(8), input: 10_000, output: 4_000 };
    const inner: Told = {
      traceId,
      spanId: hex(8),
      parentSpanId: outer.spanId,
      tier: 'priority',
      input: undefined,
      output: undefined,
      startMs: 5,
    };
    await send(org, [inner, outer]);
    expect(await alertsOfOnlyCall(org)).toEqual(['approval_required_threshold_cents']);
    const [alert] = await listAlerts(api, org.adminKey);
    expect(alert).toMatchObject({ details: { cost_cents: 11 }, cost_usd: 0.1105 });
    expect((await messagesOf(org)).map(({ data }) => data.alert_id)).toEqual([alert?.id]);
  });

  it('of which the first one’s cost was below a threshold that was put later: nothing is judged again for a label', async () => {
    const org = await anOrganization();
    const { outer, inner } = aPair();
    await tell(org, { ...inner, costUsd: 3 });
    await putPolicy(org.orgDb, thresholdOf(100), 'key_test');
    await tell(org, { ...outer, project: 'late' });
    expect(await alertsOfOnlyCall(org)).toEqual([]);
    await tell(org, { ...againOf(inner), costUsd: 4 });
    expect(await alertsOfOnlyCall(org)).toEqual(['approval_required_threshold_cents']);
  });

  it('of which the other one names the project: the alert moves into the workspace', async () => {
    const org = await anOrganization(BANNED);
    const workspaceId = await api.addWorkspace(org.orgId, 'mine');
    const reader = await api.addKey(org.orgId, 'member', { workspaceId });
    const { outer, inner } = aPair();
    await tell(org, { ...inner, text: WORD });
    expect(await listAlerts(api, reader)).toEqual([]);
    await tell(org, { ...outer, project: 'mine' });
    expect(await listAlerts(api, reader)).toHaveLength(1);
  });

  it('are told to a webhook once, by the event that stands', async () => {
    const org = await anOrganization(BANNED);
    await wantAlerts(org);
    const { outer, inner } = aPair();
    await tell(org, { ...outer, text: WORD });
    await tell(org, { ...inner, text: WORD });
    await tell(org, { ...aPair().outer, text: 'fine' });
    const messages = await messagesOf(org);
    const [alert] = await listAlerts(api, org.adminKey);
    expect(messages.map(({ data }) => data)).toEqual([
      expect.objectContaining({ alert_id: alert?.id, kind: 'policy', policy_type: 'banned_patterns' }),
    ]);
    expect(JSON.stringify(messages)).not.toContain(WORD);
  });
});

/** Another telling of the same call. */
const againOf = (told: Told): Told => ({ ...told, spanId: hex(8), startMs: 9 });

async function eachApart(org: TestOrganization, spans: readonly Told[], sharesId: boolean): Promise<void> {
  const responseId = sharesId ? { responseId: `chatcmpl-${hex(8)}` } : {};
  for (const span of spans) await tell(org, { ...span, ...responseId });
}

/** An endpoint of the organization that wants everything; nobody delivers to it. */
async function wantAlerts({ orgId }: TestOrganization): Promise<void> {
  await api.database.superuser.query(
    `with moved as (update organizations set rules_revision = rules_revision + 1 where id = $1)
     insert into webhook_endpoints (org_id, id, url, description, status, ciphertext, secret_key_id, created_by)
     values ($1, $2, 'https://receiver.example/', '', 'active', '\\x00', 'k1', 'test')`,
    [orgId, randomUUID()],
  );
}

interface Message {
  id: string;
  type: string;
  data: { alert_id: string; event_id: string };
}

async function messagesOf({ orgId }: TestOrganization): Promise<Message[]> {
  const { rows } = await api.database.superuser.query(
    `select m.id, m.body, (select count(*)::int from webhook_deliveries d where d.org_id = m.org_id and d.message_id = m.id) as deliveries
     from webhook_messages m where org_id = $1 order by created_at, id`,
    [orgId],
  );
  expect(rows.every(({ deliveries }) => deliveries === 1)).toBe(true);
  return rows.map(({ id, body }) => ({ id, ...JSON.parse(body) }));
}

/** A telling among others of its call: what it says, and the request that it comes in. */
const telling = fc.record({
  says: fc.boolean(),
  model: fc.constantFrom('gpt-4o', 'gpt-4o-2024-08-06'),
  input: fc.constantFrom(0, 10_000),
  output: fc.constantFrom(0, 4_000),
  costUsd: fc.option(fc.constantFrom(0.01, 0.2), { nil: undefined }),
  hasId: fc.boolean(),
  request: fc.nat({ max: 4 }),
  isRepeated: fc.boolean(),
});
const calls = fc.array(fc.array(telling, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 });

describe('any tellings of any calls, in any split into requests, with sweeps between them', () => {
  it('end in one alert a call and policy, on the event that stands, with what any of them said', {
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(calls, fc.infiniteStream(fc.boolean()), async (drawn, sweeps) => {
        const org = await anOrganization(BANNED, APPROVED, thresholdOf(5));
        await wantAlerts(org);
        const requests = requestsOf(drawn);
        for (const spans of requests) {
          if (spans.length > 0) await tell(org, ...spans);
          if (sweeps.next().value) await sweepOnce();
        }
        await sweep();
        await checkAlerts(org);
      }),
      { numRuns: 40 },
    );
  });

  it('of events of wrappers and of spans that share an id, sent at the same time by many', async () => {
    const org = await anOrganization(BANNED, APPROVED, thresholdOf(5));
    await wantAlerts(org);
    for (let round = 0; round < 10; round += 1) {
      const responseId = `chatcmpl-${hex(8)}`;
      const event = anEvent({ response_id: responseId, request_id: undefined, payload: { prompt: WORD } });
      const { outer, inner } = aPair();
      await Promise.all([
        ingest(api, [event], org.ingestKey),
        tell(org, { ...outer, responseId, text: WORD }),
        tell(org, { ...inner, responseId, text: WORD, costUsd: 1 }),
        ingest(api, [event], org.ingestKey),
        tell(org, { ...outer, responseId, text: WORD }),
      ]);
    }
    await sweep();
    await checkAlerts(org);
    const live = (await storedCalls(org)).filter(({ superseded_by }) => superseded_by === null);
    expect(live).toHaveLength(10);
    expect(await listAlerts(api, org.adminKey)).toHaveLength(20);
  });
});

function requestsOf(
  drawn: readonly (readonly (typeof telling extends fc.Arbitrary<infer T> ? T : never)[])[],
) {
  const requests: Told[][] = Array.from({ length: 6 }, () => []);
  for (const [callIndex, tellings] of drawn.entries()) {
    const traceId = hex(16);
    const responseId = `chatcmpl-${hex(8)}`;
    let parentSpanId: string | undefined;
    for (const [depth, { says, hasId, request, isRepeated, ...rest }] of tellings.entries()) {
      const spanId = hex(8);
      const told: Told = {
        ...rest,
        traceId,
        spanId,
        ...(parentSpanId === undefined ? {} : { parentSpanId }),
        ...(hasId ? { responseId } : {}),
        text: says ? `${WORD} by ${depth}` : `fine by ${depth}`,
        startMs: callIndex * 10_000 + depth,
      };
      parentSpanId = spanId;
      requests[request]?.push(told);
      if (isRepeated) requests[request + 1]?.push(told);
    }
  }
  return requests;
}

/** What must hold however calls were told. */
async function checkAlerts(org: TestOrganization): Promise<void> {
  const events = await storedCalls(org);
  const byId = new Map(events.map((event) => [event.id, event]));
  const standsFor = (id: string): string => {
    const next = byId.get(id)?.superseded_by;
    return next ? standsFor(next) : id;
  };
  const alerts = await storedAlerts(org);
  const standing = alerts.filter(({ merged_into }) => merged_into === null);
  for (const { event_id, subject_id, project_id } of standing) {
    const event = byId.get(event_id) as StoredCall;
    expect(event.superseded_by).toBeNull();
    expect([subject_id, project_id]).toEqual([`evt_${event_id.replaceAll('-', '')}`, event.project_id]);
  }
  for (const { merged_into, policy_type, event_id } of alerts) {
    if (merged_into === null) continue;
    const target = standing.find(({ id }) => id === merged_into) as StoredAlert;
    expect([target.policy_type, standsFor(event_id)]).toEqual([policy_type, target.event_id]);
  }
  for (const live of events.filter(({ superseded_by }) => superseded_by === null)) {
    const tellings = events.filter(({ id }) => standsFor(id) === live.id);
    const of = (type: string) =>
      standing.filter(({ event_id, policy_type }) => event_id === live.id && policy_type === type);
    expect(of('banned_patterns')).toHaveLength(tellings.some(({ said }) => said) ? 1 : 0);
    expect(of('approved_models').length).toBeLessThanOrEqual(
      tellings.some(({ model }) => model !== 'gpt-4o') ? 1 : 0,
    );
    if (live.model !== 'gpt-4o') expect(of('approved_models')).toHaveLength(1);
    const costly = of('approval_required_threshold_cents');
    expect(costly.length).toBeLessThanOrEqual(1);
    if (live.cents !== null && live.cents >= 5) expect(costly).toHaveLength(1);
    const hashes = tellings.flatMap(({ prompt_hash }) => (prompt_hash === null ? [] : [BigInt(prompt_hash)]));
    expect(BigInt(live.prompt_hash ?? 0)).toBe(hashes.reduce((a, b) => (b < a ? b : a), hashes[0] ?? 0n));
  }
  // Every alert was told of once, and nothing that is not there.
  const told = (await messagesOf(org)).map(({ id }) => id);
  expect(told.sort()).toEqual(alerts.map(({ id }) => id).sort());
}
