import { afterAll, describe, expect, it } from 'vitest';
import {
  BodyReader,
  type BodyToRead,
  READ_IN_PLACE_BYTES_MAX,
} from '../../../adapters/ingestBodies/bodyReader.js';
import { type BodyKind, decodeBody } from '../../../adapters/ingestBodies/decodeBody.js';
import { DomainError } from '../../../domain/errors.js';
import type { MappedBatch } from '../../../domain/events/event.js';
import type { MapContext } from '../../../domain/events/itemFault.js';
import { microsFromDate, microsOfDay } from '../../../domain/period.js';
import { scannedPart } from '../../../domain/policies/patternSet.js';
import { encodeOtlp } from '../../../lab/bench/support/worstRequests/otlpBytes.js';
import { bodyOfShape, plainCall, text } from '../../../lab/bench/support/worstRequests/traceShapes.js';

const context: MapContext = {
  nowMicros: microsFromDate(new Date()),
  oldestMicros: microsOfDay('2020-01-01'),
  inferProvider: (model) => (model.startsWith('gpt-') ? 'openai' : undefined),
};

const reader = new BodyReader({ threads: 1 });
afterAll(() => reader.close());

function bodyToRead(kind: BodyKind, bytes: Buffer, overrides: Partial<BodyToRead> = {}): BodyToRead {
  return {
    kind,
    bytes: Buffer.from(bytes),
    orgId: 'one',
    context,
    chargeItems: async () => undefined,
    ...overrides,
  };
}

/** The same body, too large to be read in place. */
function enlarged(kind: BodyKind, bytes: Buffer): Buffer {
  const room = READ_IN_PLACE_BYTES_MAX;
  // Field 15 is none of an ExportTraceServiceRequest: its bytes are passed over.
  if (kind === 'otlp_protobuf') {
    const length = Buffer.from([(room & 0x7f) | 0x80, ((room >> 7) & 0x7f) | 0x80, room >> 14]);
    return Buffer.concat([bytes, Buffer.from([15 * 8 + 2]), length, Buffer.alloc(room)]);
  }
  return Buffer.concat([bytes, Buffer.alloc(room, kind === 'events_lines' ? '\n' : ' ')]);
}

/** A batch with the searched text of its prompts instead of the functions that read them, for comparing. */
const readable = ({ calls, ...rest }: MappedBatch) => ({
  ...rest,
  calls: calls.map((call) => ({ ...call, prompts: call.prompts().map(scannedPart) })),
});

const trace = bodyOfShape({
  name: 'all sorts',
  spans: 700,
  parent: (index) => (index === 0 ? undefined : Math.floor(index / 3)),
  attributes: (index) => {
    if (index % 11 === 0) return [text('http.route', '/')];
    if (index % 7 === 0)
      return [text('gen_ai.request.model', 'gpt-4o'), text('gen_ai.prompt.0.content', 'hi')];
    if (index % 5 === 0) return [...plainCall('no such'), text('gen_ai.system', 'nobody')];
    return [
      ...plainCall(),
      text('gen_ai.input.messages', JSON.stringify([{ role: 'user', content: `ä ${'x'.repeat(index)}` }])),
      text('__proto__', 'kept'),
      text('_service.environment', 'prod'),
    ];
  },
});
const event = {
  provider: 'openai',
  model: 'gpt-4o',
  timestamp: new Date().toISOString(),
  input_tokens: 1,
  payload: { prompt: 'hi', constructor: [null, { deep: 1.5 }] },
};
const observation = {
  type: 'observation-create',
  body: { id: 'o', type: 'GENERATION', model: 'gpt-4o', startTime: new Date().toISOString(), input: 'hi' },
};
const BODIES: [BodyKind, Buffer][] = [
  ['otlp_json', Buffer.from(JSON.stringify(trace))],
  ['otlp_protobuf', encodeOtlp(trace)],
  ['events_json', Buffer.from(JSON.stringify({ events: [event, { ...event, input_tokens: -1 }, null] }))],
  ['events_lines', Buffer.from(`${JSON.stringify(event)}\n \r\n${JSON.stringify({ ...event, model: 1 })}`)],
  ['observation', Buffer.from(JSON.stringify(observation))],
];

describe('a body that a thread reads', () => {
  it.each(BODIES)('becomes what it becomes in place: %s', async (kind, bytes) => {
    const large = enlarged(kind, bytes);
    expect(large.length).toBeGreaterThan(READ_IN_PLACE_BYTES_MAX);
    const expected = decodeBody(kind, bytes).map(context);
    expect(expected.calls.length).toBeGreaterThan(0);
    const charged: number[] = [];
    const read = await reader.read(
      bodyToRead(kind, large, {
        chargeItems: async (items) => {
          charged.push(items);
        },
      }),
    );
    expect(readable(read)).toEqual(readable(expected));
    expect(charged).toEqual([decodeBody(kind, bytes).items]);
  });

  it.each([
    ['otlp_json', 'invalid_json', '{"resourceSpans":['],
    ['otlp_json', 'invalid_body', '{"resourceSpans":[1]}'],
    ['otlp_json', 'json_too_deep', '['.repeat(65)],
    ['otlp_json', 'too_many_items', `{"resourceSpans":[${'{},'.repeat(10_000)}{}]}`],
    ['otlp_protobuf', 'invalid_protobuf', '\u0000'],
    ['events_json', 'invalid_body', '{}'],
    ['events_lines', 'invalid_json', '{}\n{'],
    ['observation', 'unknown_observation_type', '{"type":"other"}'],
  ] as const)('is refused as without a thread: %s with %s', async (kind, code, text) => {
    const bytes = Buffer.from(text);
    const failureOf = async (work: () => unknown) => {
      try {
        await work();
      } catch (error) {
        if (error instanceof DomainError)
          return { code: error.code, message: error.message, issues: error.issues };
        throw error;
      }
      return undefined;
    };
    const inPlace = await failureOf(() => decodeBody(kind, bytes).map(context));
    const byThread = await failureOf(() => reader.read(bodyToRead(kind, enlarged(kind, bytes))));
    expect(inPlace?.code).toBe(code);
    expect(byThread).toEqual(inPlace);
  });

  it('is not mapped when its items are refused, and the thread reads the next one', async () => {
    const [kind, bytes] = BODIES[0] as [BodyKind, Buffer];
    const refusal = new DomainError('rate_limited', 'too many');
    const refused = reader.read(
      bodyToRead(kind, enlarged(kind, bytes), {
        chargeItems: async () => {
          throw refusal;
        },
      }),
    );
    await expect(refused).rejects.toBe(refusal);
    expect((await reader.read(bodyToRead(kind, enlarged(kind, bytes)))).calls.length).toBeGreaterThan(0);
  });

  it('is refused when it takes too long, and another thread reads the next one', async () => {
    const hasty = new BodyReader({ threads: 1, answerMsMax: 1 });
    const [kind, bytes] = BODIES[0] as [BodyKind, Buffer];
    const late = { code: 'service_unavailable' };
    for (let attempt = 0; attempt < 2; attempt += 1)
      await expect(hasty.read(bodyToRead(kind, enlarged(kind, bytes)))).rejects.toMatchObject(late);
    await hasty.close();
  });

  it('waits for no more than one body of each other organization', async () => {
    const [kind, bytes] = BODIES[3] as [BodyKind, Buffer];
    const order: string[] = [];
    const read = async (orgId: string) => {
      await reader.read(bodyToRead(kind, enlarged(kind, bytes), { orgId }));
      order.push(orgId);
    };
    await Promise.all([read('many'), read('many'), read('many'), read('many'), read('few')]);
    expect(order.indexOf('few')).toBeLessThanOrEqual(2);
    expect(order).toHaveLength(5);
  });
});
