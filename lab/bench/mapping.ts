/**
 * Measures decoding and mapping in microseconds per span on one core, from OTLP JSON text and from protobuf bytes.
 * `npx tsx lab/bench/mapping.ts`; ratio = time of a span ÷ the 15 µs that ingest allows for it.
 */
import protobuf from 'protobufjs';
import { decodeTraceRequest } from '../../adapters/otlp/protobuf.js';
import { mapOtlpRequest, type OtlpRequest } from '../../domain/events/otlpSpans.js';
import { apiKeyHash, eventId, resolveCalls } from '../../domain/events/resolveCalls.js';
import { OTLP_PROTO } from '../../test/adapters/otlp/otlpProto.js';

const SPANS = 20;
const ROUNDS = 3_000;
/** Maximum time of mapping a span; ratios refer to it. */
const SPAN_MICROS_MAX = 15;
const START = 1_790_000_000_000_000_000n;

function attribute(key: string, value: string | number) {
  return { key, value: typeof value === 'string' ? { stringValue: value } : { intValue: value } };
}

function request(): OtlpRequest {
  const spans = Array.from({ length: SPANS }, (_, index) => ({
    traceId: `5b8efff798038103d269b633813fc6${(index + 16).toString(16)}`,
    spanId: `eee19b7ec3c1b1${(index + 16).toString(16)}`,
    parentSpanId: 'eee19b7ec3c1b100',
    name: 'chat gpt-4o',
    kind: 3,
    startTimeUnixNano: String(START + BigInt(index) * 1_000_000n),
    endTimeUnixNano: String(START + BigInt(index) * 1_000_000n + 1_234_567_890n),
    attributes: [
      attribute('gen_ai.operation.name', 'chat'),
      attribute('gen_ai.provider.name', 'openai'),
      attribute('gen_ai.request.model', 'gpt-4o'),
      attribute('gen_ai.response.model', 'gpt-4o-2024-08-06'),
      attribute('gen_ai.response.id', `chatcmpl-9J3uIL87gldCFtiIbyaOvTeYBRA3l${index}`),
      attribute('gen_ai.usage.input_tokens', 1200),
      attribute('gen_ai.usage.output_tokens', 300),
      attribute('gen_ai.usage.cache_read.input_tokens', 1000),
      { key: 'gen_ai.response.finish_reasons', value: { arrayValue: { values: [{ stringValue: 'stop' }] } } },
      attribute('server.address', 'api.openai.com'),
      attribute('session.id', `session-${index % 7}`),
      attribute('gen_ai.request.temperature', 1),
    ],
    status: {},
  }));
  return {
    resourceSpans: [
      {
        resource: {
          attributes: [attribute('service.name', 'shop'), attribute('deployment.environment.name', 'prod')],
        },
        scopeSpans: [{ scope: { name: '@example/instrumentation', version: '1.0.0' }, spans }],
      },
    ],
  };
}

const context = {
  nowMicros: START / 1000n + 3_600_000_000n,
  oldestMicros: 1_577_836_800_000_000n,
  inferProvider: () => undefined,
};

/** The fastest of twenty runs in microseconds per span, since other runs share the machine. */
function measure(name: string, work: () => unknown): void {
  for (let round = 0; round < ROUNDS / 3; round += 1) work();
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 20; run += 1) {
    const start = process.hrtime.bigint();
    for (let round = 0; round < ROUNDS / 20; round += 1) work();
    const nanos = Number(process.hrtime.bigint() - start);
    best = Math.min(best, nanos / (ROUNDS / 20) / SPANS / 1000);
  }
  const ratio = (best / SPAN_MICROS_MAX).toFixed(2);
  console.log(
    `${name.padEnd(24)} ${best.toFixed(2)} us/span  ${(best * SPANS).toFixed(0)} us/request  ratio=${ratio}`,
  );
}

const sample = request();
const text = JSON.stringify(sample);
const type = protobuf.parse(OTLP_PROTO, { keepCase: false }).root.lookupType('ExportTraceServiceRequest');
const bytes = Buffer.from(
  type
    .encode(
      type.fromObject(
        JSON.parse(text, (key, value) =>
          ['traceId', 'spanId', 'parentSpanId'].includes(key) ? Buffer.from(value, 'hex') : value,
        ),
      ),
    )
    .finish(),
);
console.log(`${SPANS} spans of 12 attributes: ${text.length} bytes of JSON, ${bytes.length} of protobuf`);
measure('JSON.parse', () => JSON.parse(text));
measure('protobuf, this reader', () => decodeTraceRequest(bytes));
measure('protobuf, protobufjs', () => type.toObject(type.decode(bytes), { longs: String, oneofs: true }));
measure('map', () => mapOtlpRequest(sample, context));
measure('JSON.parse and map', () => mapOtlpRequest(JSON.parse(text), context));
measure('protobuf and map', () => mapOtlpRequest(decodeTraceRequest(bytes), context));
const { calls, links } = mapOtlpRequest(sample, context);
measure('resolve', () => resolveCalls(calls, links));
measure('hash and id', () => calls.map((call) => eventId(call, apiKeyHash('key_0123456789', call))));
