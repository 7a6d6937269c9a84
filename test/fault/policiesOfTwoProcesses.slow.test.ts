import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { putPolicy, type Server } from '../api/support/policies.js';
import { anEvent, aSpan, aTrace, sendJson } from '../api/support/requests.js';
import { createTestOrganization, type TestOrganization } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { ApiProcesses } from './support/apiProcess.js';

const WORD = 'forbidden-word';
const BATCHES = 50;
const CALLS = 20;

let database: TestDatabase;
let processes: ApiProcesses;
let one: Server;
let other: Server;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 4 });
  processes = new ApiProcesses(database);
  [one, other] = (await Promise.all([processes.start(), processes.start()])).map(({ baseUrl }) => ({
    baseUrl,
    adminKey: '',
  })) as [Server, Server];
});
afterAll(async () => {
  await processes?.close();
  await database.close();
});

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

/** Twenty calls, every other one of which breaks the policy. */
const ofWrapper = () => ({
  path: '/api/v1/ingest/events',
  json: {
    events: Array.from({ length: CALLS }, (_, index) =>
      anEvent({ payload: { prompt: index % 2 === 0 ? `say ${WORD}` : 'fine' } }),
    ),
  },
});

/** The same calls reported by two spans each, of which either may contain the other. */
function ofExporter() {
  const start = BigInt(Date.now() - 3_600_000) * 1_000_000n;
  const spans = Array.from({ length: CALLS }, (_, index) => {
    const traceId = hex(16);
    const responseId = `chatcmpl-${hex(8)}`;
    const outer = hex(8);
    return [0, 1].map((depth) =>
      aSpan(
        {
          'gen_ai.response.id': responseId,
          'gen_ai.input.messages': index % 4 === depth * 2 ? `say ${WORD}` : 'fine',
        },
        {
          traceId,
          spanId: depth === 0 ? outer : hex(8),
          ...(depth === 0 ? {} : { parentSpanId: outer }),
          startTimeUnixNano: String(start + BigInt(depth) * 1_000_000n),
          endTimeUnixNano: String(start + 1_000_000_000n),
        },
      ),
    );
  });
  return { path: '/v1/traces', json: aTrace(...spans.flat()) };
}

async function countsOf({ orgId }: TestOrganization) {
  const { rows } = await database.superuser.query(
    `select
       (select count(*)::int from events where org_id = $1 and superseded_by is null) as calls,
       (select count(*)::int from events where org_id = $1) as events,
       (select count(*)::int from alerts where org_id = $1) as alerts,
       (select count(distinct event_id)::int from alerts a where org_id = $1 and merged_into is null and exists (
          select from events e where e.org_id = a.org_id and e.id = a.event_id and e.superseded_by is null)) as "flaggedCalls"`,
    [orgId],
  );
  return rows[0];
}

describe('two processes on one database', () => {
  it.each([
    ['events of a wrapper', ofWrapper, CALLS],
    ['two spans a call', ofExporter, CALLS * 2],
  ] as const)(
    `that get ${BATCHES} equal batches at once store each event and alert once: %s`,
    async (_, make, events) => {
      const org = await createTestOrganization(database.database);
      await putPolicy(one, org, 'banned_patterns', { regexes: [WORD] });
      const batch = make();
      const answers = await Promise.all(
        Array.from({ length: BATCHES }, (_, index) =>
          sendJson(index % 2 === 0 ? one : other, { ...batch, key: org.ingestKey }),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
      const { duplicates, accepted } = answers.reduce(
        (sum, { body }) => ({
          accepted: sum.accepted + body.accepted,
          duplicates: sum.duplicates + body.duplicates,
        }),
        { accepted: 0, duplicates: 0 },
      );
      expect([accepted, accepted - duplicates]).toEqual([BATCHES * events, events]);
      expect(await countsOf(org)).toEqual({
        calls: CALLS,
        events,
        alerts: CALLS / 2,
        flaggedCalls: CALLS / 2,
      });
    },
  );

  it('hold the next event by the policy that was put through either of them', async () => {
    const org = await createTestOrganization(database.database);
    const sendTo = (server: Server, prompt: string) =>
      sendJson(server, {
        path: '/api/v1/ingest/events',
        key: org.ingestKey,
        json: { events: [anEvent({ payload: { prompt } })] },
      });
    const expected: number[] = [];
    const seen: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      const [putAt, sentTo] = round % 2 === 0 ? [one, other] : [other, one];
      const before = (await countsOf(org)).alerts;
      await putPolicy(putAt, org, 'banned_patterns', { regexes: [`word-${round}-`] });
      await sendTo(sentTo, `word-${round}-`);
      await sendTo(sentTo, `word-${round - 1}-`);
      expected.push(1);
      seen.push((await countsOf(org)).alerts - before);
    }
    expect(seen).toEqual(expected);
    await putPolicy(one, org, 'banned_patterns', { regexes: [] });
    await sendTo(other, 'word-9-');
    expect((await countsOf(org)).alerts).toBe(10);
  });
});
