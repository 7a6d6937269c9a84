import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AUDIT_ACTIONS } from '../../../domain/access/auditLog.js';
import { createLogger } from '../../../platform/logger.js';
import { AuthFailures, coarseNetwork } from '../../../usecases/access/keyUses.js';
import type { TestOrganization } from '../../support/api.js';
import { addressOf, bodyOf, makeEvent, type OperationsPlace } from '../support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from '../support/operations.js';

const PATH = '/api/v1/audit-log';

let place: OperationsPlace & { close(): Promise<void> };

beforeAll(async () => {
  place = await startOperationsPlace();
}, 300_000);
afterAll(() => place.close());

interface Row {
  seq: number;
  action: string;
  details: string;
  actor_id: string;
  request_id: string | null;
}

async function rowsOf(orgId: string): Promise<Row[]> {
  const { rows } = await place.api.database.superuser.query<Row>(
    'select seq::int, action, details, actor_id, request_id from audit_log where org_id = $1 order by seq',
    [orgId],
  );
  return rows;
}

const list = (query: string, key?: string) => place.api.get(`${PATH}?${query}`, key);

/** Rows except those of failed requests, which have no actor. */
const withoutFailures = (rows: Row[]) => rows.filter(({ action }) => action !== 'auth.failed');

/** A new connection has a sync open, which would be the answer. */
async function endOpenSyncs(orgId: string): Promise<void> {
  await place.api.database.superuser.query(
    `update sync_runs set status = 'succeeded', finished_at = now() where org_id = $1`,
    [orgId],
  );
}

async function send(operationId: string, owner: TestOrganization, key: string) {
  const operation = OPERATIONS[operationId];
  if (!operation) throw new Error(`test/api/support/operations.ts has no ${operationId}`);
  const request = await operation.request(place, owner);
  if (operationId === 'startBillingSync') await endOpenSyncs(owner.orgId);
  const before = withoutFailures(await rowsOf(owner.orgId));
  const { headers, body } = bodyOf(request);
  const response = await fetch(place.api.baseUrl + addressOf(operation, request), {
    method: operation.method,
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });
  await response.arrayBuffer();
  const after = withoutFailures(await rowsOf(owner.orgId));
  return {
    status: response.status,
    wanted: operation.status,
    requestId: response.headers.get('x-request-id'),
    added: after.slice(before.length),
  };
}

/** Questions that are sent by POST. */
const READS = ['mcp'];

const WRITES = Object.entries(OPERATIONS)
  .filter(([, { method, access }]) => method !== 'GET' && access !== 'public')
  .filter(([, { access }]) => access !== 'public' && access.scope !== 'ingest')
  // A key has no session that it could end; test/api/access/sessions.test.ts ends one.
  .filter(([operationId]) => operationId !== 'endSession' && !READS.includes(operationId))
  .map(([operationId]) => operationId);

describe('every operation of openapi.json that changes something, ingest aside', () => {
  it('is covered by this test', async () => {
    const { body } = await place.api.get('/openapi.json');
    const declared = Object.values(
      body.paths as Record<string, Record<string, { operationId?: string; security?: unknown[] }>>,
    )
      .flatMap((methods) => Object.entries(methods))
      .filter(([method]) => ['post', 'put', 'patch', 'delete'].includes(method))
      .flatMap(([, { operationId }]) => operationId ?? []);
    const ingest = Object.entries(OPERATIONS)
      .filter(([, { access }]) => access !== 'public' && access.scope === 'ingest')
      .map(([operationId]) => operationId);
    const apart = [...ingest, ...READS, 'createSession', 'endSession'];
    expect(declared.filter((name) => !apart.includes(name)).sort()).toEqual([...WRITES].sort());
  });

  it.each(WRITES)('%s leaves one row, by the key and the request that did it', async (operationId) => {
    const owner = await place.api.addOrganization();
    const { status, wanted, added, requestId } = await send(operationId, owner, owner.adminKey);
    expect(status).toBe(wanted);
    expect(added).toHaveLength(1);
    expect(Object.keys(AUDIT_ACTIONS)).toContain(added[0]?.action);
    expect(added[0]).toMatchObject({
      actor_id: `key_${owner.adminKey.split('_')[2]}`,
      request_id: requestId,
    });
    expect(added[0]?.details).not.toMatch(/tu_live_|sk-admin|credential.*:/i);
  });

  const REFUSED = WRITES.filter((name) => name !== 'endOwnSessions');
  it.each(REFUSED)('%s leaves none where it is refused', async (operationId) => {
    const owner = await place.api.addOrganization();
    const auditor = await place.api.addKey(owner.orgId, 'auditor');
    const { status, added } = await send(operationId, owner, auditor);
    const refusal = OPERATIONS[operationId]?.hiddenWithout === undefined ? 403 : 404;
    expect({ status, added }).toEqual({ status: refusal, added: [] });
  });
});

describe('a request that changes nothing', () => {
  it('leaves no row: one that is sent again with its Idempotency-Key, a run that is open, a month that is closed', async () => {
    const owner = await place.api.addOrganization();
    const post = (path: string, headers = {}) =>
      fetch(place.api.baseUrl + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${owner.adminKey}`,
          'content-type': 'application/json',
          ...headers,
        },
        body: path.endsWith('workspaces') ? '{"name":"once"}' : null,
      }).then(({ status }) => status);
    const once = { 'idempotency-key': 'sent-again' };
    expect([await post('/api/v1/workspaces', once), await post('/api/v1/workspaces', once)]).toEqual([
      201, 201,
    ]);
    const runs = '/api/v1/reconciliation/gap-explorer/run?period=7d';
    expect([await post(runs), await post(runs)]).toEqual([202, 202]);
    await makeEvent(place, owner, undefined, { timestamp: '2026-03-05T00:00:00Z' });
    const close = '/api/v1/periods/2026-03/close';
    expect([await post(close), await post(close)]).toEqual([200, 200]);
    const actions = (await rowsOf(owner.orgId)).map(({ action }) => action);
    expect(actions).toEqual(['workspace.created', 'gap_run.started', 'period.closed']);
  });
});

describe('entries of keys at providers', () => {
  it('leave a row that names those that were changed, and none where each is as it was', async () => {
    const owner = await place.api.addOrganization();
    const put = async (...names: string[]) => {
      const answer = await fetch(`${place.api.baseUrl}/api/v1/provider-keys`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${owner.adminKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          items: names.map((name, index) => ({
            provider: 'openai',
            provider_key_id: `key-${index}`,
            name,
            status: 'active',
          })),
        }),
      });
      expect(answer.status).toBe(200);
    };
    await put('a', 'b');
    await put('a', 'b');
    await put('a', 'c');
    const rows = await rowsOf(owner.orgId);
    expect(rows.map(({ details }) => JSON.parse(details).provider_keys)).toEqual([
      ['openai key-0', 'openai key-1'],
      ['openai key-1'],
    ]);
  });
});

describe('reading prompts and exporting calls', () => {
  it('leaves a row for each request, with how calls were chosen and none of their words', async () => {
    const owner = await place.api.addOrganization();
    const id = await makeEvent(place, owner);
    const marker = `owned-by-${owner.orgId.slice(0, 8)}`;
    const get = (path: string) => place.api.get(path, owner.adminKey);
    await get(`/api/v1/events?include_payload=true&feature=${marker}&since=2026-01-01`);
    await get(`/api/v1/events/${id}?include_payload=true`);
    await get('/api/v1/events/export?start=2026-11-01&end=2026-11-30&include_payload=true');
    const rows = await rowsOf(owner.orgId);
    expect(rows.map(({ action, details }) => [action, JSON.parse(details)])).toEqual([
      ['payload.read', { count: 1, filters: ['feature'], since: '2026-01-01T00:00:00Z' }],
      ['payload.read', {}],
      [
        'export.started',
        {
          start: '2026-11-01T00:00:00Z',
          end: '2026-12-01T00:00:00Z',
          format: 'jsonl',
          include_payload: true,
        },
      ],
    ]);
    expect(JSON.stringify(rows)).not.toContain(marker);
  });

  it('without prompts leaves no row, nor does a request for a missing or forbidden call', async () => {
    const owner = await place.api.addOrganization();
    const id = await makeEvent(place, owner);
    const noPayloads = await place.api.addKey(owner.orgId, 'auditor', { scopes: ['events:read'] });
    await place.api.get('/api/v1/events', owner.adminKey);
    await place.api.get(`/api/v1/events/${id}`, owner.adminKey);
    await place.api.get(`/api/v1/events/evt_${'0'.repeat(32)}?include_payload=true`, owner.adminKey);
    await place.api.get('/api/v1/events?include_payload=true', noPayloads);
    expect(await rowsOf(owner.orgId)).toEqual([]);
  });

  it('by a key of a workspace are recorded in the organization’s log too', async () => {
    const owner = await place.api.addOrganization();
    const workspaceId = await place.api.addWorkspace(owner.orgId, 'proj-a');
    const key = await place.api.addKey(owner.orgId, 'auditor', { workspaceId });
    expect((await place.api.get('/api/v1/events?include_payload=true', key)).status).toBe(200);
    expect(await rowsOf(owner.orgId)).toMatchObject([
      { action: 'payload.read', actor_id: `key_${key.split('_')[2]}` },
    ]);
    expect((await list('', key)).status).toBe(403);
  });
});

describe('a refused key', () => {
  const settled = (orgId: string, count: number) =>
    expect.poll(async () => (await rowsOf(orgId)).length).toBe(count);

  it('that exists is written down once a minute and reason, in its organization alone and without its secret', async () => {
    const [owner, other] = [await place.api.addOrganization(), await place.api.addOrganization()];
    // The end of a key is a checksum of the rest, so another whole key lends its secret.
    const [live, secret] = [owner.ingestKey.split('_')[2] ?? '', other.ingestKey.split('_')[3] ?? ''];
    const { composeKey } = await import('../../../domain/access/keyRules.js');
    const wrong = composeKey(live, secret.slice(0, 43));
    const expired = await place.api.addKey(owner.orgId, 'member', { expiresInMs: -1_000 });
    for (let time = 0; time < 5; time += 1) {
      expect((await place.api.get('/api/v1/events', wrong)).status).toBe(401);
      expect((await place.api.get('/api/v1/events', expired)).status).toBe(401);
    }
    await settled(owner.orgId, 2);
    const rows = await rowsOf(owner.orgId);
    expect(rows.map(({ action, details }) => [action, JSON.parse(details)])).toEqual([
      ['auth.failed', { reason: 'wrong_secret', count: 1, network: '127.0.0.0/24' }],
      ['auth.failed', { reason: 'expired', count: 1, network: '127.0.0.0/24' }],
    ]);
    const digest = createHash('sha256').update(secret.slice(0, 43)).digest('hex');
    expect(JSON.stringify(rows)).not.toMatch(new RegExp(`${secret.slice(0, 20)}|${digest.slice(0, 20)}`));
    expect(await rowsOf(other.orgId)).toEqual([]);
  });

  it('is written down with how often it was refused since, when the minute is over', async () => {
    const owner = await place.api.addOrganization();
    const failures = new AuthFailures(
      place.api.database.database,
      createLogger({ name: 'test', level: 'silent' }),
      150,
    );
    const failure = {
      key: { id: 'key_0123456789', orgId: owner.orgId },
      reason: 'revoked',
      address: undefined,
      requestId: null,
    } as const;
    for (let time = 0; time < 7; time += 1) failures.note(failure);
    await settled(owner.orgId, 2);
    expect((await rowsOf(owner.orgId)).map(({ details }) => JSON.parse(details).count)).toEqual([1, 6]);
  });

  it('is written down with how often it was refused also when the service ends before the minute is over', async () => {
    const owner = await place.api.addOrganization();
    const failures = new AuthFailures(
      place.api.database.database,
      createLogger({ name: 'test', level: 'silent' }),
    );
    const key = { id: 'key_0123456789', orgId: owner.orgId };
    for (let time = 0; time < 4; time += 1)
      failures.note({ key, reason: 'expired', address: undefined, requestId: null });
    await failures.settle();
    await failures.settle();
    expect((await rowsOf(owner.orgId)).map(({ details }) => JSON.parse(details).count)).toEqual([1, 3]);
  });

  it('is written down with its network, not with its address', () => {
    expect(coarseNetwork('203.0.113.77')).toBe('203.0.113.0/24');
    expect(coarseNetwork('2001:db8:1:2::/64')).toBe('2001:db8:1::/48');
    expect(coarseNetwork('0:0:0:0::/64')).toBe('0:0:0::/48');
  });
});

describe('GET /api/v1/audit-log', () => {
  let owner: TestOrganization;
  beforeAll(async () => {
    owner = await place.api.addOrganization();
    for (const name of ['one', 'two', 'three'])
      await place.api.post('/api/v1/workspaces', { name, project_id: name }, owner.adminKey);
    await place.api.post('/api/v1/keys', { name: 'fourth', role: 'auditor' }, owner.adminKey);
  });

  it('shows the newest first, with who did it and the head of the chain', async () => {
    const { status, body } = await list('', owner.adminKey);
    expect(status).toBe(200);
    expect(body.records.map((record: { seq: number }) => record.seq)).toEqual([4, 3, 2, 1]);
    expect(body.records[0]).toMatchObject({
      action: 'key.created',
      actor: { kind: 'key', id: `key_${owner.adminKey.split('_')[2]}`, name: 'admin' },
      subject: { type: 'key' },
    });
    expect(body.head).toEqual({ seq: 4, at: body.records[0].at, hash: body.records[0].hash });
    expect(body.records[0].prev_hash).toBe(body.records[1].hash);
  });

  it('can be verified by its readers: each hash is over the record and the hash before', async () => {
    const { body } = await list('', owner.adminKey);
    for (const record of body.records) {
      const [seconds, fraction = ''] = record.at.replace('Z', '').split('.');
      const micros = `${Date.parse(`${seconds}Z`) / 1000}${fraction.padEnd(6, '0')}`;
      const fields = {
        org_id: owner.orgId,
        action: record.action,
        actor_kind: record.actor.kind,
        actor_id: record.actor.id,
        subject_type: record.subject?.type ?? null,
        subject_id: record.subject?.id ?? null,
        details: JSON.stringify(record.details),
        request_id: record.request_id,
      };
      const text = `{"seq":${record.seq},"at":${micros},${JSON.stringify(fields).slice(1)}`;
      const hash = createHash('sha256')
        .update(Buffer.from(record.prev_hash, 'hex'))
        .update(text)
        .digest('hex');
      expect(hash).toBe(record.hash);
    }
  });

  it('finds by action, actor, subject and time', async () => {
    const seqs = async (query: string) =>
      (await list(query, owner.adminKey)).body.records.map((record: { seq: number }) => record.seq);
    const [newest, , , oldest] = (await list('', owner.adminKey)).body.records;
    expect(await seqs('action=key.created')).toEqual([4]);
    expect(await seqs('action=key.unknown')).toEqual([]);
    expect(await seqs(`actor=${newest.actor.id}`)).toEqual([4, 3, 2, 1]);
    expect(await seqs('actor=key_nobodyhere')).toEqual([]);
    expect(await seqs(`subject_type=workspace&subject_id=${oldest.subject.id}`)).toEqual([1]);
    expect(await seqs(`since=${newest.at}`)).toEqual([4]);
    expect(await seqs(`until=${oldest.at}`)).toEqual([1]);
    expect((await list(`since=${newest.at}&until=2020-01-01`, owner.adminKey)).body.code).toBe(
      'invalid_range',
    );
  });

  it('is paged by offset and by cursor', async () => {
    const first = await list('limit=3', owner.adminKey);
    expect(first.body).toMatchObject({ count: 3, offset: 0, has_more: true });
    expect(first.headers.get('link')).toContain('rel="next"');
    const next = await list(`limit=3&cursor=${first.body.next_cursor}`, owner.adminKey);
    expect(next.body).toMatchObject({ count: 1, has_more: false, next_cursor: null, records: [{ seq: 1 }] });
    expect((await list('limit=2&offset=3', owner.adminKey)).body.records).toMatchObject([{ seq: 1 }]);
    expect((await list('cursor=x', owner.adminKey)).body.code).toBe('invalid_parameter');
  });

  it('is a table with format=csv', async () => {
    const response = await fetch(`${place.api.baseUrl}${PATH}?format=csv`, {
      headers: { authorization: `Bearer ${owner.adminKey}` },
    });
    const lines = (await response.text()).split('\r\n');
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="audit-log.csv"');
    expect(lines[0]).toBe(
      'seq,at,action,actor_kind,actor_id,actor_name,subject_type,subject_id,details,request_id,prev_hash,hash',
    );
    expect(lines).toHaveLength(6);
    expect(lines[1]).toMatch(/^4,2\d{3}-.*,key\.created,key,key_/);
  });

  it('is for auditors and admins of the whole organization, each of its own', async () => {
    const auditor = await place.api.addKey(owner.orgId, 'auditor');
    const ingest = await list('', owner.ingestKey);
    expect((await list('', auditor)).body.records).toHaveLength(4);
    expect(ingest.status).toBe(403);
    expect((await list('', (await place.api.addOrganization()).adminKey)).body).toMatchObject({
      records: [],
      head: null,
      count: 0,
    });
  });
});
