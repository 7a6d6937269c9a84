import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../../platform/logger.js';
import type { TestOrganization } from '../../support/api.js';
import { ADMIN_KEYS } from '../../support/fetchedBills.js';
import { addressOf, bodyOf, markerOf, type OperationsPlace } from '../support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from '../support/operations.js';
import { anEvent, aSpan, aTrace, send } from '../support/requests.js';

/** Occurs in prompts, tools, labels and query strings, and must not occur in logs. */
const PROMPT = 'the-prompt-of-a-customer';
const SQL =
  /\b(?:select\s+\S+.*\bfrom\b|insert\s+into|update\s+\S+\s+set|delete\s+from|set_config|on conflict)\b/i;

const lines: string[] = [];
let place: OperationsPlace & { close(): Promise<void> };
let owner: TestOrganization;

beforeAll(async () => {
  const logger = createLogger({
    name: 'api',
    level: 'trace',
    destination: { write: (line) => lines.push(line) },
  });
  place = await startOperationsPlace({ logger });
  owner = await place.api.addOrganization('Owner');
});
afterAll(() => place.close());

/** The lines since the last call, each of which must be one JSON object on one line. */
function takeLines(): Record<string, unknown>[] {
  return lines.splice(0).map((line) => {
    expect(line.indexOf('\n'), line).toBe(line.length - 1);
    return JSON.parse(line);
  });
}

/** Checks that no line contains keys or parts of them, credentials, sent data or SQL statements. */
function expectClean(logged: readonly Record<string, unknown>[]): void {
  for (const line of logged) {
    const text = JSON.stringify(line);
    for (const secret of [owner.adminKey, owner.ingestKey, ADMIN_KEYS.openai, PROMPT, markerOf(owner)])
      expect(text).not.toContain(secret);
    expect(text).not.toMatch(/tu_(?:live|test)_[0-9A-Za-z]{10}_/);
    expect(text).not.toMatch(SQL);
  }
}

describe('the log', () => {
  it('has one line for each request of each operation, and in none a key, a text that was sent, or a statement', async () => {
    for (const [operationId, operation] of Object.entries(OPERATIONS)) {
      const request = await operation.request(place, owner);
      takeLines();
      const query = { ...request.query, unknown: PROMPT };
      for (const key of [owner.adminKey, owner.ingestKey, `${owner.adminKey.slice(0, -1)}x`, PROMPT]) {
        const answer = await send(place.api, {
          method: operation.method,
          path: addressOf(operation, { ...request, query }),
          key,
          ...bodyOf(request),
        });
        const logged = takeLines();
        expectClean(logged);
        const own = logged.filter(({ msg }) => msg === 'request');
        expect(own, operationId).toHaveLength(1);
        expect(own[0]).toMatchObject({ method: operation.method, status: answer.status, level: 'info' });
        expect(own[0]?.requestId).toBe(answer.headers['x-request-id']);
      }
    }
  }, 300_000);

  it('has no payload, tool or label of a call, taken or refused', async () => {
    const labels = { team_id: PROMPT, feature: PROMPT, session_id: PROMPT, user_id: PROMPT };
    const event = anEvent({
      ...labels,
      payload: { prompt: PROMPT, key: owner.adminKey },
      tool_input: { text: PROMPT },
      tool_output: { text: PROMPT },
    });
    const bodies: [string, string][] = [
      ['/api/v1/ingest/events', JSON.stringify({ events: [event, { ...event, cost_usd: -1 }, PROMPT] })],
      ['/api/v1/ingest/events', `{"events": [${PROMPT}`],
      [
        '/api/v1/ingest/trace',
        JSON.stringify(aTrace(aSpan({ 'gen_ai.prompt': PROMPT }), aSpan({ [PROMPT]: PROMPT }))),
      ],
      ['/api/v1/pricing/overrides', JSON.stringify({ [PROMPT]: PROMPT })],
    ];
    takeLines();
    for (const [path, body] of bodies) {
      await send(place.api, {
        path,
        key: owner.adminKey,
        body,
        headers: { 'content-type': 'application/json' },
      });
      const logged = takeLines();
      expect(logged.length).toBeGreaterThan(0);
      expectClean(logged);
    }
  });

  it.each([
    {
      table: 'event_payloads',
      path: '/api/v1/ingest/events',
      body: { events: [anEvent({ payload: { prompt: PROMPT } })] },
    },
    { table: 'workspaces', path: '/api/v1/workspaces', body: { name: PROMPT, project_id: PROMPT } },
  ])(
    'of a database failure at $table states what failed, where and in which request, and contains neither the statement nor the row',
    async ({ table, path, body }) => {
      const { superuser } = place.api.database;
      await superuser.query(`alter table ${table} add constraint refuse_all check (false) not valid`);
      takeLines();
      const answer = await send(place.api, {
        path,
        key: owner.adminKey,
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      });
      await superuser.query(`alter table ${table} drop constraint refuse_all`);
      expect(answer.status).toBe(500);
      const logged = takeLines();
      expectClean(logged);
      const ofRequest = { requestId: answer.headers['x-request-id'], orgId: owner.orgId };
      for (const line of logged) expect(line).toMatchObject(ofRequest);
      const [failure] = logged.filter(({ level }) => level === 'error');
      expect(failure?.err).toMatchObject({
        type: 'DatabaseError',
        code: '23514',
        constraint: 'refuse_all',
        stack: expect.stringMatching(/^\s+at /),
      });
      expect(answer.bytes.toString()).not.toMatch(new RegExp(`refuse_all|${table}`));
    },
  );

  it('gets no line from the content of a path, a header or an id', async () => {
    takeLines();
    const forged = '{"level":"error","msg":"forged"}';
    for (const request of [
      { path: `/api/v1/events/%0a${encodeURIComponent(forged)}` },
      { path: '/%0d%0a%0d%0aHTTP/1.1%20200' },
      { path: `/api/v1/${'%0a'.repeat(500)}` },
      { path: '/%e2%80%a8%1b[31m' },
      { path: '/api/v1/events', headers: { 'x-request-id': `a\tb ${forged}` } },
      { path: '/api/v1/events', headers: { 'user-agent': forged, referer: forged } },
      { method: 'TRACE', path: '/api/v1/events' },
    ]) {
      await send(place.api, request);
      const logged = takeLines();
      expect(logged.filter(({ msg }) => msg === 'request')).toHaveLength(1);
      for (const line of logged) {
        expect(line.msg).not.toBe('forged');
        expect(JSON.stringify(line).length).toBeLessThan(2_000);
      }
    }
  });
});
