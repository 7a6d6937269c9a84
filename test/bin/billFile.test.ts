import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { importBillFile, readSummary } from '../../bin/commands/import.js';
import type { TestApi } from '../support/api.js';
import { makeTestFolder } from '../support/testFolder.js';
import { startWorkingApi } from '../support/workingApi.js';

const DECLARED = {
  provider: 'openai' as const,
  declaredFormat: null,
  declaredAccount: null,
  declaredFxRate: null,
};
/** Generous, because a worker on a busy machine may take long to start an import. */
const LIMIT_MS = 180_000;
const folder = makeTestFolder('bill-file');
let api: TestApi;

beforeAll(async () => {
  api = await startWorkingApi();
});

afterAll(async () => {
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

function aFile(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const CSV =
  'date,model,token_class,quantity,amount_usd\n2026-01-01,gpt-6-sol,input,1000000,2\n2026-01-02,,other,,0.5\n';

describe('./trueup import bills', () => {
  it('stores the file, waits until it is read and lists its content', async () => {
    const file = aFile('bill.csv', CSV);
    const source = await importBillFile(api.orgDb, randomUUID(), file, DECLARED, LIMIT_MS);
    expect(readSummary(source).split('\n')).toEqual([
      expect.stringMatching(
        /^imp_[0-9a-f]{32}: 2 rows, 2.5 USD, 2026-01-01 to 2026-01-02, account default, read as plain_csv\.$/,
      ),
      'not understood, kept as other: "other", 1 rows, 0.5 USD',
    ]);
  });

  it('of the same file again shows the same import', async () => {
    const file = aFile('copy.csv', CSV);
    const again = await importBillFile(api.orgDb, randomUUID(), file, DECLARED, LIMIT_MS);
    expect(again.filename).toBe('bill.csv');
  });

  it('names line and column of what it cannot read', async () => {
    const source = await importBillFile(
      api.orgDb,
      randomUUID(),
      aFile('broken.csv', `${CSV}2026-13-01,m,input,1,1\n`),
      DECLARED,
      LIMIT_MS,
    );
    expect(readSummary(source)).toMatch(/: failed: line 4, column 1: date must be a day/);
  });

  it.each([
    ['a file that is not there', join(folder, 'nothing.json'), 'is no file'],
    ['a folder', folder, 'is no file'],
  ])('%s is refused in a sentence', async (_, path, sentence) => {
    await expect(importBillFile(api.orgDb, randomUUID(), path, DECLARED)).rejects.toThrow(sentence);
  });

  it('asks for --account where several are known', async () => {
    const { orgDb } = await api.addOrganization();
    for (const declaredAccount of ['a', 'b'])
      await importBillFile(orgDb, randomUUID(), aFile(`${declaredAccount}.csv`, CSV), {
        ...DECLARED,
        declaredAccount,
      });
    await expect(importBillFile(orgDb, randomUUID(), aFile('c.csv', `${CSV}\n`), DECLARED)).rejects.toThrow(
      '--account',
    );
  });
});
