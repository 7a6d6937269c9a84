import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, aTime, ingest, type RawAnswer, send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const DAY = '2026-02-02';
const EXPORT = '/api/v1/events/export';
const WINDOW = `${EXPORT}?start=${DAY}&end=${DAY}`;

interface Exported {
  id: string;
  timestamp: string;
  request_id: string;
  payload: unknown;
}

function lines(text: string): Exported[] {
  expect(text === '' || text.endsWith('\n')).toBe(true);
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Exported);
}

/** Copies of one ingested event, a second apart from midnight on, written past the API: for exports of many rows. */
async function withManyEvents(count: number): Promise<TestOrganization> {
  const org = await api.addOrganization();
  await ingest(api, [anEvent({ timestamp: `${DAY}T00:00:00Z` })], org.ingestKey);
  const columns = await api.database.superuser.query<{ names: string }>(
    `select string_agg(quote_ident(column_name), ', ') as names from information_schema.columns
     where table_name = 'events' and column_name not in ('id', 'timestamp', 'api_key_hash')`,
  );
  const { names } = columns.rows[0] ?? { names: '' };
  await api.database.superuser.query(
    `insert into events (id, timestamp, api_key_hash, ${names})
     select overlay(id::text placing lpad(to_hex(n), 12, '0') from 25)::uuid, timestamp + n * interval '4 seconds', lpad(to_hex(n), 16, '0'), ${names}
     from events, generate_series(1, $2) n where org_id = $1`,
    [org.orgId, count - 1],
  );
  return org;
}

/** Connections of the API that are in use. */
const connectionsInUse = (): number => api.database.database.knex.client.pool.numUsed();

/** The most connections that were in use at any look within `milliseconds` from now. */
async function mostInUse(milliseconds: number): Promise<number> {
  const until = Date.now() + milliseconds;
  let most = connectionsInUse();
  while (Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    most = Math.max(most, connectionsInUse());
  }
  return most;
}

/** Opens an export and reads its first bytes; the rest stays unread until the test reads on. */
async function openExport(
  org: TestOrganization,
  path = WINDOW,
  encoding = 'identity',
): Promise<{ response: IncomingMessage; first: Buffer }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = httpRequest(api.baseUrl + path, {
      agent: false,
      headers: { authorization: `Bearer ${org.adminKey}`, 'accept-encoding': encoding },
    });
    request.on('response', resolve);
    request.on('error', reject);
    request.end();
  });
  const first = await new Promise<Buffer>((resolve) => response.once('data', resolve));
  response.pause();
  return { response, first };
}

/** Longer than a busy machine lets an export wait for its next page, milliseconds. */
const BUSY_MS = 30_000;

/**
 * Cuts the connection of the next statement that reads events while it waits for a lock, so that it is certainly
 * running.
 */
async function cutNextRead(start: () => Promise<unknown>): Promise<void> {
  const superuser = await api.database.superuser.connect();
  try {
    await superuser.query('begin; lock table events in access exclusive mode');
    const started = start();
    started.catch(() => undefined);
    // By another connection: within a transaction Postgres lists the backends that were there when it was first asked.
    const cut = () =>
      api.database.superuser.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and wait_event_type = 'Lock'`,
      );
    await expect.poll(async () => (await cut()).rowCount, { timeout: BUSY_MS }).toBeGreaterThan(0);
  } finally {
    await superuser.query('rollback');
    superuser.release();
  }
}

/** Reads an export to its end, or to where it breaks. */
async function readOn(
  response: IncomingMessage,
  first: Buffer,
): Promise<{ text: string; isComplete: boolean }> {
  const chunks = [first];
  response.on('data', (chunk: Buffer) => chunks.push(chunk));
  response.on('error', () => undefined);
  await new Promise((resolve) => {
    response.once('close', resolve);
    response.resume();
  });
  return { text: Buffer.concat(chunks).toString(), isComplete: response.complete };
}

describe('an export', () => {
  it('holds the events of the window, oldest first, each as the list shows it, one a line', async () => {
    const org = await api.addOrganization();
    const times = ['00:00:00Z', '23:59:59.999999Z', '12:00:00.5Z', '12:00:00.000001Z'];
    const events = times.map((time, index) =>
      anEvent({
        request_id: `r${index}`,
        timestamp: `${DAY}T${time}`,
        team_id: 'a "quoted"\ttext\\',
        payload: { n: index },
        cost_usd: 0.1 + index,
      }),
    );
    const outside = ['2026-02-01T23:59:59.999999Z', '2026-02-03T00:00:00Z'].map((timestamp) =>
      anEvent({ timestamp }),
    );
    await ingest(api, [...events, ...outside], org.ingestKey);
    const answer = await send(api, { path: WINDOW, key: org.adminKey });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/x-ndjson']);
    expect(answer.headers['transfer-encoding']).toBe('chunked');
    const exported = lines(answer.bytes.toString());
    expect(exported.map((event) => event.request_id)).toEqual(['r0', 'r3', 'r2', 'r1']);
    const listed = (await api.get(`/api/v1/events?since=${DAY}&until=${DAY}`, org.adminKey)).body.events;
    expect(exported).toEqual([...listed].reverse());
    const withPayload = await send(api, { path: `${WINDOW}&include_payload=true`, key: org.adminKey });
    const listedWhole = (
      await api.get(`/api/v1/events?since=${DAY}&until=${DAY}&include_payload=true`, org.adminKey)
    ).body.events;
    expect(lines(withPayload.bytes.toString())).toEqual([...listedWhole].reverse());
    expect(listedWhole[3].payload).toEqual({ n: 0 });
  });

  it('is one array of the same events with format=json, and nothing or [] where there are none', async () => {
    const org = await withManyEvents(3);
    const asLines = await send(api, { path: `${WINDOW}&format=jsonl`, key: org.adminKey });
    const asArray = await send(api, { path: `${WINDOW}&format=json`, key: org.adminKey });
    expect(asArray.headers['content-type']).toBe('application/json');
    expect(asArray.body).toEqual(lines(asLines.bytes.toString()));
    const empty = `${EXPORT}?start=2025-01-01&end=2025-01-02`;
    expect((await send(api, { path: empty, key: org.adminKey })).bytes.toString()).toBe('');
    expect((await send(api, { path: `${empty}&format=json`, key: org.adminKey })).body).toEqual([]);
  });

  it('comes in partitions of 500 rows, without a row lost or doubled at their edges', async () => {
    for (const count of [499, 500, 501, 1_000, 1_001]) {
      const org = await withManyEvents(count);
      const answer = await send(api, { path: WINDOW, key: org.adminKey });
      const exported = lines(answer.bytes.toString());
      const ids = exported.map((event) => event.id);
      expect([ids.length, new Set(ids).size], `${count}`).toEqual([count, count]);
      const times = exported.map((event) => event.timestamp);
      expect(times).toEqual([...times].sort());
      const array = await send(api, { path: `${WINDOW}&format=json`, key: org.adminKey });
      expect(array.body.length).toBe(count);
    }
  });

  it('holds every event whose payload is large, among small ones', async () => {
    const org = await withManyEvents(600);
    const large = 'x'.repeat(250_000);
    for (let sent = 0; sent < 80; sent += 20) {
      const events = Array.from({ length: 20 }, (_, index) =>
        anEvent({ timestamp: `${DAY}T12:00:00Z`, request_id: `large-${sent + index}`, payload: { large } }),
      );
      await ingest(api, events, org.ingestKey);
    }
    const answer = await send(api, { path: `${WINDOW}&include_payload=true`, key: org.adminKey });
    const exported = lines(answer.bytes.toString());
    expect([exported.length, new Set(exported.map(({ id }) => id)).size]).toEqual([680, 680]);
    expect(
      exported.filter(({ payload }) => JSON.stringify(payload) === JSON.stringify({ large })).length,
    ).toBe(80);
  });

  it('takes both bounds as inside, to the microsecond', async () => {
    const org = await api.addOrganization();
    const at = `${DAY}T10:00:00.000005Z`;
    await ingest(api, [anEvent({ timestamp: at })], org.ingestKey);
    const count = async (start: string, end: string) =>
      lines(
        (
          await send(api, { path: `${EXPORT}?start=${start}&end=${end}`, key: org.adminKey })
        ).bytes.toString(),
      ).length;
    expect(await count(at, `${DAY}T11:00:00Z`)).toBe(1);
    expect(await count(`${DAY}T09:00:00Z`, at)).toBe(1);
    expect(await count(`${DAY}T10:00:00.000006Z`, `${DAY}T11:00:00Z`)).toBe(0);
    expect(await count(`${DAY}T09:00:00Z`, `${DAY}T10:00:00.000004Z`)).toBe(0);
  });

  it('refuses a wrong window with a code for each fault; 366 days fit, a second more does not', async () => {
    const cases: [string, number, string?][] = [
      ['', 400, 'missing_parameter'],
      [`?start=${DAY}`, 400, 'missing_parameter'],
      [`?end=${DAY}`, 400, 'missing_parameter'],
      [`?start=today&end=${DAY}`, 400, 'invalid_parameter'],
      [`?start=${DAY}&end=${DAY}`, 200],
      [`?start=${DAY}T00:00:00Z&end=${DAY}`, 200],
      [`?start=${DAY}&end=${DAY}T00:00:00Z`, 400, 'invalid_range'],
      [`?start=${DAY}&end=${DAY}&format=csv`, 400, 'invalid_parameter'],
      [`?start=${DAY}&end=2026-02-01`, 400, 'invalid_range'],
      [`?start=${DAY}T10:00:00Z&end=${DAY}T10:00:00Z`, 400, 'invalid_range'],
      ['?start=2024-01-01T00:00:00Z&end=2025-01-01T00:00:00Z', 200],
      ['?start=2024-01-01T00:00:00Z&end=2025-01-01T00:00:01Z', 400, 'export_window_too_large'],
      ['?start=2020-01-01&end=2026-01-01', 400, 'export_window_too_large'],
      ['?start=2024-01-01&end=2024-12-31', 200],
      ['?start=2024-01-01&end=2025-01-01', 400, 'export_window_too_large'],
      ['?start=2024-01-01T00:00:00Z&end=2025-01-01', 400, 'export_window_too_large'],
      ['?start=2024-01-01&end=2025-01-01T00:00:00Z', 200],
      ['?start=2024-01-01T12:00:00Z&end=2024-12-31', 200],
    ];
    for (const [query, status, code] of cases) {
      const answer = await send(api, { path: EXPORT + query });
      expect([answer.status, answer.body.code], query).toEqual([status, code]);
    }
  });

  it('does not change its end while it is read: events that come in later stay out', async () => {
    const org = await withManyEvents(6_000);
    const before = Date.now();
    const { response, first } = await openExport(org);
    const snapshot = Date.parse(String(response.headers['x-export-snapshot']));
    expect(snapshot).toBeGreaterThanOrEqual(before);
    expect(snapshot).toBeLessThanOrEqual(Date.now());
    await ingest(api, [anEvent({ request_id: 'late', timestamp: `${DAY}T23:59:59Z` })], org.ingestKey);
    const { text, isComplete } = await readOn(response, first);
    expect(isComplete).toBe(true);
    const exported = lines(text);
    expect(exported.length).toBe(6_000);
    expect(exported.some((event) => event.request_id === 'late')).toBe(false);
    const again = lines((await send(api, { path: WINDOW, key: org.adminKey })).bytes.toString());
    expect(again.at(-1)?.request_id).toBe('late');
  });

  it('that loses its database connection in the middle is visibly broken, and the next one works', async () => {
    const org = await withManyEvents(20_000);
    // Compressed too it is more than sockets buffer: else a busy machine would cut an export that is already sent.
    await api.database.superuser.query(
      `update events set user_id = (select string_agg(md5(id::text || n), '') from generate_series(1, 32) n) where org_id = $1`,
      [org.orgId],
    );
    for (const [format, encoding] of [
      ['jsonl', 'identity'],
      ['json', 'identity'],
      ['jsonl', 'gzip'],
    ] as const) {
      const { response, first } = await openExport(org, `${WINDOW}&format=${format}`, encoding);
      let ending = Promise.resolve({ text: '', isComplete: true });
      await cutNextRead(() => {
        ending = readOn(response, first);
        return ending;
      });
      const { text, isComplete } = await ending;
      expect(isComplete, `${format} ${encoding}`).toBe(false);
      expect(text.length).toBeGreaterThan(0);
    }
    await expect.poll(connectionsInUse, { timeout: BUSY_MS }).toBe(0);
    const again = await send(api, { path: WINDOW, key: org.adminKey });
    expect([again.isComplete, lines(again.bytes.toString()).length]).toEqual([true, 20_000]);
  });

  it('that finds the database away before its first row is an ordinary 503, not a cut', async () => {
    const org = await withManyEvents(3);
    let asked = Promise.resolve<RawAnswer | undefined>(undefined);
    await cutNextRead(() => {
      asked = send(api, { path: WINDOW, key: org.adminKey });
      return asked;
    });
    const answer = await asked;
    expect([answer?.status, answer?.body.code]).toEqual([503, 'service_unavailable']);
    expect(Number(answer?.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('whose client disconnects or stalls holds no database connection', async () => {
    const org = await withManyEvents(20_000);
    const { response, first } = await openExport(org);
    expect(first.length).toBeGreaterThan(0);
    // The client does not read: the server fills the buffers page by page with pauses, and then stops querying. A
    // server that held its connection would never become idle.
    await expect.poll(() => mostInUse(200), { timeout: 300_000 }).toBe(0);
    response.destroy();
    await expect.poll(() => mostInUse(100), { timeout: 300_000 }).toBe(0);
    const other = await openExport(org);
    other.response.destroy();
    await expect.poll(() => mostInUse(100), { timeout: 300_000 }).toBe(0);
    expect((await api.get('/api/v1/events?limit=1', org.adminKey)).status).toBe(200);
  });

  it('of one organization holds nothing of another', async () => {
    const a = await withManyEvents(3);
    const b = await api.addOrganization();
    await ingest(api, [anEvent({ timestamp: aTime() })], b.ingestKey);
    expect(lines((await send(api, { path: WINDOW, key: b.adminKey })).bytes.toString())).toEqual([]);
    expect(lines((await send(api, { path: WINDOW, key: a.adminKey })).bytes.toString()).length).toBe(3);
  });
});
