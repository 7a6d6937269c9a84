import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jsonLines, jsonLinesSql, plainArray, plainItems, textArray } from '../../db/pgArray.js';
import { testSeed } from '../fakes/seededRandom.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

const seed = testSeed();
let test: TestDatabase;

beforeAll(async () => {
  test = await createTestDatabase();
});

afterAll(() => test.close());

/** Anything but the zero character, which Postgres has no place for, and halves of surrogate pairs. */
const texts = fc.array(
  fc.option(
    fc.oneof(
      fc.string({ unit: 'binary' }).filter((text) => !text.includes('\0')),
      fc.string({ unit: fc.constantFrom('"', '\\', ',', '{', '}', '\n', '\t', '\u001f', 'n', ' ', 'é') }),
      fc.constantFrom('', 'null', 'NULL', '\\n', '\\\\"', '{}'),
    ),
  ),
);

describe(`array literals (seed ${seed})`, () => {
  it('of texts are read by Postgres as the texts that they were made of', async () => {
    await fc.assert(
      fc.asyncProperty(texts, async (values) => {
        const result = await test.superuser.query({
          text: 'select to_json($1::text[])::text as texts',
          values: [textArray(values)],
        });
        expect(JSON.parse(result.rows[0].texts)).toEqual(values);
      }),
      { seed, numRuns: 300 },
    );
  });

  it('of numbers are read by Postgres as the numbers, and items of a text array unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n))), async (values) => {
        const result = await test.superuser.query({
          text: 'select $1::int8[]::text as numbers',
          values: [plainArray(values)],
        });
        const expected = values.map((value) => (value === null ? 'NULL' : String(value)));
        expect(plainItems(result.rows[0].numbers)).toEqual(expected);
      }),
      { seed, numRuns: 100 },
    );
  });

  it('of JSON are read by Postgres as the documents, one of them on each line', async () => {
    const document = fc.option(fc.tuple(fc.integer(), texts).map(([count, words]) => ({ count, words })));
    await fc.assert(
      fc.asyncProperty(fc.array(document, { minLength: 2 }), async (documents) => {
        const result = await test.superuser.query({
          text: `select to_json(${jsonLinesSql('$1')})::text as documents`,
          values: [jsonLines(documents)],
        });
        expect(JSON.parse(result.rows[0].documents)).toEqual(documents);
      }),
      { seed, numRuns: 200 },
    );
  });
});
