import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { encodeTraceMessage } from '../support/otlpMessage.js';
import { aSpan, aTrace, type RawAnswer, type RawRequest, send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const TRACE = '/api/v1/ingest/trace';
const spans = aTrace(aSpan({}), aSpan({}));
const text = JSON.stringify(spans);

/** A request of each kind that the short route answers, good and bad. */
const REQUESTS: Readonly<Record<string, RawRequest>> = {
  'a trace as JSON': { path: TRACE, body: text, headers: JSON_TYPE },
  'a trace at the alias': { path: `${TRACE}/v1/traces`, body: text, headers: JSON_TYPE },
  'a trace at the standard path': { path: '/v1/traces', body: text, headers: JSON_TYPE },
  'a trace in chunks': { path: TRACE, body: [Buffer.from(text)], headers: JSON_TYPE },
  'a compressed trace': {
    path: TRACE,
    body: gzipSync(text),
    headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
  },
  'a trace as protobuf': {
    path: '/v1/traces',
    body: encodeTraceMessage(spans),
    headers: { 'content-type': 'application/x-protobuf' },
  },
  'a trace with a bad span': {
    path: TRACE,
    body: JSON.stringify(aTrace(aSpan({}), aSpan({ 'gen_ai.request.model': 'm'.repeat(5_000) }))),
    headers: JSON_TYPE,
  },
  'logs without a record': { path: '/v1/logs', body: '{"resourceLogs":[]}', headers: JSON_TYPE },
  'events of a wrapper': { path: '/api/v1/ingest/events', body: '{"events":[{}]}', headers: JSON_TYPE },
  'an observation of another type': {
    path: '/api/v1/ingest/observability',
    body: '{"type":"trace-create"}',
    headers: JSON_TYPE,
  },
  'no JSON': { path: TRACE, body: '{', headers: JSON_TYPE },
  'an empty body': { path: TRACE, body: '', headers: JSON_TYPE },
  'another media type': { path: TRACE, body: text, headers: { 'content-type': 'text/csv' } },
  'another encoding': { path: TRACE, body: text, headers: { ...JSON_TYPE, 'content-encoding': 'br' } },
  'an unknown key': { path: TRACE, body: text, headers: JSON_TYPE, key: 'tu_live_nothing' },
  'a key in another scheme': {
    path: TRACE,
    body: text,
    key: null,
    headers: { ...JSON_TYPE, authorization: 'Basic eDp5' },
  },
  'a request over TLS at the proxy': {
    path: TRACE,
    body: text,
    headers: { ...JSON_TYPE, 'x-forwarded-proto': 'https' },
  },
  'a request with an id': { path: TRACE, body: text, headers: { ...JSON_TYPE, 'x-request-id': 'mine-1' } },
};

/** An answer without the parts that differ between any two. */
function comparable({ status, headers, bytes, isComplete }: RawAnswer) {
  const { date: _, 'x-request-id': id, ...rest } = headers;
  const body = bytes.toString('latin1').replaceAll(String(id), 'id');
  const { 'content-length': length, ...fields } = rest;
  return { status, fields, body, isMeasured: length === String(bytes.length), isComplete };
}

describe('a request that stores calls', () => {
  it.each(Object.entries(REQUESTS))(
    'is answered alike by the short route and, with a query, by the whole pipeline: %s',
    async (_, request) => {
      // The first answer differs: its calls are no duplicates.
      await send(api, request);
      const short = await send(api, request);
      const whole = await send(api, { ...request, path: `${request.path}?a=1` });
      expect(comparable(short)).toEqual(comparable(whole));
    },
  );

  it('of a client that disconnects before the answer leaves the server at work', async () => {
    const request = { path: TRACE, body: text, headers: JSON_TYPE };
    const { port, hostname } = new URL(api.baseUrl);
    for (let turn = 0; turn < 5; turn += 1) {
      const socket = connect(Number(port), hostname);
      socket.write(
        `POST ${TRACE} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${api.adminKey}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
        () => setImmediate(() => socket.destroy()),
      );
      await new Promise((resolve) => socket.once('close', resolve));
    }
    expect((await send(api, request)).status).toBe(202);
  });

  it('stops with its problem when the key is refused, before its body is read', async () => {
    const head = { ...JSON_TYPE, 'content-length': '1000000' };
    const answer = await send(api, { path: TRACE, key: 'tu_live_nothing', headers: head, body: 'x' });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toContain('Bearer');
    expect(answer.body.code).toBe('unauthenticated');
  });
});
