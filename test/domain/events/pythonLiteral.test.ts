import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../domain/events/event.js';
import { readObjectText, readPythonLiteral } from '../../../domain/events/litellm/pythonLiteral.js';
import { propertyRuns } from '../../support/propertyRuns.js';

/** The text that Python's `repr` has for a value of JSON, for texts without unusual characters. */
function reprOf(value: Json): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return `[${value.map(reprOf).join(', ')}]`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, inner]) => `${reprOf(key)}: ${reprOf(inner)}`)
      .join(', ')}}`;
  const escaped = value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return value.includes("'") && !value.includes('"') ? `"${escaped}"` : `'${escaped.replaceAll("'", "\\'")}'`;
}

const values = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, false),
    fc.integer({ min: -1_000_000, max: 1_000_000 }),
    fc.string({ maxLength: 12 }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.stringMatching(/^[a-z_]{1,8}$/), tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

describe('the text of a Python value', () => {
  it('is read as the value that it shows', () => {
    fc.assert(
      fc.property(values, (value) => {
        expect(readPythonLiteral(reprOf(value))).toEqual(value);
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  it('never throws and never runs, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...`{}[]():,'"\\ NoneTrue01.-ex`) }), (text) => {
        expect(() => readPythonLiteral(text)).not.toThrow();
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  it.each([
    "{'a': 1",
    "{'a' 1}",
    '{1: 2}',
    "{'a': __import__('os')}",
    'CompletionUsage(prompt_tokens=1)',
    "'a' 'b'",
    "{'a': 1} x",
    '[1, 2',
    "'\\xZZ'",
    '',
    `[${'['.repeat(20)}`,
    `'${'a'.repeat(20_000)}'`,
  ])('%j is none', (text) => {
    expect(readPythonLiteral(text)).toBeUndefined();
  });

  it('may be a tuple, and may end its lists with a comma', () => {
    expect(readPythonLiteral("{'a': (1, 2.5,), 'b': [], 'c': 1e-07,}")).toEqual({
      a: [1, 2.5],
      b: [],
      c: 1e-7,
    });
  });

  it('that is an object is read like one of JSON', () => {
    expect(readObjectText('{"a": null}')).toEqual({ a: null });
    expect(readObjectText("{'a': None}")).toEqual({ a: null });
    expect(readObjectText('[1]')).toBeUndefined();
  });
});
