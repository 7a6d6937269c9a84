import { describe, expect, it } from 'vitest';
import { describeError } from '../../platform/logger.js';

const PROMPT = 'what a customer wrote';
const described = (error: unknown) => describeError(error) as Record<string, unknown>;

describe('an error in the log', () => {
  it('of the database has its SQLSTATE and the names of objects, without statement, values and row', () => {
    const error = Object.assign(
      new Error(
        `insert into t (a) values ('${PROMPT} - ${PROMPT}') - invalid input syntax for type uuid: "${PROMPT}"`,
      ),
      {
        severity: 'ERROR',
        code: '22P02',
        detail: `Failing row contains (${PROMPT}).`,
        where: PROMPT,
        table: 't',
        constraint: 'c',
      },
    );
    expect(described(error)).toMatchObject({
      code: '22P02',
      message: 'invalid input syntax for type uuid',
      table: 't',
      constraint: 'c',
    });
    expect(JSON.stringify(described(new Error('outer', { cause: error })))).not.toContain(PROMPT);
  });

  it('of a parser has no piece of what it read', () => {
    for (const text of [`{"a": ${PROMPT}}`, `[${PROMPT}`, `"${PROMPT}`, PROMPT]) {
      try {
        JSON.parse(text);
        expect.unreachable();
      } catch (error) {
        expect(JSON.stringify(described(error)), text).not.toMatch(/customer|what a/);
      }
    }
  });

  it('omits custom fields, and limits the depth of its causes', () => {
    const error: Error & { cause?: unknown } = Object.assign(new Error('broke'), {
      request: { body: PROMPT },
      code: 'E1',
    });
    error.cause = error;
    const shown = described(error);
    expect(shown).toMatchObject({ type: 'Error', message: 'broke', code: 'E1', cause: { message: 'broke' } });
    expect(JSON.stringify(shown)).not.toContain(PROMPT);
    expect(described(new Error('x'.repeat(10_000))).message).toHaveLength(500);
  });

  it('keeps where it happened', () => {
    expect(described(new TypeError('a\nb')).stack).toMatch(/^\s+at .*loggedError\.test/);
  });

  it('that is no Error object is a text', () => {
    expect([describeError('text'), describeError(undefined), describeError({ body: PROMPT })]).toEqual([
      'text',
      'undefined',
      'not an error',
    ]);
  });
});
