import { describe, expect, it } from 'vitest';
import { PAYLOAD_BYTES_MAX, REPEATED_BYTES_MAX } from '../../../domain/events/event.js';
import { mapOtlpRequest } from '../../../domain/events/otlpSpans.js';
import { threadCpuMs } from '../../support/threadCpu.js';
import { aSpan, callOf, context, LEAST, requestOf } from './support.js';

const long = 'x'.repeat(REPEATED_BYTES_MAX);

describe('an attribute of a resource or scope that applies to all its spans', () => {
  it('is kept with each call while it is short', () => {
    const call = callOf({
      attributes: { ...LEAST, '_service.sdk': 'js' },
      scopeAttributes: { '_service.region': 'eu' },
      resource: {
        '_service.region': 'us',
        '_service.name': 'shop',
        tool_input: { a: 1 },
        tool_output: 'done',
      },
    });
    expect(call.service).toEqual({ region: 'eu', name: 'shop', sdk: 'js' });
    expect(call).toMatchObject({ toolInput: { a: 1 }, toolOutput: 'done' });
  });

  it('is kept as its size where it is long, and its labels are read', () => {
    const call = callOf({
      attributes: { ...LEAST, '_service.sdk': 'js' },
      resource: {
        '_service.notes': long,
        '_service.environment': 'prod',
        '_service.provider_key_id': 'k-1',
        tool_input: long,
        tool_output: [long],
      },
    });
    const note = (bytes: number) => ({ _truncated: true, bytes });
    const bytes = JSON.stringify({ notes: long, environment: 'prod', provider_key_id: 'k-1' }).length;
    expect(call).toMatchObject({ environment: 'prod', providerKeyId: 'k-1' });
    expect(call.service).toEqual({ ...note(bytes), sdk: 'js', environment: 'prod' });
    expect(call.toolInput).toEqual(note(long.length + 2));
    expect(call.toolOutput).toEqual(note(long.length + 4));
  });

  it('does not shorten the attributes of the span itself', () => {
    const own = 'y'.repeat(PAYLOAD_BYTES_MAX - 100);
    const call = callOf({
      attributes: { ...LEAST, '_service.notes': own, tool_input: own },
      resource: { '_service.notes': long, tool_input: long },
    });
    expect(call.toolInput).toBe(own);
    expect(call.service).toMatchObject({ notes: own });
  });

  it('costs the same for many spans whatever its size', () => {
    const attributes = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, index) => [`_service.k${index}`, 'v']),
    );
    const resource = {
      ...attributes,
      tool_input: Array(100_000).fill(1),
      'gen_ai.system': 'openai'.padEnd(1_000_000),
    };
    const spans = Array.from({ length: 5_000 }, () =>
      aSpan({
        attributes: {
          'gen_ai.request.model': 'gpt-4o',
          'gen_ai.usage.input_tokens': 1,
          '_service.environment': 'prod',
        },
      }),
    );
    const request = requestOf(spans, { resource });
    const before = threadCpuMs();
    const { calls, rejections } = mapOtlpRequest(request, context);
    expect(calls.length + rejections.length).toBe(5_000);
    // Copying it for each span took a minute.
    expect(threadCpuMs() - before).toBeLessThan(3_000);
  });

  it('costs what it has where the service block comes in many parts', () => {
    const parts = Array.from({ length: 20_000 }, (_, index) => ({
      key: '_service',
      value: { kvlistValue: { values: [{ key: `k${index}`, value: { intValue: 1 } }] } },
    }));
    const before = threadCpuMs();
    const { service } = callOf({
      attributes: [
        ...parts,
        { key: 'gen_ai.system', value: { stringValue: 'openai' } },
        { key: 'gen_ai.request.model', value: { stringValue: 'gpt-4o' } },
      ],
    });
    expect(Object.keys(service as object)).toHaveLength(20_000);
    expect(threadCpuMs() - before).toBeLessThan(2_000);
  });
});

describe('a body of another form', () => {
  it('is refused with a few of its faults, however many there are', () => {
    const request = { resourceSpans: Array(100_000).fill(1) };
    expect(() => mapOtlpRequest(request, context)).toThrow(
      expect.objectContaining({ code: 'invalid_body', issues: expect.objectContaining({ length: 20 }) }),
    );
  });
});
