import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicId } from '../../../domain/ids.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { storeFindings } from '../../support/findings.js';
import { callMcp, connectMcp, MCP_WAYS, textOf } from '../../support/mcpClient.js';
import { startLimitedApi, untilRefused } from '../support/limits.js';
import { anEvent, ingest, send } from '../support/requests.js';

let api: TestApi;
let other: TestOrganization;
const open: Client[] = [];

beforeAll(async () => {
  api = await startTestApi();
  other = await api.addOrganization('Other');
  await ingest(api, [
    anEvent({ request_id: 'a', team_id: 'search', cost_usd: 0.25 }),
    anEvent({ request_id: 'b', team_id: 'growth', cost_usd: 0.5 }),
  ]);
  await ingest(api, [anEvent({ request_id: 'c', team_id: 'foreign' })], other.ingestKey);
});
afterAll(async () => {
  for (const client of open) await client.close();
  await api?.close();
});

async function connect(way: (typeof MCP_WAYS)[number], key: string): Promise<Client> {
  const client = await connectMcp(way, api.baseUrl, key);
  open.push(client);
  return client;
}

/** Sends a message without the SDK's client. */
const post = (json: unknown, headers: Record<string, string> = {}, key: string | null = api.adminKey) =>
  send(api, {
    method: 'POST',
    path: '/mcp',
    key,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(json),
  });

describe.each(MCP_WAYS)('the tools over %s', (way) => {
  it('are listed with a description, the schema of their arguments and that of their answer', async () => {
    const client = await connect(way, api.adminKey);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...['spend_summary', 'list_findings', 'get_finding', 'list_claims', 'get_claim', 'get_statement'],
      ...['list_events', 'price_of_model'],
    ]);
    for (const { name, description = '', inputSchema, outputSchema, annotations } of tools) {
      expect(description.length, name).toBeGreaterThan(60);
      expect(description, name).toMatch(/dollars/);
      expect(annotations?.readOnlyHint, name).toBe(true);
      expect(inputSchema, name).toMatchObject({ type: 'object', additionalProperties: false });
      expect(inputSchema.properties, name).not.toHaveProperty('format');
      expect(outputSchema, name).toHaveProperty('type', 'object');
    }
    expect(tools.find(({ name }) => name === 'get_statement')?.inputSchema.required).toEqual(['period']);
    expect(tools.find(({ name }) => name === 'price_of_model')?.inputSchema.required).toEqual(['model']);
  });

  it('answer as the API does, page by page', async () => {
    const client = await connect(way, api.adminKey);
    const first = await callMcp(client, 'list_events', { limit: 1 });
    const same = await api.get('/api/v1/events?limit=1');
    expect(first.structuredContent).toEqual(same.body);
    expect(JSON.parse(textOf(first))).toEqual(same.body);
    const cursor = first.structuredContent?.next_cursor;
    const second = await callMcp(client, 'list_events', { limit: 1, cursor });
    expect(second.structuredContent).toEqual((await api.get(`/api/v1/events?limit=1&cursor=${cursor}`)).body);
    expect(second.structuredContent?.events).not.toEqual(first.structuredContent?.events);
    const spend = await callMcp(client, 'spend_summary', { from: '2020-01-01', group_by: 'project' });
    expect(spend.structuredContent?.total_cost_usd).toBe(0.75);
    const price = await callMcp(client, 'price_of_model', { model: 'gpt-4o-mini', provider: 'openai' });
    const prices = await api.get('/api/v1/pricing?provider=openai&model=gpt-4o-mini');
    expect(price.structuredContent).toEqual(prices.body);
    expect(price.structuredContent?.count).toBeGreaterThan(0);
  });

  it('refuse a key without the scope with the reason, and its other tools still answer', async () => {
    const client = await connect(way, await api.addKey(api.orgId, 'member', { scopes: ['events:read'] }));
    const refused = await callMcp(client, 'list_findings', { direction: 'overcharge' });
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toMatch(
      /^forbidden: the key lacks the scope financial:read\. list_findings reads/,
    );
    expect(refused.structuredContent).toBeUndefined();
    expect((await callMcp(client, 'list_events')).structuredContent?.count).toBe(2);
  });

  it('show nothing of another organization', async () => {
    const [uuid = ''] = await storeFindings(api.orgDb, [{}]);
    const finding = publicId('fnd', uuid);
    const own = await connect(way, api.adminKey);
    expect((await callMcp(own, 'get_finding', { id: finding })).structuredContent?.id).toBe(finding);
    const foreign = await connect(way, other.adminKey);
    const answer = await callMcp(foreign, 'get_finding', { id: finding });
    expect([answer.isError, textOf(answer)]).toEqual([true, expect.stringMatching(/^not_found: /)]);
    expect(textOf(await callMcp(foreign, 'list_events'))).not.toMatch(/search|growth/);
  });

  it('name the argument and the remedy where a call is wrong', async () => {
    const client = await connect(way, api.adminKey);
    for (const [name, given, text] of [
      ['list_events', { limit: 5000 }, 'invalid_parameter: limit: must be a whole number from 1 to 1000'],
      ['list_events', { team: 'x' }, /^invalid_parameter: team: is not known here; give some of .*team_id/],
      ['list_events', { model: ['x'] }, 'invalid_parameter: model: must be a text, a number, true or false'],
      ['list_events', { format: 'csv' }, /^invalid_parameter: format: is not known here/],
      ['price_of_model', {}, 'missing_parameter: model: is required: give it'],
      ['get_statement', {}, 'missing_parameter: period: is required: a month such as 2026-10'],
      ['list_findings', { cursor: 'x' }, /^invalid_parameter: cursor: is not a cursor of this list/],
    ] as const) {
      const answer = await callMcp(client, name, given);
      expect(answer.isError, JSON.stringify(given)).toBe(true);
      if (typeof text === 'string') expect(textOf(answer)).toBe(text);
      else expect(textOf(answer)).toMatch(text);
    }
    await expect(callMcp(client, 'delete_everything')).rejects.toThrow(
      'name: there is no tool delete_everything; call one of spend_summary',
    );
  });

  it('cannot be reached with a key that is none', async () => {
    await expect(connectMcp(way, api.baseUrl, 'tu_live_none')).rejects.toThrow(/a valid API key is needed/);
  });
});

describe('POST /mcp', () => {
  it('restricts a workspace’s key to its project, and refuses it what is the whole organization’s', async () => {
    await ingest(api, [anEvent({ request_id: 'd', project_id: 'atlas' })]);
    const workspaceId = await api.addWorkspace(api.orgId, 'atlas');
    const client = await connect('http', await api.addKey(api.orgId, 'member', { workspaceId }));
    const { structuredContent } = await callMcp(client, 'list_events');
    expect(structuredContent?.events).toMatchObject([{ project_id: 'atlas' }]);
    expect(textOf(await callMcp(client, 'list_claims'))).toMatch(
      /^forbidden: the key is bound to a workspace/,
    );
  });

  it('needs the scope for payloads', async () => {
    const client = await connect('http', await api.addKey(api.orgId, 'member', { scopes: ['events:read'] }));
    expect(textOf(await callMcp(client, 'list_events', { include_payload: true }))).toMatch(
      /^forbidden: the key lacks the scope payloads:read/,
    );
  });

  it('counts each message as a read of its key', async () => {
    const limited = await startLimitedApi({ reads: { quota: 60, windowSeconds: 60, burst: 5 } });
    try {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'spend_summary' } };
      const { granted, refusal } = await untilRefused(() => limited.post('/mcp', message, limited.adminKey));
      expect([granted, refusal.status, refusal.body.code]).toEqual([5, 429, 'rate_limited']);
      expect((await limited.get('/api/v1/usage/summary', limited.adminKey)).status).toBe(429);
    } finally {
      await limited.close();
    }
  });

  it('answers a notification with 202, and an unknown version with 400', async () => {
    const note = await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect([note.status, note.bytes.length]).toEqual([202, 0]);
    const unknown = await post(
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { 'mcp-protocol-version': '1999-01-01' },
    );
    expect([unknown.status, unknown.body.error.code]).toEqual([400, -32_000]);
  });

  it('refuses lists of messages, other methods, foreign hosts and bodies over 1 MiB', async () => {
    expect((await post([{ jsonrpc: '2.0', id: 1, method: 'ping' }])).body.code).toBe('invalid_body');
    expect((await post({ id: 1, method: 'ping' })).body.message).toMatch(/^jsonrpc: must be 2.0/);
    const get = await send(api, { path: '/mcp' });
    expect([get.status, get.headers.allow]).toEqual([405, 'POST']);
    const foreign = await post({ jsonrpc: '2.0', id: 1, method: 'ping' }, { host: 'rebound.example' });
    expect(foreign.body.code).toBe('host_not_allowed');
    const large = { jsonrpc: '2.0', id: 1, method: 'ping', params: { filler: 'x'.repeat(1_048_576) } };
    expect((await post(large)).body.code).toBe('payload_too_large');
  });
});
