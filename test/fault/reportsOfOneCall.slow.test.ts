import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anEvent, aSpan, aTrace, sendJson } from '../api/support/requests.js';
import { createTestOrganization, type TestOrganization } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type ApiProcess, ApiProcesses } from './support/apiProcess.js';

const REPORTS = 40;

let database: TestDatabase;
let processes: ApiProcesses;
let servers: ApiProcess[];
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 4 });
  processes = new ApiProcesses(database);
  servers = await Promise.all([processes.start(), processes.start()]);
});
afterAll(async () => {
  await processes?.close();
  await database.close();
});

const hex = (bytes: number) => randomBytes(bytes).toString('hex');
const USAGE = { 'gen_ai.usage.input_tokens': 2_000, 'gen_ai.usage.output_tokens': 800 };

const FIRST_MS = Date.now() - 3_600_000;
const timeOf = (second: number) => new Date(FIRST_MS + second * 1_000).toISOString();

/** A report by a separate span, which starts some seconds after the first one. */
function bySpan(responseId: string, second: number) {
  const start = BigInt(Date.parse(timeOf(second))) * 1_000_000n;
  const times = { startTimeUnixNano: String(start), endTimeUnixNano: String(start + 800_000_000n) };
  const span = aSpan(
    { 'gen_ai.response.id': responseId, ...USAGE },
    { traceId: hex(16), spanId: hex(8), ...times },
  );
  return { path: '/api/v1/ingest/trace', json: aTrace(span) };
}

function byWrapper(responseId: string, second: number) {
  const event = anEvent({
    request_id: responseId,
    timestamp: timeOf(second),
    duration_ms: 800,
    input_tokens: 2_000,
    output_tokens: 800,
  });
  return { path: '/api/v1/ingest/events', json: { events: [event] } };
}

const ORDERS = {
  rising: (place: number) => place,
  falling: (place: number) => REPORTS - 1 - place,
  mixed: (place: number) => (place * 23) % REPORTS,
};

const serverOf = (place: number) => ({
  baseUrl: (servers[place % servers.length] as ApiProcess).baseUrl,
  adminKey: '',
});

async function send(
  org: TestOrganization,
  request: { path: string; json: object },
  place: number,
): Promise<void> {
  const { status, body } = await sendJson(serverOf(place), { ...request, key: org.ingestKey });
  expect([status, body.accepted]).toEqual([202, 1]);
}

async function readCalls({ adminKey }: TestOrganization) {
  const ask = async (path: string) => (await sendJson(serverOf(0), { path, key: adminKey })).body;
  const { events } = await ask('/api/v1/events?limit=1000');
  const all = await ask('/api/v1/events?limit=1000&include_superseded=true');
  const { call_count: calls, total_cost_usd: cost } = await ask('/api/v1/usage/summary');
  const named = all.events.flatMap((event: { superseded_by: string | null }) => event.superseded_by ?? []);
  return { events, stored: all.events.length, named: [...new Set(named)], calls, cost };
}

describe('forty reports of one call at two API processes', () => {
  it.each(
    Object.keys(ORDERS).flatMap((order) => [
      [order, 'one after the other'] as const,
      [order, 'at once'] as const,
    ]),
  )('with %s times, %s, count once, with the cost of one', async (order, mode) => {
    const org = await createTestOrganization(database.database);
    const id = `chatcmpl-${hex(8)}`;
    const second = ORDERS[order as keyof typeof ORDERS];
    const requests = Array.from({ length: REPORTS }, (_, place) =>
      (place % 3 === 0 ? byWrapper : bySpan)(id, second(place)),
    );
    if (mode === 'at once') await Promise.all(requests.map((request, place) => send(org, request, place)));
    else for (const [place, request] of requests.entries()) await send(org, request, place);
    const { events, stored, named, calls, cost } = await readCalls(org);
    expect([events.length, stored, calls, cost]).toEqual([1, REPORTS, 1, 0.013]);
    expect(named).toEqual([events[0].id]);
    expect(Date.parse(events[0].timestamp)).toBe(FIRST_MS);
  });
});
