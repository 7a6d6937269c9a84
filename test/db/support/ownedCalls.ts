import { createHash } from 'node:crypto';
import { listEvents } from '../../../db/events/events.js';
import { lockRecords, putRecords } from '../../../db/events/observationRecords.js';
import type { StoredEvent } from '../../../db/events/storedEvents.js';
import { foldUsage } from '../../../db/usage/rollups.js';
import { meterPoints } from '../../../usecases/events/meterPoints.js';
import { anEvent, aSpan, aTime, aTrace, ingest } from '../../api/support/requests.js';
import type { TestApi, TestOrganization } from '../../support/api.js';

export interface OwnedCalls {
  /** A call, and another one. */
  live: StoredEvent;
  other: StoredEvent;
}

/** The ids of the organization's one span with a response id. */
export function reportedSpan(marker: string): { traceId: string; spanId: string; responseId: string } {
  const digest = createHash('sha256').update(marker).digest('hex');
  return { traceId: digest.slice(0, 32), spanId: digest.slice(32, 48), responseId: `${marker}-response` };
}

export async function makeCalls(api: TestApi, org: TestOrganization, marker: string): Promise<void> {
  const labels = {
    team_id: marker,
    feature: marker,
    session_id: marker,
    user_id: marker,
    project_id: marker,
  };
  const first = anEvent({ ...labels, payload: { text: marker }, request_id: `${marker}-1` });
  await ingest(api, [first, anEvent({ ...labels, model: `${marker}-unpriced` })], org.ingestKey);
  await api.post('/api/v1/ingest/trace', twiceInstrumented(marker), org.ingestKey);
  const { traceId, spanId, responseId } = reportedSpan(marker);
  const span = aSpan({ 'gen_ai.response.id': responseId }, { traceId, spanId });
  await api.post('/api/v1/ingest/trace', aTrace(span), org.ingestKey);
  // Another call of its trace, so that there is something to compare.
  const sibling = aSpan({ 'gen_ai.response.id': `${responseId}-2` }, { traceId, spanId: siblingOf(spanId) });
  await api.post('/api/v1/ingest/trace', aTrace(sibling), org.ingestKey);
  await api.database.superuser.query(`insert into call_repairs (org_id, stage) values ($1, 'search')`, [
    org.orgId,
  ]);
  const refused = anEvent({ cost_usd: -1, _service: { name: marker } });
  await api.post('/api/v1/ingest/events', { events: [refused] }, org.ingestKey);
  await makeRecords(org, marker);
  await makeMetered(org, marker);
  await foldUsage(api.database.database, org.orgId);
  const blocked = { status: 'blocked', blocked_rule_id: marker, prevented_usd: 1, timestamp: aTime(9) };
  await ingest(api, [anEvent({ ...labels, ...blocked })], org.ingestKey);
  // Not folded: a read sums it itself.
  await ingest(api, [anEvent(labels)], org.ingestKey);
  await pairCalls(api, org, marker);
}

/** The pair key of the calls that carry the organization's own label. */
export const OWNED_PAIR_KEY = 7n;

/** Makes each call that carries the label one of a pair, by two scopes. */
async function pairCalls(api: TestApi, { orgId }: TestOrganization, marker: string): Promise<void> {
  const { superuser } = api.database;
  await superuser.query('update events set pair_key = $3 where org_id = $1 and team_id = $2', [
    orgId,
    marker,
    OWNED_PAIR_KEY,
  ]);
  await superuser.query(
    `insert into paired_reports (org_id, event_id, pair_key, start_at, end_at, service_name, scope_name, paired_with, paired_scope, cost_usd)
     select org_id, id, pair_key, timestamp, end_at, $2, concat($2::text, row_number() over (order by id)), id, $2, 1
     from events where org_id = $1 and team_id = $2`,
    [orgId, marker],
  );
  await superuser.query(
    'insert into instrumentation_scopes (org_id, service_name, scope_name) values ($1, $2, $2)',
    [orgId, marker],
  );
}

/** A generation and its trace that a client has reported in part; every organization's have the same ids. */
export const OWNED_RECORDS = [
  { kind: 'generation', id: 'generation-1', traceId: 'trace-1' },
  { kind: 'trace', id: 'trace-1', traceId: null },
] as const;
/** The key that reported them. */
export const RECORDS_KEY = 'key_records';

/** A point of a metric; the series of every organization has the same id. */
export const OWNED_POINT = {
  seriesId: '0'.repeat(31).concat('7'),
  isCumulative: true,
  amount: 12n,
  metric: 'claude_code.token.usage',
  measure: 'input',
} as const;

async function makeMetered({ orgDb }: TestOrganization, marker: string): Promise<void> {
  const hourMicros = BigInt(Math.floor(Date.now() / 3_600_000)) * 3_600_000_000n;
  await meterPoints(orgDb, null, [{ ...OWNED_POINT, serviceName: marker, hourMicros }]);
}

async function makeRecords({ orgDb }: TestOrganization, marker: string): Promise<void> {
  await lockRecords(orgDb, RECORDS_KEY, OWNED_RECORDS);
  const fields = { userId: [1, 0, marker] } as const;
  await putRecords(
    orgDb,
    RECORDS_KEY,
    OWNED_RECORDS.map((record) => ({ ...record, fields })),
  );
}

function siblingOf(spanId: string): string {
  return `${spanId.slice(0, -1)}${spanId.endsWith('1') ? '2' : '1'}`;
}

/** Two of the calls that carry the organization's own label. */
export async function findCalls({ orgDb }: TestOrganization, marker: string): Promise<OwnedCalls> {
  const { events } = await listEvents(orgDb, {}, { limit: 100, offset: 0 }, false);
  const [live, other] = events.filter((event) => event.teamId === marker) as [StoredEvent, StoredEvent];
  return { live, other };
}

/** Six calls, each reported by two scopes of one service, without an id that would prove it. */
function twiceInstrumented(marker: string) {
  const start = BigInt(Date.now() - 3_600_000) * 1_000_000n;
  const spans = (offset: bigint) =>
    Array.from({ length: 6 }, (_, index) => {
      const at = start + BigInt(index) * 60_000_000_000n + offset;
      return aSpan({}, { startTimeUnixNano: String(at), endTimeUnixNano: String(at + 1_000n) });
    });
  const scopes = [0n, 1_000_000n].map((offset) => ({
    scope: { name: `${marker}-scope-${offset}` },
    spans: spans(offset),
  }));
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: marker } }] };
  // Nothing names the process, and the two scopes are apart: they are not paired.
  return { resourceSpans: scopes.map((scope) => ({ resource, scopeSpans: [scope] })) };
}
