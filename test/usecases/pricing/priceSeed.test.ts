import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { seedPrices } from '../../../usecases/pricing/priceSeed.js';
import {
  AS_OF,
  aPeriod,
  bookOf,
  type EntryJson,
  type ListJson,
  listOf,
  microsOf,
  shippedJson,
} from '../../domain/pricing/support.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

const folder = mkdtempSync(join(tmpdir(), 'trueup-prices-'));
let files = 0;

function listFile(list: ListJson): string {
  files += 1;
  const path = join(folder, `list-${files}.json`);
  writeFileSync(path, JSON.stringify(list));
  return path;
}

/** A list of two models, with the given input rate and fields of the first. */
function twoModels(input: number, more: Partial<EntryJson> = {}, asOf = '2027-01-01'): ListJson {
  const list = listOf([
    { provider: 'openai', model: 'm', rates: [aPeriod({ input, output: 2 })], ...more },
    { provider: 'mistral', model: 'n' },
  ]);
  return { ...list, as_of: asOf };
}

async function storedPeriods(db: TestDatabase, model: string): Promise<string[]> {
  const { rows } = await db.superuser.query<{ text: string }>(
    `select revision || ' ' || coalesce(effective_from::text, '-') || ' ' || (input + 0)::float8 as text
     from price_versions where model = $1 order by revision, effective_from nulls first`,
    [model],
  );
  return rows.map((row) => row.text);
}

describe('seeding list prices', () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await createTestDatabase();
  });
  afterAll(() => db.close());

  const input = async (model = 'm') =>
    (await loadPriceBook(db.database)).find('openai', model, AS_OF)?.version.rates.input;

  it('stores the shipped list so that the loaded prices equal the file', async () => {
    const loaded = await loadPriceBook(db.database);
    const read = bookOf(readPriceFile(shippedJson()));
    const plain = (book: typeof loaded) =>
      [...book.periods()].map(({ entry, version }) => ({
        ...entry,
        ...version,
        id: '',
        updatedAtMicros: 0n,
        recordedAtMicros: 0n,
      }));
    expect(plain(loaded)).toEqual(plain(read));
    expect(loaded.version).toMatch(/^\d{8}T\d{12}Z-[0-9a-f]{8}$/);
  });

  it('changes nothing when the list was read before', async () => {
    const before = await loadPriceBook(db.database);
    const again = await seedPrices(db.database);
    expect(again).toEqual({ changed: 0, version: before.version, overtaken: [] });
    const { rows } = await db.superuser.query('select max(revision) as revision from price_versions');
    expect(rows[0]?.revision).toBe(1);
  });

  it('appends a changed price, keeps the old one as history, and renames the prices', async () => {
    const first = await seedPrices(db.database, listFile(twoModels(1)));
    const second = await seedPrices(db.database, listFile(twoModels(3)));
    expect(second.changed).toBe(1);
    expect(second.version > first.version).toBe(true);
    expect(await input()).toBe(3_000_000_000_000n);
    expect(await storedPeriods(db, 'm')).toEqual(['1 - 1', '2 - 3']);
    expect(await storedPeriods(db, 'n')).toEqual(['1 - 1']);
  });

  it('recognizes a price that returned to an earlier value', async () => {
    await seedPrices(db.database, listFile(twoModels(1)));
    expect(await input()).toBe(1_000_000_000_000n);
    expect(await storedPeriods(db, 'm')).toEqual(['1 - 1', '2 - 3', '3 - 1']);
  });

  it('removes a withdrawn period, and does not mix it with the periods that hold', async () => {
    const split = twoModels(1, {
      rates: [
        aPeriod({ input: 1, output: 2 }, { effective_to: '2026-06-01' }),
        aPeriod({ input: 5, output: 2 }, { effective_from: '2026-06-01' }),
      ],
    });
    await seedPrices(db.database, listFile(split));
    expect(await input()).toBe(5_000_000_000_000n);
    await seedPrices(db.database, listFile(twoModels(1)));
    expect(await input()).toBe(1_000_000_000_000n);
    const book = await loadPriceBook(db.database);
    expect([...book.periods()].filter(({ entry }) => entry.model === 'm').length).toBe(1);
  });

  it('takes a model that the list no longer names out of the prices, and back in with its history', async () => {
    const alone = { ...twoModels(1), models: twoModels(1).models.slice(0, 1) };
    expect((await seedPrices(db.database, listFile(alone))).changed).toBe(1);
    expect((await loadPriceBook(db.database)).find('mistral', 'n', AS_OF)).toBeUndefined();
    expect(await storedPeriods(db, 'n')).toEqual(['1 - 1']);
    expect((await seedPrices(db.database, listFile(twoModels(1)))).changed).toBe(1);
    expect((await loadPriceBook(db.database)).find('mistral', 'n', AS_OF)).toBeDefined();
    expect(await storedPeriods(db, 'n')).toEqual(['1 - 1']);
  });

  it('records another alias without touching the prices', async () => {
    const periods = await storedPeriods(db, 'm');
    const before = await loadPriceBook(db.database);
    await seedPrices(db.database, listFile(twoModels(1, { aliases: ['m-latest'] })));
    const after = await loadPriceBook(db.database);
    expect(after.find('openai', 'm-latest', AS_OF)?.entry.model).toBe('m');
    expect(after.version).not.toBe(before.version);
    expect(await storedPeriods(db, 'm')).toEqual(periods);
  });

  it('leaves newer prices alone when an older list comes late', async () => {
    const before = await loadPriceBook(db.database);
    const late = await seedPrices(db.database, listFile(twoModels(99, {}, '2026-12-31')));
    expect(late).toEqual({ changed: 0, version: before.version, overtaken: [] });
    expect(await input()).toBe(1_000_000_000_000n);
  });

  it('stores nothing of a broken list', async () => {
    const before = await loadPriceBook(db.database);
    await expect(seedPrices(db.database, listFile(twoModels(-1)))).rejects.toThrow(/input is not a rate/);
    expect((await loadPriceBook(db.database)).version).toBe(before.version);
  });

  it('keeps a rate of twelve decimals and a tier’s rate to the last digit', async () => {
    const fine = twoModels(0.000000000001, {
      rates: [
        aPeriod(
          { input: 0.000000000001, output: 123456.789 },
          { tiers: [{ service_tier: 'flex', input: 0.000000000003, output: 1.1 }] },
        ),
      ],
    });
    await seedPrices(db.database, listFile(fine));
    const price = (await loadPriceBook(db.database)).find('openai', 'm', AS_OF);
    expect(price?.version.rates).toMatchObject({ input: 1n, output: 123_456_789_000_000_000n });
    expect(price?.version.tiers[0]?.rates).toMatchObject({ input: 3n, output: 1_100_000_000_000n });
  });

  it('is one change however many processes bring it at once', async () => {
    const path = listFile(twoModels(7));
    const results = await Promise.all(Array.from({ length: 8 }, () => seedPrices(db.database, path)));
    expect(results.filter(({ changed }) => changed > 0).length).toBe(1);
    expect(new Set(results.map(({ version }) => version)).size).toBe(1);
    expect((await storedPeriods(db, 'm')).filter((text) => text.endsWith(' 7')).length).toBe(1);
  });

  it('cannot be written in the name of an organization', async () => {
    for (const sql of [
      `update price_models set aliases = '{}'`,
      `insert into price_state (list_sha256, list_as_of, content_hash, updated_at) values ('', now(), '', now())`,
      `delete from price_versions`,
    ]) {
      await expect(
        db.database.transact('app_rw', undefined, (connection) => connection.query(sql)),
      ).rejects.toThrow();
    }
    // not even maintenance may change a recorded period
    for (const sql of ['update price_versions set input = 0', 'delete from price_versions']) {
      await expect(
        db.database.transact('app_system', undefined, (connection) => connection.query(sql)),
      ).rejects.toThrow();
    }
  });
});

describe('the prices in memory', () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await createTestDatabase();
  });
  afterAll(() => db.close());

  it('are those at the start until a refresh finds others, and no request waits for the refresh', async () => {
    let nowMs = 0;
    const failures: unknown[] = [];
    const holder = await PriceBookHolder.open(db.database, {
      nowMs: () => nowMs,
      onFailure: (error) => failures.push(error),
    });
    const first = holder.current();
    await seedPrices(db.database, listFile(twoModels(11)));
    expect(holder.current()).toBe(first);
    nowMs = 4_999;
    expect(holder.current()).toBe(first);
    await holder.settle();
    expect(holder.current()).toBe(first);
    nowMs = 5_000;
    expect(holder.current()).toBe(first);
    await holder.settle();
    expect(holder.current().find('openai', 'm', AS_OF)?.version.rates.input).toBe(11_000_000_000_000n);
    expect(failures).toEqual([]);
  });

  it('are the stored ones at once for a caller that requests a refresh', async () => {
    const holder = await PriceBookHolder.open(db.database, { nowMs: () => 0, onFailure: () => undefined });
    await seedPrices(db.database, listFile(twoModels(12)));
    const [one, two] = await Promise.all([holder.refresh(), holder.refresh()]);
    expect(one.find('openai', 'm', AS_OF)?.version.rates.input).toBe(12_000_000_000_000n);
    expect(two).toBe(one);
    const same = await holder.refresh();
    expect(same).toBe(one);
  });

  it('stay in use when the database is away', async () => {
    const away = await createTestDatabase({ poolMax: 1 });
    let nowMs = 0;
    const failures: unknown[] = [];
    const holder = await PriceBookHolder.open(away.database, {
      nowMs: () => nowMs,
      onFailure: (error) => failures.push(error),
    });
    const book = holder.current();
    await away.close();
    nowMs = 10_000;
    expect(holder.current()).toBe(book);
    await holder.settle();
    expect(holder.current()).toBe(book);
    expect(failures.length).toBe(1);
  });

  it('price a past call by the period of its time', async () => {
    const book = await loadPriceBook(db.database);
    await seedPrices(db.database, listFile(twoModels(13)));
    expect(book.find('openai', 'm', microsOf('2020-01-01'))?.version.rates.input).toBe(12_000_000_000_000n);
  });
});
