/** Bodies of maximum size with content that is expensive to read. */
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { encodeOtlp, type OtlpPair } from './otlpBytes.js';
import { bodyOf, plainCall, SPANS_MAX, text } from './traceShapes.js';
import {
  aSpan,
  BODY_BYTES_MAX,
  EVENTS,
  JSON_TYPE,
  OBSERVABILITY,
  PROTOBUF_TYPE,
  TRACE,
  type WorstRequest,
} from './worstRequest.js';

export function largeSpans(bytes: number): WorstRequest[] {
  const room = bytes - 2_000;
  const filled: [name: string, json: () => string][] = [
    ['an array of empty arrays', () => arrayOf('{"arrayValue":{}}', room)],
    ['an array of bare arrays', () => `{"arrayValue":{"values":[${repeat('[]', room - 30)}]}}`],
    ['an array of numbers', () => arrayOf('{"intValue":"1"}', room)],
    ['a map of many keys', () => mapOf(room)],
    ['a deep list, again and again', () => arrayOf(nested(14), room)],
    ['one long text', () => `{"stringValue":"${'a'.repeat(room - 30)}"}`],
    ['one long text of foreign characters', () => `{"stringValue":"${'ä'.repeat((room - 30) / 2)}"}`],
    ['one long text of escapes', () => `{"stringValue":"${'\\"'.repeat((room - 30) / 2)}"}`],
    ['JSON inside a text', () => `{"stringValue":${JSON.stringify(`[${repeat('[]', room / 2 - 60)}]`)}}`],
    ['messages inside a text', () => `{"stringValue":${JSON.stringify(messages(room))}}`],
  ];
  const spans = filled.map(
    ([name, value]): WorstRequest => ({
      name: `one span with ${name}, JSON`,
      path: TRACE,
      contentType: JSON_TYPE,
      status: 202,
      accepted: 1,
      make: () =>
        Buffer.from(oneSpanJson(name.startsWith('messages') ? 'gen_ai.input.messages' : 'filling', value())),
    }),
  );
  return [
    ...spans,
    {
      name: 'one span with an array of strings, protobuf',
      path: TRACE,
      contentType: PROTOBUF_TYPE,
      status: 202,
      make: () => encodeOtlp(bodyOf([aSpan(1, [...plainCall(), stringArray(900_000)])])),
    },
    {
      name: 'one span with many attributes, protobuf',
      path: TRACE,
      contentType: PROTOBUF_TYPE,
      status: 202,
      make: () => encodeOtlp(bodyOf([aSpan(1, [...plainCall(), ...manyAttributes(Math.floor(bytes / 24))])])),
    },
    {
      name: 'one span with an array of numbers, JSON, gzip',
      path: TRACE,
      contentType: JSON_TYPE,
      contentEncoding: 'gzip',
      status: 202,
      accepted: 1,
      make: () => gzipSync(oneSpanJson('filling', arrayOf('{"intValue":"1"}', room))),
    },
    {
      name: 'spans with payloads at their limit, JSON',
      path: TRACE,
      contentType: JSON_TYPE,
      status: 202,
      make: () =>
        Buffer.from(
          JSON.stringify(
            bodyOf(
              Array.from({ length: Math.floor(bytes / 262_000) }, (_, index) =>
                aSpan(index + 1, [...plainCall(), text('filling', '"\\'.repeat(65_000))]),
              ),
            ),
          ),
        ),
    },
    {
      name: 'spans with 1 KB each, JSON',
      path: TRACE,
      contentType: JSON_TYPE,
      status: 202,
      accepted: SPANS_MAX,
      make: () =>
        Buffer.from(
          JSON.stringify(
            bodyOf(
              Array.from({ length: SPANS_MAX }, (_, index) =>
                aSpan(index + 1, [...plainCall(), text('filling', 'a b '.repeat(250))]),
              ),
            ),
          ),
        ),
    },
  ];
}

export function otherBodies(bytes: number): WorstRequest[] {
  const trace = (name: string, status: number, make: () => string | Buffer): WorstRequest => ({
    name,
    path: TRACE,
    contentType: JSON_TYPE,
    status,
    make: () => Buffer.from(make()),
  });
  return [
    trace('resources that are numbers', 413, () => `{"resourceSpans":[${repeat('1', bytes - 30)}]}`),
    trace('resources that are empty', 413, () => `{"resourceSpans":[${repeat('{}', bytes - 30)}]}`),
    trace('spans that are numbers', 413, () =>
      JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: Array(BODY_BYTES_MAX / 4).fill(1) }] }] }),
    ),
    trace('nested too deeply', 400, () => '['.repeat(bytes - 10)),
    trace('no JSON at its end', 400, () => `[${repeat('[]', bytes - 30)}`),
    {
      ...trace('an inflated body of zeros', 400, () => gzipSync(Buffer.alloc(bytes - 10))),
      contentEncoding: 'gzip',
    },
    {
      ...trace('an inflated body that is too large', 413, () => gzipSync(Buffer.alloc(bytes * 8))),
      contentEncoding: 'gzip',
    },
    {
      name: 'empty lines, NDJSON',
      path: EVENTS,
      contentType: 'application/x-ndjson',
      status: 202,
      accepted: 0,
      make: () => Buffer.alloc(bytes - 10, 0x0a),
    },
    {
      name: '10,000 events, NDJSON',
      path: EVENTS,
      contentType: 'application/x-ndjson',
      status: 202,
      accepted: SPANS_MAX,
      make: () =>
        Buffer.from(Array.from({ length: SPANS_MAX }, () => JSON.stringify(anEvent(1_000))).join('\n')),
    },
    {
      name: '10,000 events, JSON',
      path: EVENTS,
      contentType: JSON_TYPE,
      status: 202,
      accepted: SPANS_MAX,
      make: () =>
        Buffer.from(JSON.stringify({ events: Array.from({ length: SPANS_MAX }, () => anEvent(1_000)) })),
    },
    {
      name: 'one event with a payload of the whole body',
      path: EVENTS,
      contentType: JSON_TYPE,
      status: 202,
      accepted: 1,
      make: () => {
        const { payload: _payload, ...event } = anEvent(0);
        return Buffer.from(
          `{"events":[${JSON.stringify(event).slice(0, -1)},"payload":${anyMap(bytes - 2_000)}}]}`,
        );
      },
    },
    {
      name: 'one observation of the whole body',
      path: OBSERVABILITY,
      contentType: JSON_TYPE,
      status: 202,
      accepted: 1,
      make: () => {
        const observation = {
          id: randomBytes(8).toString('hex'),
          type: 'GENERATION',
          model: 'gpt-4o',
          startTime: new Date().toISOString(),
          usage: { input: 1, output: 1 },
        };
        const head = JSON.stringify(observation).slice(0, -1);
        return Buffer.from(
          `{"type":"observation-create","body":${head},"input":[${repeat('{"text":"b"}', bytes - 2_000)}]}}`,
        );
      },
    },
  ];
}

function anEvent(payloadChars: number) {
  return {
    provider: 'openai',
    model: 'gpt-4o',
    timestamp: new Date().toISOString(),
    request_id: randomBytes(12).toString('hex'),
    input_tokens: 10,
    output_tokens: 5,
    payload: { prompt: 'a b '.repeat(payloadChars / 4) },
  };
}

/** The JSON of a span with one more attribute, whose value is given as JSON. */
function oneSpanJson(key: string, value: string): string {
  const mark = '"stringValue":"MARK"';
  const json = JSON.stringify(bodyOf([aSpan(1, [...plainCall(), text(key, 'MARK')])]));
  return json.replace(`{${mark}}`, () => value);
}

/** The text repeated as often as fits, separated by commas. */
function repeat(item: string, chars: number): string {
  return `${item},`.repeat(Math.floor(chars / (item.length + 1)) - 1) + item;
}

function arrayOf(item: string, chars: number): string {
  return `{"arrayValue":{"values":[${repeat(item, chars - 40)}]}}`;
}

function nested(levels: number): string {
  return '{"arrayValue":{"values":['.repeat(levels) + ']}}'.repeat(levels);
}

function mapOf(chars: number): string {
  const pairs = Array.from({ length: Math.floor(chars / 40) }, (_, index) => {
    return `{"key":"${index.toString(36)}","value":{"intValue":1}}`;
  });
  return `{"kvlistValue":{"values":[${pairs.join(',')}]}}`;
}

function anyMap(chars: number): string {
  const pairs = Array.from({ length: Math.floor(chars / 14) }, (_, index) => `"k${index.toString(36)}":[]`);
  return `{${pairs.join(',')}}`;
}

function messages(chars: number): string {
  return `[${repeat('{"role":"user","content":"hi"}', chars / 2)}]`;
}

function stringArray(items: number): OtlpPair {
  return { key: 'filling', value: { arrayValue: { values: Array(items).fill({ stringValue: '' }) } } };
}

function manyAttributes(number: number): OtlpPair[] {
  return Array.from({ length: number }, (_, index) => text(`a${index}`, ''));
}
