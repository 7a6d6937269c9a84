import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { decodeTraceAnswer, encodeLogsMessage } from '../support/otlpMessage.js';
import { aLog, send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const PROTOBUF_TYPE = { 'content-type': 'application/x-protobuf' };

describe('logs of coding agents', () => {
  it.each(['/v1/logs', '/api/v1/ingest/logs', '/api/v1/ingest/v1/logs'])(
    'come in at %s, as JSON and as protobuf, and are answered in the words of OTLP',
    async (path) => {
      const org = await api.addOrganization();
      const json = await send(api, {
        path,
        key: org.ingestKey,
        body: gzipSync(JSON.stringify(aLog({ 'session.id': 'one' }))),
        headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
      });
      expect([json.status, json.body]).toEqual([200, {}]);
      const body = encodeLogsMessage(aLog({ 'session.id': 'two' }));
      const protobuf = await send(api, { path, key: org.ingestKey, body, headers: PROTOBUF_TYPE });
      expect([protobuf.status, protobuf.bytes.length]).toEqual([200, 0]);
      const { events } = (await api.get('/api/v1/events', org.adminKey)).body;
      expect(events.map((event: { session_id: string }) => event.session_id).sort()).toEqual(['one', 'two']);
      expect(events[0]).toMatchObject({
        provider: 'anthropic',
        model: 'claude-sonnet-4-5',
        input_tokens: 100,
        output_tokens: 50,
        cost_source: 'computed',
      });
    },
  );

  it('that come twice count once', async () => {
    const org = await api.addOrganization();
    const request = {
      path: '/v1/logs',
      key: org.ingestKey,
      body: JSON.stringify(aLog()),
      headers: JSON_TYPE,
    };
    for (let time = 0; time < 2; time += 1) expect((await send(api, request)).status).toBe(200);
    expect((await api.get('/api/v1/events', org.adminKey)).body.count).toBe(1);
  });

  it('name what is wrong with a record and store the others', async () => {
    const org = await api.addOrganization();
    const wrong = aLog({ model: '' });
    wrong.resourceLogs.push(...aLog().resourceLogs);
    const sent = { path: '/v1/logs', key: org.ingestKey };
    const json = await send(api, { ...sent, body: JSON.stringify(wrong), headers: JSON_TYPE });
    expect([json.status, json.body]).toEqual([
      200,
      {
        partialSuccess: {
          rejectedLogRecords: '1',
          errorMessage: 'item 0 (log record "claude_code.api_request"): missing_field: model is missing',
        },
      },
    ]);
    const protobuf = await send(api, { ...sent, body: encodeLogsMessage(wrong), headers: PROTOBUF_TYPE });
    // The messages of all signals have the same fields.
    expect(decodeTraceAnswer(protobuf.bytes)).toMatchObject({ partialSuccess: { rejectedSpans: '1' } });
    expect((await api.get('/api/v1/events', org.adminKey)).body.count).toBe(1);
  });

  it('are shown in ingest health under the agent', async () => {
    const org = await api.addOrganization();
    const body = JSON.stringify(aLog());
    await send(api, { path: '/v1/logs', key: org.ingestKey, body, headers: JSON_TYPE });
    const { sources } = (await api.get('/api/v1/ingest/health', org.adminKey)).body;
    expect(sources).toMatchObject([
      { service: 'claude-code', scope: 'com.anthropic.claude_code.events', calls: 1 },
    ]);
  });
});
