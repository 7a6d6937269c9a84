import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PolicyToPut, putPolicy } from '../../../db/policies/policies.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { MultiReportCalls, type Told, WORD } from '../support/multiReportCalls.js';
import { listAlerts } from '../support/policies.js';
import { anEvent, ingest } from '../support/requests.js';

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
let told: MultiReportCalls;
beforeAll(async () => {
  api = await startTestApi();
  told = await MultiReportCalls.of(api);
});
afterAll(() => api.close());

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

async function anOrganization(...policies: PolicyToPut[]): Promise<TestOrganization> {
  const org = await api.addOrganization();
  for (const policy of policies) await putPolicy(org.orgDb, policy, 'key_test');
  return org;
}

/** Alerts that count, as `policy type of request`, where each is of the only event that counts. */
async function alertsOfOnlyCall(org: TestOrganization): Promise<string[]> {
  const live = (await told.storedCalls(org)).filter(({ superseded_by }) => superseded_by === null);
  expect(live).toHaveLength(1);
  const alerts = await listAlerts(api, org.adminKey);
  const id = `evt_${live[0]?.id.replaceAll('-', '')}`;
  for (const alert of alerts) expect([alert.event_id, alert.subject.id]).toEqual([id, id]);
  return alerts.map(({ policy_type }) => policy_type).sort();
}

/** Two spans of one response: the outer one has fewer fields, so the inner one counts. */
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

describe('two reports of one call', () => {
  it.each([
    ['the one that stands comes last', false],
    ['the one that stands comes first', true],
  ])('in two requests have one alert a policy, on the event that counts: %s', async (_, innerFirst) => {
    const org = await anOrganization(BANNED);
    const { outer, inner } = aPair();
    const both = [
      { ...outer, text: `outer ${WORD}` },
      { ...inner, text: `inner ${WORD}` },
    ];
    for (const span of innerFirst ? both.toReversed() : both) await told.tell(org, span);
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    // The second one was not sent, so nothing of it is kept.
    expect(await told.storedAlerts(org)).toHaveLength(1);
  });

  it.each([
    ['outer', false],
    ['outer', true],
    ['inner', false],
    ['inner', true],
  ] as const)(
    'have an alert by the content of one of them: the %s one, the inner one first: %s',
    async (who, innerFirst) => {
      const org = await anOrganization(BANNED);
      const { outer, inner } = aPair();
      const both = [outer, inner].map((told) => ({
        ...told,
        text: told === (who === 'outer' ? outer : inner) ? WORD : 'fine',
      }));
      for (const span of innerFirst ? both.toReversed() : both) await told.tell(org, span);
      expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    },
  );

  it('without a shared id are joined by the sweep: the older alert stays, the other one points to it', async () => {
    const org = await anOrganization(BANNED);
    const traceId = hex(16);
    const outer = { traceId, spanId: hex(8), text: WORD };
    await told.tell(org, { traceId, spanId: hex(8), parentSpanId: outer.spanId, text: WORD });
    await told.tell(org, outer);
    const before = await listAlerts(api, org.adminKey);
    expect(before).toHaveLength(2);
    await told.sweep();
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    const [younger, older] = before as [{ id: string }, { id: string }];
    const standing = (await api.get(`/api/v1/alerts/${older.id}`, org.adminKey)).body;
    expect(standing.id).toBe(older.id);
    expect((await api.get(`/api/v1/alerts/${younger.id}`, org.adminKey)).body).toEqual(standing);
    await told.sweep();
    expect(await told.storedAlerts(org)).toHaveLength(2);
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
    await told.tell(org, spans[2]);
    await told.tell(org, spans[1]);
    await told.sweep();
    await told.tell(org, { ...spans[0], responseId: `chatcmpl-${hex(8)}` });
    await told.sweep();
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    const alerts = await told.storedAlerts(org);
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
    for (const span of [spans[0], spans[3], spans[2]]) await told.tell(org, span);
    await told.sweep();
    const merged = (await told.storedAlerts(org)).map(({ merged_into }) => merged_into);
    expect(merged.map((id) => id === null)).toEqual([true, true, false]);
    // The span that was missing between them.
    await told.tell(org, { ...spans[1], text: 'fine' });
    await told.sweep();
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
    const [first, ...others] = await told.storedAlerts(org);
    expect(others.map(({ merged_into }) => merged_into)).toEqual([first?.id, first?.id]);
  });

  it('whose second one completes a call of the same request that is stored already: it is judged too', async () => {
    const org = await anOrganization(BANNED);
    const { outer, inner } = aPair();
    await told.tell(org, inner);
    expect(await alertsOfOnlyCall(org)).toEqual([]);
    await told.tell(org, { ...outer, text: WORD }, inner);
    expect(await alertsOfOnlyCall(org)).toEqual(['banned_patterns']);
  });

  it('are judged by the model of the one that counts, where the other one came with it', async () => {
    const org = await anOrganization(APPROVED);
    const { outer, inner } = aPair();
    await told.tell(org, { ...outer, model: 'gpt-4o-2024-08-06' }, inner);
    expect(await alertsOfOnlyCall(org)).toEqual([]);
    const late = aPair();
    const other = await anOrganization(APPROVED);
    await told.tell(other, late.inner);
    await told.tell(other, { ...late.outer, model: 'gpt-4o-2024-08-06' });
    expect(await alertsOfOnlyCall(other)).toEqual([]);
  });

  it.each([
    ['the request that completes it', (org: TestOrganization, spans: Told[]) => eachApart(org, spans, true)],
    [
      'the sweep',
      async (org: TestOrganization, spans: Told[]) => {
        await eachApart(org, spans, false);
        await told.sweep();
      },
    ],
  ])('that only together cost the threshold are judged in %s', async (_, send) => {
    // One report has the tokens; the other shows that they were of a more expensive tier.
    const org = await anOrganization(thresholdOf(10));
    await told.wantAlerts(org);
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
    expect((await told.messagesOf(org)).map(({ data }) => data.alert_id)).toEqual([alert?.id]);
  });

  it('of which the first one’s cost was below a threshold that was put later: nothing is judged again for a label', async () => {
    const org = await anOrganization();
    const { outer, inner } = aPair();
    await told.tell(org, { ...inner, costUsd: 3 });
    await putPolicy(org.orgDb, thresholdOf(100), 'key_test');
    await told.tell(org, { ...outer, project: 'late' });
    expect(await alertsOfOnlyCall(org)).toEqual([]);
    await told.tell(org, { ...againOf(inner), costUsd: 4 });
    expect(await alertsOfOnlyCall(org)).toEqual(['approval_required_threshold_cents']);
  });

  it('of which the other one names the project: the alert moves into the workspace', async () => {
    const org = await anOrganization(BANNED);
    const workspaceId = await api.addWorkspace(org.orgId, 'mine');
    const reader = await api.addKey(org.orgId, 'member', { workspaceId });
    const { outer, inner } = aPair();
    await told.tell(org, { ...inner, text: WORD });
    expect(await listAlerts(api, reader)).toEqual([]);
    await told.tell(org, { ...outer, project: 'mine' });
    expect(await listAlerts(api, reader)).toHaveLength(1);
  });

  it('are sent to a webhook once, by the event that counts', async () => {
    const org = await anOrganization(BANNED);
    await told.wantAlerts(org);
    const { outer, inner } = aPair();
    await told.tell(org, { ...outer, text: WORD });
    await told.tell(org, { ...inner, text: WORD });
    await told.tell(org, { ...aPair().outer, text: 'fine' });
    const messages = await told.messagesOf(org);
    const [alert] = await listAlerts(api, org.adminKey);
    expect(messages.map(({ data }) => data)).toEqual([
      expect.objectContaining({ alert_id: alert?.id, kind: 'policy', policy_type: 'banned_patterns' }),
    ]);
    expect(JSON.stringify(messages)).not.toContain(WORD);
  });
});

/** Another report of the same call. */
const againOf = (told: Told): Told => ({ ...told, spanId: hex(8), startMs: 9 });

async function eachApart(org: TestOrganization, spans: readonly Told[], sharesId: boolean): Promise<void> {
  const responseId = sharesId ? { responseId: `chatcmpl-${hex(8)}` } : {};
  for (const span of spans) await told.tell(org, { ...span, ...responseId });
}

/** A report among others of its call: its content, and the request that it comes in. */
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

describe('any reports of any calls, in any split into requests, with sweeps between them', () => {
  it('end in one alert a call and policy, on the event that counts, with the content of all of them', {
    timeout: 300_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(calls, fc.infiniteStream(fc.boolean()), async (drawn, sweeps) => {
        const org = await anOrganization(BANNED, APPROVED, thresholdOf(5));
        await told.wantAlerts(org);
        const requests = requestsOf(drawn);
        for (const spans of requests) {
          if (spans.length > 0) await told.tell(org, ...spans);
          if (sweeps.next().value) await told.sweepOnce();
        }
        await told.sweep();
        await told.checkAlerts(org);
      }),
      { numRuns: propertyRuns(10) },
    );
  });

  it('of events of wrappers and of spans that share an id, sent at the same time by many', async () => {
    const org = await anOrganization(BANNED, APPROVED, thresholdOf(5));
    await told.wantAlerts(org);
    for (let round = 0; round < 10; round += 1) {
      const responseId = `chatcmpl-${hex(8)}`;
      const event = anEvent({ response_id: responseId, request_id: undefined, payload: { prompt: WORD } });
      const { outer, inner } = aPair();
      await Promise.all([
        ingest(api, [event], org.ingestKey),
        told.tell(org, { ...outer, responseId, text: WORD }),
        told.tell(org, { ...inner, responseId, text: WORD, costUsd: 1 }),
        ingest(api, [event], org.ingestKey),
        told.tell(org, { ...outer, responseId, text: WORD }),
      ]);
    }
    await told.sweep();
    await told.checkAlerts(org);
    const live = (await told.storedCalls(org)).filter(({ superseded_by }) => superseded_by === null);
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
