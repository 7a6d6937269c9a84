import { randomUUID } from 'node:crypto';
import type { TestApi } from '../../support/api.js';
import { encodeTraceMessage } from './otlpMessage.js';
import {
  aLiteLlmPayload,
  anAttribute,
  anEvent,
  aSpan,
  aTime,
  aTrace,
  type RawAnswer,
  send,
} from './requests.js';

/** A call whose every field holds this text, sent to a server with a key. */
export type WayIn = (api: TestApi, key: string, text: string) => Promise<RawAnswer>;

const JSON_TYPE = { 'content-type': 'application/json' };

const spanWithText = (text: string) =>
  aTrace(
    aSpan(
      { 'gen_ai.input.messages': text, tool_input: text, tool_output: text, 'some.attribute': text },
      { events: [{ name: text, attributes: [anAttribute('text', text)] }] },
    ),
  );

const observationWithText = (text: string) => ({
  type: 'observation-create',
  body: {
    id: randomUUID(),
    type: 'GENERATION',
    model: 'gpt-4o',
    startTime: aTime(),
    latency: 10,
    input: text,
    output: { text },
    usage: { input: 10, output: 5 },
    metadata: { provider: 'openai', _service: { note: text } },
  },
});

/** An event of a wrapper that has the text in every field. */
export const eventWithText = (text: string, overrides: object = {}) =>
  anEvent({
    payload: { prompt: text, _service: { environment: 'production', note: text } },
    tool_input: text,
    tool_output: { text },
    ...overrides,
  });

/** Statuses of answers to stored calls. */
export const TAKEN = [202, 207];

/** Every way in, by its name. */
export const WAYS_IN: Readonly<Record<string, WayIn>> = waysIn();

function waysIn(): Record<string, WayIn> {
  const ways: Record<string, WayIn> = {};
  for (const path of ['/v1/traces', '/api/v1/ingest/trace', '/api/public/otel/v1/traces']) {
    ways[`${path} as JSON`] = (api, key, text) =>
      send(api, { path, key, headers: JSON_TYPE, body: JSON.stringify(spanWithText(text)) });
    ways[`${path} as protobuf`] = (api, key, text) =>
      send(api, {
        path,
        key,
        headers: { 'content-type': 'application/x-protobuf' },
        body: encodeTraceMessage(spanWithText(text)),
      });
  }
  ways['the observability webhook'] = (api, key, text) =>
    send(api, {
      path: '/api/v1/ingest/observability',
      key,
      headers: JSON_TYPE,
      body: JSON.stringify(observationWithText(text)),
    });
  ways['batches of older Langfuse clients'] = (api, key, text) =>
    send(api, {
      path: '/api/public/ingestion',
      key,
      headers: JSON_TYPE,
      body: JSON.stringify({
        batch: [
          {
            id: randomUUID(),
            type: 'generation-create',
            timestamp: aTime(),
            body: { ...observationWithText(text).body, traceId: randomUUID(), endTime: aTime() },
          },
        ],
      }),
    });
  ways['the callback of LiteLLM'] = (api, key, text) =>
    send(api, {
      path: '/api/v1/ingest/litellm',
      key,
      headers: JSON_TYPE,
      body: JSON.stringify([
        aLiteLlmPayload({ messages: [{ role: 'user', content: text }], request_tags: [text] }),
      ]),
    });
  ways['events of a wrapper'] = (api, key, text) =>
    send(api, {
      path: '/api/v1/ingest/events',
      key,
      headers: JSON_TYPE,
      body: JSON.stringify({ events: [eventWithText(text)] }),
    });
  ways['events a line'] = (api, key, text) =>
    send(api, {
      path: '/api/v1/ingest/events',
      key,
      headers: { 'content-type': 'application/x-ndjson' },
      body: `${JSON.stringify(eventWithText(text))}\n`,
    });
  return ways;
}

/** Tables of the organization in which any value holds the text. */
export async function tablesWith(
  text: string,
  { database }: Pick<TestApi, 'database'>,
  orgId: string,
): Promise<string[]> {
  const { rows } = await database.superuser.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const { rowCount } = await database.superuser.query(
      `select from ${name} t where org_id = $1 and strpos(to_jsonb(t)::text, $2) > 0 limit 1`,
      [orgId, text],
    );
    if (rowCount) found.push(name);
  }
  return found;
}
