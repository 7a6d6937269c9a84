import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CopiedJsonWriter } from '../../api/copiedJson.js';
import { EXPORTED_COLUMNS } from '../../api/events/events/wire.js';
import { EVENT_COLUMNS } from '../../domain/events/event.js';

const ESCAPED: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
};

/** A line as Postgres writes it; a character is a byte. */
const lineOf = (fields: readonly (string | null)[]) =>
  `${fields.map((field) => (field === null ? '\u0002' : field.replaceAll(/[\b\f\n\r\t\v\\]/g, (one) => ESCAPED[one] as string))).join('\t')}\n`;

const ID = '0199f3a2-c4d5-7e3a-8f00-112233445566';
/** The text of each column and its value in the answer, where the form is not a text. */
const ORDINARY: Readonly<Record<string, readonly [text: string, value: unknown]>> = {
  id: [ID, 'evt_0199f3a2c4d57e3a8f00112233445566'],
  superseded_by: [ID, 'evt_0199f3a2c4d57e3a8f00112233445566'],
  is_batch: ['t', true],
  cost_usd: ['0.001230000000', 0.00123],
  computed_cost_usd: ['120.000000000000', 120],
  prevented_usd: ['-3', -3],
  timestamp: ['2026-01-02 03:04:05.6789+00', '2026-01-02T03:04:05.678900Z'],
  end_at: ['2026-01-02 03:04:05+00', '2026-01-02T03:04:05Z'],
  ingested_at: ['2026-01-02 03:04:05.000001+00', '2026-01-02T03:04:05.000001Z'],
  price_gaps: ['["a","b \\"c\\""]', ['a', 'b "c"']],
  usage_missing: ['[]', []],
  usage_flags: ['["x"]', ['x']],
  ...Object.fromEntries(
    [
      'input_tokens',
      'output_tokens',
      'cache_read',
      'cache_creation',
      'reasoning_tok',
      'cached_tok',
      'duration_ms',
      'http_status',
      'cache_creation_5m',
      'cache_creation_1h',
    ].map((column) => [column, ['9007199254740', 9_007_199_254_740]]),
  ),
};
const LISTS = new Set(['price_gaps', 'usage_missing', 'usage_flags']);

/** Any bytes except the one of an absent value. */
const aText = fc.string({ unit: fc.integer({ min: 3, max: 255 }).map((byte) => String.fromCharCode(byte)) });
const aRow = fc
  .tuple(
    ...EVENT_COLUMNS.map((column) =>
      fc.option(
        aText.map((text) => [column, text] as const),
        { freq: 4 },
      ),
    ),
  )
  .map((cells) => ({
    fields: cells.map((cell) => (cell === null ? null : (ORDINARY[cell[0]]?.[0] ?? cell[1]))),
    event: {
      ...Object.fromEntries(
        cells.map((cell, index) => {
          const column = EVENT_COLUMNS[index] as string;
          if (cell === null) return [column, LISTS.has(column) ? [] : null];
          return [column, ORDINARY[column]?.[1] ?? cell[1]];
        }),
      ),
      payload: null,
    },
  }));

const textOf = (chunks: Iterable<Buffer>) => [...chunks].map((chunk) => chunk.toString('latin1'));

describe('exported lines', () => {
  it('become the JSON of their events, whatever their texts contain', () => {
    fc.assert(
      fc.property(fc.array(aRow, { minLength: 1, maxLength: 5 }), (rows) => {
        const block = Buffer.from(rows.map(({ fields }) => lineOf(fields)).join(''), 'latin1');
        const [text] = textOf(new CopiedJsonWriter(EXPORTED_COLUMNS, false).chunks(block));
        const lines = (text as string).split('\n');
        expect(lines.pop()).toBe('');
        expect(lines.map((line) => JSON.parse(line))).toEqual(rows.map(({ event }) => event));
        const [array] = textOf(new CopiedJsonWriter(EXPORTED_COLUMNS, true).chunks(block));
        expect(JSON.parse(`[${array}]`)).toEqual(rows.map(({ event }) => event));
      }),
      { numRuns: 100 },
    );
  });

  it('have their payload with the service in it, the tool’s input and output', () => {
    const payload = ['{"a": "\\u2028 \\n \\" é"}', '[1]', null, '{"name": "s"}'];
    const block = Buffer.from(lineOf([...EVENT_COLUMNS.map(() => null), ...payload]));
    const [chunk] = new CopiedJsonWriter(EXPORTED_COLUMNS, true).chunks(block);
    expect(JSON.parse(String(chunk))).toMatchObject({
      payload: { a: '\u2028 \n " é', _service: { name: 's' } },
      tool_input: [1],
      tool_output: null,
    });
  });

  it('have any payload, tool’s input and output as they are stored, and the service once', () => {
    const aJson = fc.oneof(
      fc.constantFrom({}, [], null, '', { _service: 1 }, { a: '_service', b: { _service: [] } }),
      fc.jsonValue(),
    );
    const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
    const withService = (payload: unknown, service: unknown) => {
      if (service === null) return payload;
      if (isObject(payload)) return { ...(payload as object), _service: service };
      return payload === null ? { _service: service } : { body: payload, _service: service };
    };
    const textOfJson = (value: unknown) => (value === null ? null : JSON.stringify(value));
    const aLine = fc.tuple(aJson, aJson, aJson, aJson);
    fc.assert(
      fc.property(fc.array(aLine, { minLength: 1, maxLength: 5 }), (lines) => {
        const stored = lines.map((values) =>
          lineOf([...EVENT_COLUMNS.map(() => null), ...values.map(textOfJson)]),
        );
        const [chunk] = new CopiedJsonWriter(EXPORTED_COLUMNS, true).chunks(Buffer.from(stored.join('')));
        const written = JSON.parse(`[${chunk}]`) as Record<string, unknown>[];
        lines.forEach(([payload, input, output, service], at) => {
          const { payload: joined, tool_input, tool_output } = written[at] as Record<string, unknown>;
          const expected = [withService(payload, service), input, output];
          expect([joined, tool_input, tool_output]).toEqual(JSON.parse(JSON.stringify(expected)));
        });
        expect(String(chunk).includes('"_service":1,"_service"')).toBe(false);
      }),
      { numRuns: 200 },
    );
  });

  it('come in chunks of at most 500, over blocks, with one comma between two objects of an array', () => {
    const line = lineOf(EVENT_COLUMNS.map(() => 'a'));
    const writer = new CopiedJsonWriter(EXPORTED_COLUMNS, true);
    const blocks = [1_001, 3].map((count) => Buffer.from(line.repeat(count), 'latin1'));
    const chunks = blocks.flatMap((block) => textOf(writer.chunks(block)));
    expect(chunks.map((chunk) => chunk.split('"payload":null}').length - 1)).toEqual([500, 500, 1, 3]);
    expect(chunks.join('').match(/\},?\{/g)).toEqual(Array.from({ length: 1_003 }, () => '},{'));
  });
});
