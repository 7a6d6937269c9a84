import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isPooled, prepareSession } from '../../db/client.js';
import { type CopiedRows, CopyOut } from '../../db/copyOut.js';
import { OrgDb, type SqlValue } from '../../db/orgDb.js';
import { COPIED_ESCAPES, COPIED_NULL } from '../../domain/copiedText.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
let orgDb: OrgDb;

beforeAll(async () => {
  database = await createTestDatabase();
  orgDb = new OrgDb(database.database, '00000000-0000-7000-8000-000000000001');
});
afterAll(() => database.close());

/** Values of rows without escapes, each its text or null. */
async function textsOf(inside: OrgDb, sql: string, values: readonly SqlValue[]) {
  const { count, lines } = await inside.copyRows(sql, values);
  const rows = lines
    .toString('latin1')
    .split('\n')
    .slice(0, -1)
    .map((line) =>
      line.split('\t').map((field) => (field === String.fromCharCode(COPIED_NULL) ? null : unescaped(field))),
    );
  expect(rows).toHaveLength(count);
  return rows;
}

const unescaped = (field: string) =>
  field.replaceAll(/\\(.)/gs, (_, letter: string) => {
    const byte = letter.charCodeAt(0);
    return String.fromCharCode(COPIED_ESCAPES.get(byte) ?? byte);
  });

it('reads texts with tabs, line breaks, backslashes, quotes and braces as they are stored, and absent values as null', async () => {
  const texts = [
    '',
    'plain',
    'a\tb',
    'a\nb\r',
    '\\',
    '\\N',
    "it's",
    '"q"',
    '{"a":"\\u0001\\n"}',
    '$1',
    '\\.',
  ];
  const rows = await textsOf(
    orgDb,
    `select t.* from (values ${texts.map((_, index) => `(${index}, $${index + 1}::text, null::text)`).join(', ')}) as t order by 1`,
    texts,
  );
  expect(rows).toEqual(texts.map((text, index) => [String(index), text, null]));
});

it('reads values of all types in the text form of Postgres', async () => {
  const rows = await textsOf(
    orgDb,
    `select true, 1.50::numeric(24,12), '2026-01-02 03:04:05.6Z'::timestamptz, array_to_json('{a,"b c"}'::text[]), $1::bigint, '{"k": [1]}'::jsonb`,
    [9_007_199_254_740_993n],
  );
  expect(rows).toEqual([
    ['t', '1.500000000000', '2026-01-02 03:04:05.6+00', '["a","b c"]', '9007199254740993', '{"k": [1]}'],
  ]);
});

it('reads in a transaction with other statements, and a failed one leaves the connection in order', async () => {
  await expect(orgDb.copyRows('select 1 / $1::int', [0])).rejects.toThrow(/division by zero/);
  const [rows, again] = await orgDb.transaction(async (inside) => [
    await textsOf(inside, 'select $1::int', [7]),
    await inside.rows<{ seven: number }>('select 7 as seven'),
  ]);
  expect([rows, again]).toEqual([[['7']], [{ seven: 7 }]]);
});

it('leaves out the rows that begin behind the limit of bytes, and says so', async () => {
  const sql = `select repeat('x', 99) from generate_series(1, 10)`;
  const read = async (bytesMax?: number) => {
    const { count, lines, isCut } = await orgDb.copyRows(sql, [], bytesMax);
    return [count, lines.length, isCut];
  };
  expect(await read()).toEqual([10, 1_000, false]);
  expect(await read(1_000)).toEqual([10, 1_000, false]);
  expect(await read(900)).toEqual([9, 900, true]);
  expect(await read(1)).toEqual([1, 100, true]);
});

it('reads through a pooler, where statements have no names', async () => {
  const client: pg.Client & { processID?: number } = new pg.Client({ connectionString: database.url });
  await client.connect();
  // Not the process that serves the connection, as a pooler would send it.
  client.processID = 1;
  await prepareSession(client);
  expect(isPooled(client)).toBe(true);
  const rows = await new Promise<CopiedRows>((resolve, reject) => {
    const done = (error: Error | undefined) => (error ? reject(error) : resolve(copy.copied));
    const copy = new CopyOut('select $1::int', [7], done);
    client.query(copy);
  });
  await client.end();
  expect([rows.count, String(rows.lines)]).toEqual([1, '7\n']);
});

it('reads no row as none, and says that nothing was left out', async () => {
  expect(await orgDb.copyRows('select 1 where false', [])).toEqual({
    count: 0,
    lines: Buffer.alloc(0),
    isCut: false,
  });
});

it('reports an error behind thousands of rows, and the connection reads on', async () => {
  const sql = `select repeat('x', 999), 1 / (5000 - n) from generate_series(1, 10000) n`;
  await expect(orgDb.copyRows(sql, [])).rejects.toThrow(/division by zero/);
  await orgDb.transaction(async (inside) => {
    const attempt = await inside.attempt((within) => within.copyRows(sql, []));
    expect('thrown' in attempt && String(attempt.thrown)).toMatch(/division by zero/);
    expect(await textsOf(inside, 'select $1::int', [7])).toEqual([['7']]);
  });
});

it('reads all rows between which the server sends notices', async () => {
  await database.superuser.query(
    `create function public.with_notice(n int) returns int language plpgsql as $$ begin raise notice 'row %', n; return n; end $$`,
  );
  const rows = await textsOf(orgDb, 'select public.with_notice(n) from generate_series(1, 500) n', []);
  expect(rows).toEqual(Array.from({ length: 500 }, (_, index) => [String(index + 1)]));
});

it('reads the rows of several statements that are sent together, each its own', async () => {
  const read = (inside: OrgDb, n: number) =>
    textsOf(inside, `select $1::int, repeat('y', 20000) from generate_series(1, 50)`, [n]);
  const all = await orgDb.transaction((inside) =>
    Promise.all([
      read(inside, 1),
      inside.rows<{ two: number }>('select $1::int as two', [2]),
      read(inside, 3),
    ]),
  );
  expect(all[1]).toEqual([{ two: 2 }]);
  for (const [index, first] of [
    [0, '1'],
    [2, '3'],
  ] as const)
    expect(all[index]).toEqual(Array.from({ length: 50 }, () => [first, 'y'.repeat(20_000)]));
});

it('writes values into the statement so that none of them ends its literal', () => {
  const copy = new CopyOut('select $1, $2, $10', ["a'; drop table events; --", null], () => undefined);
  expect((copy as unknown as { text: string }).text).toContain(
    "(select 'a''; drop table events; --', null, null)",
  );
});
