import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sumNamed, type Totals, totalsRead } from '../support/plantedBills/billTotals.js';
import { PLANTED_BILLS } from '../support/plantedBills/plantedBills.js';
import { REAL_BILLS } from '../support/plantedBills/realBills.js';
import { makeVenv, runProgram } from '../support/pythonVenv.js';

const BILLS = [...PLANTED_BILLS, ...REAL_BILLS];

/** Generated bills of every format and two real ones, added up by DuckDB from the files as they are: PLAIN_SUMS_VENV keeps what is installed. */
const folder = mkdtempSync(join(tmpdir(), 'trueup-sums-'));
const venv = process.env.PLAIN_SUMS_VENV ?? join(folder, 'venv');

let totals: Record<string, [string, string][]>;

beforeAll(() => {
  makeVenv(venv, join(import.meta.dirname, 'requirements.txt'), 10);
  const asked = BILLS.map(({ name, filename, bytes, table, sums }) => {
    const path = join(folder, filename);
    writeFileSync(path, bytes);
    return { name, table: table.replaceAll('$file', path), sums };
  });
  const { status, stdout, text } = runProgram(
    join(venv, 'bin', 'python'),
    [join(import.meta.dirname, 'duckdbSums.py')],
    { input: JSON.stringify(asked) },
  );
  if (status !== 0) throw new Error(text);
  const answer = JSON.parse(stdout);
  totals = answer.totals;
  console.info(`DuckDB ${answer.version}: ${BILLS.length} files`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a bill, added up by DuckDB', () => {
  it.each(BILLS.map((bill) => [bill.name, bill] as const))(
    '%s: what is kept and left out together is the file, by category and currency, to the last digit',
    async (name, bill) => {
      const plain: Totals = sumNamed(
        (totals[name] ?? []).map(([category, amount]) => ({ name: category, amount })),
      );
      expect(Object.keys(plain).length).toBeGreaterThan(0);
      expect((await totalsRead(bill)).all).toEqual(plain);
    },
  );
});
