import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PAYLOAD_BYTES_MAX } from '../../../domain/events/event.js';
import { withinLimit } from '../../../domain/events/jsonValues.js';
import { attributeList, callOf, callWith, LEAST } from './support.js';

describe('the stored part of a span', () => {
  it('is every attribute that no field was read from, whatever its type', () => {
    const others = {
      'gen_ai.request.temperature': 0.5,
      flag: true,
      list: [1, 'a', [2]],
      map: { deep: { er: 1 } },
      text: 'x',
    };
    expect(callWith(others).payload).toEqual(others);
    expect(callWith({}).payload).toBeNull();
  });

  it('is an attribute too that another name outranked', () => {
    const payload = callWith({
      'llm.token_count.prompt': 99,
      'langfuse.session.id': 's2',
      'session.id': 's1',
    }).payload;
    expect(payload).toEqual({ 'llm.token_count.prompt': 99, 'langfuse.session.id': 's2' });
  });

  it('are its events with their attributes', () => {
    const events = [
      { name: 'exc\u00e9ption', attributes: attributeList({ 'exception.type': 'E' }), timeUnixNano: '1' },
    ];
    expect(callWith({}, { events }).payload).toEqual({
      _events: [{ name: 'excption', attributes: { 'exception.type': 'E' } }],
    });
  });

  it('is plain data, whatever its keys are called', () => {
    const attributes = [
      ...attributeList(LEAST),
      {
        key: '__proto__',
        value: { kvlistValue: { values: [{ key: '__proto__', value: { stringValue: 'x' } }] } },
      },
      { key: 'constructor', value: { stringValue: 'y' } },
      { key: 'k\u0000ey', value: { stringValue: 'first' } },
      { key: 'key', value: { stringValue: 'later' } },
    ];
    const payload = callOf({ attributes }).payload as object;
    expect(JSON.stringify(payload)).toBe('{"__proto__":{"__proto__":"x"},"constructor":"y","key":"later"}');
    expect(Object.getPrototypeOf(payload)).toBe(Object.prototype);
  });

  it('keeps integers beyond 2^53 to the last digit, and passes over empty values', () => {
    const attributes: unknown[] = [
      ...attributeList(LEAST),
      { key: 'big', value: { intValue: '9223372036854775807' } },
      { key: 'bytes', value: { bytesValue: 'aGk=' } },
      { key: 'nothing', value: {} },
      { key: 'none' },
      null,
      7,
    ];
    expect(callOf({ attributes: attributes as object[] }).payload).toEqual({
      big: '9223372036854775807',
      bytes: 'aGk=',
    });
  });

  it('takes a list of a million elements as one value', () => {
    const values = Array.from({ length: 1_000_000 }, () => ({ intValue: 1 }));
    const attributes = [...attributeList(LEAST), { key: 'list', value: { arrayValue: { values } } }];
    expect(callOf({ attributes }).payload).toEqual({ _truncated: true, bytes: 2_000_010 });
  });
});

describe('the limit of a payload', () => {
  it('is 256 KB of JSON text exactly: a note of the size replaces what is longer', () => {
    const atLimit = { text: 'x'.repeat(PAYLOAD_BYTES_MAX - 11) };
    expect(JSON.stringify(atLimit)).toHaveLength(PAYLOAD_BYTES_MAX);
    expect(withinLimit(atLimit)).toBe(atLimit);
    expect(withinLimit({ text: `${atLimit.text}x` })).toEqual({
      _truncated: true,
      bytes: PAYLOAD_BYTES_MAX + 1,
    });
    const escaped = '"'.repeat(PAYLOAD_BYTES_MAX / 2);
    expect(withinLimit(escaped)).toEqual({ _truncated: true, bytes: PAYLOAD_BYTES_MAX + 2 });
  });

  it('judges every value by the length of its own JSON text', () => {
    const printable = fc.string({ unit: 'grapheme-ascii', maxLength: 40 });
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 3 }),
        printable,
        fc.integer({ min: 0, max: 140_000 }),
        (value, text, size) => {
          const given = { value, text, pad: '\n'.repeat(size) };
          const { length } = JSON.stringify(given).replace(/[^\x20-\x7e]/g, '');
          fc.pre(/^[\x20-\x7e\n]*$/.test(JSON.stringify(given)));
          const kept = withinLimit(given as never);
          expect(kept).toEqual(length <= PAYLOAD_BYTES_MAX ? given : { _truncated: true, bytes: length });
        },
      ),
      { verbose: 1 },
    );
  });

  it('holds for tool input, tool output and the service block too', () => {
    const long = 'x'.repeat(300_000);
    const call = callWith({ tool_input: long, tool_output: long, '_service.note': long });
    for (const value of [call.toolInput, call.toolOutput, call.service])
      expect(value).toMatchObject({ _truncated: true });
  });
});
