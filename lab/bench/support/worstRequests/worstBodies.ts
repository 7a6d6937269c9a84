/** Ingest requests that are valid, or refused only after reading, and as expensive as their size allows. */
import { gzipSync } from 'node:zlib';
import { largeSpans, otherBodies } from './largeBodies.js';
import { encodeOtlp, type OtlpPair } from './otlpBytes.js';
import { bodyOf, bodyOfShape, plainCall, SPANS_MAX, text, traceShapes } from './traceShapes.js';
import { aSpan, BODY_BYTES_MAX, JSON_TYPE, PROTOBUF_TYPE, TRACE, type WorstRequest } from './worstRequest.js';

/** Every worst request. `bytes` limits the bodies of maximum size. */
export function worstRequests(bytes = BODY_BYTES_MAX): WorstRequest[] {
  return [...shapedTraces(), ...largeSpans(bytes), ...repeatedResources(bytes), ...otherBodies(bytes)];
}

function shapedTraces(): WorstRequest[] {
  return traceShapes().flatMap((shape): WorstRequest[] => [
    {
      name: `${shape.name}, JSON`,
      path: TRACE,
      contentType: JSON_TYPE,
      status: 202,
      accepted: shape.spans,
      make: () => Buffer.from(JSON.stringify(bodyOfShape(shape))),
    },
    {
      name: `${shape.name}, protobuf`,
      path: TRACE,
      contentType: PROTOBUF_TYPE,
      status: 202,
      make: () => encodeOtlp(bodyOfShape(shape)),
    },
    {
      name: `${shape.name}, protobuf, gzip`,
      path: TRACE,
      contentType: PROTOBUF_TYPE,
      contentEncoding: 'gzip',
      status: 202,
      make: () => gzipSync(encodeOtlp(bodyOfShape(shape))),
    },
  ]);
}

/** Resource attributes are repeated for each span, so a small body becomes large. */
function repeatedResources(bytes: number): WorstRequest[] {
  const kilobytes = (key: string) => [text(key, 'x'.repeat(250_000))];
  const resources: [name: string, attributes: () => OtlpPair[]][] = [
    ['a service block of 250 KB', () => kilobytes('_service.notes')],
    [
      'a service block of many keys',
      () => Array.from({ length: 20_000 }, (_, index) => text(`_service.k${index}`, '')),
    ],
    ['tool input and output of 250 KB', () => [...kilobytes('tool_input'), ...kilobytes('tool_output')]],
    [
      'a tool input of many numbers',
      () => [{ key: 'tool_input', value: { arrayValue: { values: Array(100_000).fill({ intValue: 1 }) } } }],
    ],
    [
      'labels at their limit',
      () =>
        ['session.id', 'user.id', 'project_id', 'batch_id', 'provider_account_id', 'provider_key_id'].map(
          (key) => text(key, 'x'.repeat(512)),
        ),
    ],
  ];
  return [
    ...resources.map(
      ([name, attributes]): WorstRequest => ({
        name: `10,000 spans of a resource with ${name}`,
        path: TRACE,
        contentType: JSON_TYPE,
        status: 202,
        accepted: SPANS_MAX,
        make: () =>
          Buffer.from(
            JSON.stringify(
              bodyOf(
                Array.from({ length: SPANS_MAX }, (_, index) =>
                  aSpan(index + 1, [...plainCall(), text('_service.environment', 'prod')]),
                ),
                attributes(),
              ),
            ),
          ),
      }),
    ),
    {
      name: '10,000 refused spans of as many services',
      path: TRACE,
      contentType: JSON_TYPE,
      status: 202,
      accepted: 0,
      make: () => {
        const resourceSpans = Array.from({ length: SPANS_MAX }, (_, index) => ({
          resource: { attributes: [text('service.name', `service ${index} ${'x'.repeat(200)}`)] },
          scopeSpans: [{ spans: [aSpan(index + 1, [text('gen_ai.request.model', 'm'.repeat(300))])] }],
        }));
        return Buffer.from(JSON.stringify({ resourceSpans }).slice(0, bytes));
      },
    },
  ];
}
