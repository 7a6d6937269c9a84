import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../db/pricing/prices.js';
import { microsOfDay } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import { seedPrices } from '../../usecases/pricing/priceSeed.js';
import { aPeriod, listOf, type PeriodJson } from '../domain/pricing/support.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { runTrueup } from '../support/trueup.js';

const FIXTURES = join(import.meta.dirname, '..', 'fixtures', 'prices');
const LITELLM = join(FIXTURES, 'litellm.json');
const MODELS_DEV = join(FIXTURES, 'modelsDev.json');
const DAY = '2026-12-05';
const folder = mkdtempSync(join(tmpdir(), 'trueup-import-'));
let files = 0;

let db: TestDatabase;
beforeEach(async () => {
  db = await createTestDatabase();
});
afterEach(() => db.close());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function aFile(json: unknown): string {
  files += 1;
  const path = join(folder, `file-${files}.json`);
  writeFileSync(path, JSON.stringify(json));
  return path;
}

/** Runs the command; returns its output. `answer` is the person's input; absent: there is no terminal. */
async function run(args: string[], answer?: string): Promise<string> {
  const { output } = await runTrueup(['prices', 'import', ...args], {
    environment: db.environment,
    answer,
    now: new Date(`${DAY}T12:00:00Z`),
  });
  return output;
}

const litellm = (...more: string[]) => [LITELLM, '--retrieved', DAY, ...more];

async function priced(provider: Provider, model: string, day = DAY) {
  const found = (await loadPriceBook(db.database)).find(provider, model, microsOfDay(day));
  return (
    found && {
      ...found.version.rates,
      source: found.version.source,
      agreement: found.agreement,
      family: found.entry.canonicalFamily,
    }
  );
}
const USD = 1_000_000_000_000n;

async function stored(): Promise<number> {
  const { rows } = await db.superuser.query<{ count: number }>(
    'select count(*)::int as count from imported_prices',
  );
  return rows[0]?.count ?? 0;
}

/** A LiteLLM file of one OpenAI model, dollars per million. */
const oneModel = (model: string, input: number, output: number, more: object = {}) =>
  aFile({
    [model]: {
      litellm_provider: 'openai',
      mode: 'chat',
      input_cost_per_token: input / 1e6,
      output_cost_per_token: output / 1e6,
      ...more,
    },
  });

describe('./trueup prices import', () => {
  it('shows every difference with its factor and stores nothing before it was answered', async () => {
    const shown = await run(litellm('--dry-run'));
    expect(shown).toContain('openai gpt-9-test-2027-01-01\n      input 0.123456789012\n      output 0.4');
    expect(shown).toContain('openai gpt-5.6-sol\n      input 4 → 5 (× 1.25)\n      output 20 → 30 (× 1.5)');
    expect(shown).toContain('batch output 10 → 15 (× 1.5)');
    expect(shown).toMatch(/priced now and not in the file: kept \(\d+\)/);
    expect(shown).toContain('--dry-run');
    expect(await run(litellm(), 'n')).toContain('Import these');
    expect(await run(litellm(), '')).toContain('Nothing was stored.');
    expect(await stored()).toBe(0);
  });

  it('lists the known faults of the collection, and leaves their models out by default', async () => {
    const shown = await run(litellm('--dry-run'));
    for (const fault of [
      'anthropic claude-3-haiku-20240307: standard cache_write_1h: writing the cache costs 24 × input',
      'openai gpt-5-nano: priority input: priority costs 50 × standard',
      'azure_openai gpt-5.6-sol: standard cache_write_5m: it has no rate for writing the cache',
      'azure_openai gpt-4o-2024-11-20 (eu): standard cache_write_5m: writing the cache costs 0.5 × input',
    ])
      expect(shown).toContain(fault);
    await run(litellm('--yes', '--accept-jumps'));
    expect((await priced('openai', 'gpt-5-nano'))?.source).not.toBe('litellm');
    expect(await priced('xai', 'grok-test')).toBeUndefined();
    await run(litellm('--yes', '--accept-jumps', '--accept-suspicious', '--provider', 'xai'));
    expect(await priced('xai', 'grok-test')).toMatchObject({ input: 2n * USD, source: 'litellm' });
  });

  it('prices by what was imported from its day on, to the digit, and names the source', async () => {
    await run(litellm(), 'y');
    expect(await priced('openai', 'gpt-5.6-sol')).toMatchObject({
      input: 5n * USD,
      output: 30n * USD,
      source: 'litellm',
      agreement: 'single_source',
    });
    expect((await priced('openai', 'gpt-5.6-sol', '2026-12-04'))?.input).toBe(4n * USD);
    expect(await priced('openai', 'gpt-9-test-2027-01-01')).toMatchObject({
      input: 123_456_789_012n,
      family: 'gpt-9-test',
    });
    expect((await loadPriceBook(db.database)).inferProvider('gpt-9-test')).toBe('openai');
    // A token class that the file lacks stays as listed, and so does a model that it does not name.
    expect((await priced('openai', 'gpt-5.6-sol'))?.cache_write_12h).toBe(10n * USD);
    expect((await priced('openai', 'gpt-4'))?.input).toBe(30n * USD);
  });

  it('takes no rate for news that the collection listed when the shipped list was made', async () => {
    expect((await priced('mistral', 'mistral-large-4'))?.input).toBe(700_000_000_000n);
    await run(litellm('--yes', '--accept-jumps'));
    expect((await priced('mistral', 'mistral-large-4'))?.input).toBe(700_000_000_000n);
  });

  it('with the same file again has nothing to import', async () => {
    await run(litellm('--accept-suspicious'), 'y');
    expect(await run(litellm('--accept-suspicious'), 'y')).toContain('Nothing to import.');
  });

  it('lets a script accept prices without a jump, and others only with an option', async () => {
    const jumping = oneModel('gpt-5.6-sol', 8.5, 20);
    await expect(run([jumping, '--retrieved', DAY, '--yes'])).rejects.toThrow(
      /openai gpt-5\.6-sol.*--accept-jumps/,
    );
    expect(await stored()).toBe(0);
    await run([oneModel('gpt-5.6-sol', 8, 20), '--retrieved', DAY, '--yes']);
    expect((await priced('openai', 'gpt-5.6-sol'))?.input).toBe(8n * USD);
    await run([oneModel('gpt-5.6-sol', 3.9, 20), '--retrieved', DAY, '--yes', '--accept-jumps']);
    expect((await priced('openai', 'gpt-5.6-sol'))?.input).toBe(3_900_000_000_000n);
  });

  it('fails without a terminal to prompt on, and prints why', async () => {
    await expect(run(litellm())).rejects.toThrow(/cannot ask for confirmation/);
  });

  it('keeps a price of an earlier import that a later one does not contain', async () => {
    await run([
      oneModel('gpt-5.6-sol', 5, 20),
      '--retrieved',
      '2026-12-01',
      '--effective-from',
      '2026-12-01',
      '--yes',
    ]);
    await run([oneModel('gpt-5.6-sol', 5, 25), '--retrieved', DAY, '--yes']);
    expect(await priced('openai', 'gpt-5.6-sol')).toMatchObject({ input: 5n * USD, output: 25n * USD });
    expect(await priced('openai', 'gpt-5.6-sol', '2026-12-02')).toMatchObject({
      input: 5n * USD,
      output: 20n * USD,
    });
    expect(await run([oneModel('gpt-5.6-sol', 6, 25), '--retrieved', '2026-12-04', '--yes'])).toContain(
      'left alone, since more is known',
    );
    expect((await priced('openai', 'gpt-5.6-sol'))?.input).toBe(5n * USD);
  });

  it('lets batch rates that the file leaves out follow by the factor that is known', async () => {
    await run([oneModel('gpt-5.6-sol', 5, 20), '--retrieved', DAY, '--yes']);
    const found = (await loadPriceBook(db.database)).find('openai', 'gpt-5.6-sol', microsOfDay(DAY));
    expect(found?.cards.get('batch')?.flat.classes.input).toMatchObject({
      rate: 2_500_000_000_000n,
      basis: 'multiplier',
    });
  });

  it('reads models.dev’s file just so', async () => {
    await run([MODELS_DEV, '--retrieved', DAY, '--yes', '--accept-suspicious']);
    expect(await priced('google', 'gemini-9-test')).toMatchObject({
      input: USD,
      output: 4n * USD,
      input_audio: 2n * USD,
      source: 'models_dev',
    });
    expect(await priced('openai', 'gpt-9-test')).toMatchObject({ input: 123_456_789_012n, cache_read: null });
  });

  it.each([
    [['/no/such/file.json'], /no file that can be read/],
    [[], /^Missing required argument 'file'\./],
    [['a', 'b'], /^Too many arguments for 'import'\. Expected 1 argument but got 2\./],
    [['a', '--provider', 'acme'], /--provider is acme/],
    [['a', '--effective-from', '2026-13-01'], /--effective-from is 2026-13-01/],
    [['a', '--yes', '--dry-run'], /^Option '--dry-run' cannot be used with option '--yes'/],
    [['a', '--force'], /Usage/],
  ])('refuses %j in one sentence', async (args, sentence) => {
    await expect(run(args)).rejects.toThrow(sentence);
  });

  it('refuses a file that is neither of the two, naming it', async () => {
    await expect(run([aFile({ a: 1 })])).rejects.toThrow(/file-\d+\.json: the file is neither/);
  });
});

describe('a shipped list and an import', () => {
  const MODEL = 'm';
  const list = (asOf: string, input: number, more: PeriodJson[] = []) =>
    aFile({
      ...listOf([
        {
          provider: 'openai',
          model: MODEL,
          rates: more.length > 0 ? more : [aPeriod({ input, output: 20 })],
        },
        { provider: 'openai', model: 'other' },
      ]),
      as_of: asOf,
    });
  const importM = (input: number, retrieved: string) =>
    run([oneModel(MODEL, input, 20), '--retrieved', retrieved, '--effective-from', retrieved, '--yes']);
  const input = async (day: string) => (await priced('openai', MODEL, day))?.input;

  beforeEach(async () => {
    await seedPrices(db.database, list('2026-12-01', 4));
  });

  it('that comes later with an unchanged price of the model, leave the import in force', async () => {
    await importM(5, '2026-12-10');
    expect((await seedPrices(db.database, list('2027-01-01', 4))).overtaken).toEqual([]);
    expect(await input('2027-01-02')).toBe(5n * USD);
  });

  it('that has changed the model by later knowledge, replaces it and prints that', async () => {
    await importM(5, '2026-12-10');
    expect((await seedPrices(db.database, list('2027-01-01', 6))).overtaken).toEqual(['openai m']);
    expect(await input('2027-01-02')).toBe(6n * USD);
    expect(await stored()).toBe(1);
  });

  it('that has changed the model by earlier knowledge, leaves the import in force', async () => {
    await importM(5, '2026-12-10');
    expect((await seedPrices(db.database, list('2026-12-05', 6))).overtaken).toEqual([]);
    expect(await input('2026-12-20')).toBe(5n * USD);
    expect(await input('2026-12-02')).toBe(6n * USD);
  });

  it('is not undone by a file that is older than its own knowledge', async () => {
    const shown = await run([oneModel(MODEL, 5, 20), '--retrieved', '2026-11-30', '--yes']);
    expect(shown).toContain('left alone, since more is known than this file can know (1)');
    expect(await input(DAY)).toBe(4n * USD);
  });

  it('keep a change that the list has announced for later', async () => {
    await seedPrices(
      db.database,
      list('2026-12-02', 0, [
        aPeriod({ input: 4, output: 20 }, { effective_to: '2027-01-01' }),
        aPeriod({ input: 7, output: 20 }, { effective_from: '2027-01-01' }),
      ]),
    );
    await importM(5, '2026-12-10');
    expect([await input('2026-12-09'), await input('2026-12-10'), await input('2027-01-01')]).toEqual([
      4n * USD,
      5n * USD,
      7n * USD,
    ]);
  });

  it('rename the prices whenever one of them changes', async () => {
    const names = [(await loadPriceBook(db.database)).version];
    await importM(5, '2026-12-10');
    names.push((await loadPriceBook(db.database)).version);
    await seedPrices(
      db.database,
      aFile({ ...listOf([{ provider: 'openai', model: 'other' }]), as_of: '2027-01-01' }),
    );
    names.push((await loadPriceBook(db.database)).version);
    expect([...names].sort()).toEqual(names);
    expect(new Set(names.map((name) => name.slice(-8))).size).toBe(3);
  });

  it('store nothing when the prices have changed while a person was reviewing them', async () => {
    const [first, second] = await Promise.allSettled([importM(5, '2026-12-10'), importM(6, '2026-12-10')]);
    const failed = [first, second].filter(({ status }) => status === 'rejected');
    // One may also have read the prices after the other was done.
    for (const one of failed) expect(String((one as PromiseRejectedResult).reason)).toContain('start again');
    expect(await stored()).toBe(2 - failed.length);
  });
});
