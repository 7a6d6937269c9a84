import { Anthropic } from '@anthropic-ai/sdk';
import { EventStreamCodec } from '@smithy/core/event-streams';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameReader } from '../../../sdk/js/src/clients/frames.js';
import { EventService } from '../../fakes/eventService.js';
import { propertyRuns } from '../../support/propertyRuns.js';

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes as Uint8Array),
  (text) => new TextEncoder().encode(text),
);

function frameOf(headers: Record<string, string>, json: object): Uint8Array {
  const entries = Object.entries(headers).map(([name, value]) => [name, { type: 'string', value }]);
  return codec.encode({
    headers: Object.fromEntries(entries),
    body: new TextEncoder().encode(JSON.stringify(json)),
  });
}

const eventFrame = (event: object) =>
  frameOf(
    { ':message-type': 'event', ':event-type': 'chunk', ':content-type': 'application/json' },
    { bytes: Buffer.from(JSON.stringify(event)).toString('base64') },
  );
const exceptionFrame = () =>
  frameOf(
    { ':message-type': 'exception', ':exception-type': 'throttlingException' },
    { message: 'Too many requests' },
  );

const MODEL = 'anthropic.claude-haiku-4-5-20251001-v1:0';
const start = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-haiku-4-5-20251001',
    content: [],
    stop_reason: null,
    usage: { input_tokens: 100, output_tokens: 1 },
  },
};
const EVENTS = [
  start,
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Grüße' } },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 20 } },
  { type: 'message_stop' },
];
const WHOLE = EVENTS.map(eventFrame);

/** Ways to read the body of a response to its end. */
const WAYS: Record<string, (response: Response) => Promise<unknown>> = {
  body: (response) => new Response(response.body).arrayBuffer(),
  'arrayBuffer()': (response) => response.arrayBuffer(),
  'blob()': async (response) => (await response.blob()).arrayBuffer(),
  'text()': (response) => response.text(),
  clone: (response) => response.clone().arrayBuffer(),
};

/** Reads a streamed answer of these frames, as Anthropic's client for Bedrock gets it; returns the event. */
async function readFrames(frames: readonly Uint8Array[], read: (response: Response) => Promise<unknown>) {
  const service = new EventService();
  const trueup = service.connect();
  const answer = () =>
    new Response(ReadableStream.from(frames), {
      headers: { 'content-type': 'application/vnd.amazon.eventstream' },
    });
  const client = trueup.observe(
    new Anthropic({
      apiKey: 'key',
      baseURL: 'https://bedrock-runtime.us-east-1.amazonaws.com',
      fetch: async () => answer(),
    }),
  );
  const response = await client.messages
    .create({ model: MODEL, max_tokens: 64, stream: true, messages: [{ role: 'user', content: 'Hello' }] })
    .asResponse();
  expect(await read(response)).toEqual(await read(answer()));
  expect(await trueup.close()).toBe(true);
  expect(service.events).toHaveLength(1);
  return service.events[0];
}

describe("frames of AWS's event stream in the JavaScript package", () => {
  it.each(Object.entries(WAYS))("are the usage of a call of Anthropic's on Bedrock (%s)", async (_, read) => {
    const event = await readFrames(WHOLE, read);
    expect(event).toMatchObject({
      provider: 'aws_bedrock',
      model: MODEL,
      response_id: 'msg_1',
      status: 'ok',
      stop_reason: 'end_turn',
      usage: { input_tokens: 100, output_tokens: 20 },
    });
    // Anthropic's id of the model, which Bedrock's prices do not have.
    expect(event).not.toHaveProperty('response_model');
  });

  it('are an error where one of them is an exception', async () => {
    const event = await readFrames(
      [eventFrame(start), exceptionFrame()],
      WAYS.body as () => Promise<unknown>,
    );
    expect(event).toMatchObject({ status: 'error', usage: { input_tokens: 100, output_tokens: 1 } });
  });

  it('are read wherever the chunks end, and no chunk is kept that its reader may change', () => {
    const event = fc.record({ n: fc.integer(), text: fc.string({ unit: 'binary', maxLength: 400 }) });
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 5 }), sizes, (events, lengths) => {
        const seen: string[] = [];
        const reader = new FrameReader((text) => seen.push(text));
        const body = Buffer.concat(events.map(eventFrame));
        for (let at = 0, round = 0; at < body.length; round += 1) {
          const length = lengths[round % lengths.length] as number;
          const chunk = new Uint8Array(body.subarray(at, at + length));
          reader.feed(chunk);
          chunk.fill(0);
          at += length;
        }
        expect(seen).toEqual(events.map((one) => JSON.stringify(one)));
      }),
      { numRuns: propertyRuns(100) },
    );
  });

  it('are an error event where they are exceptions, and nothing is read after bytes that are no frame', () => {
    const seen: string[] = [];
    const reader = new FrameReader((text) => seen.push(text));
    reader.feed(exceptionFrame());
    reader.feed(frameOf({ ':event-type': 'other' }, { other: 1 }));
    expect(seen).toEqual(['{"type":"error"}']);
    reader.feed(new TextEncoder().encode('<html>this is no frame</html>'));
    reader.feed(eventFrame({ n: 1 }));
    expect(seen).toEqual(['{"type":"error"}']);
  });
});
