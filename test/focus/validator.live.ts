import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadDemo } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { DEMO_SEED, generateDemo } from '../../lab/demo/generateDemo.js';
import { createLogger } from '../../platform/logger.js';
import type { TestApi } from '../support/api.js';
import { FOCUS_MONTH, loadFocusMonth } from '../support/focusMonth.js';
import { yesterday } from '../support/plantedFaults.js';
import { makeVenv, runProgram } from '../support/pythonVenv.js';
import { startWorkingApi } from '../support/workingApi.js';

/**
 * The demo's months as FOCUS, judged by others (docs/focus.md has the result). PYTHON names a Python from 3.12; FOCUS_VENV a
 * folder for the validator that is kept; FOCUS_OUT a folder for the exports and the reports.
 */
const temporary = mkdtempSync(join(tmpdir(), 'trueup-focus-'));
const out = process.env.FOCUS_OUT ?? temporary;
const venv = process.env.FOCUS_VENV ?? join(temporary, 'venv');

/** FOCUS's conditions that hold for providers of language models; the rules that depend on them are checked. */
const APPLIES = [
  'ACCOUNT_NAMING_SUPPORTED',
  'MULTIPLE_PRICING_CATEGORIES_SUPPORTED',
  'NEGOTIATED_PRICING_SUPPORTED',
  'PRICING_BILLING_CURRENCY_DIFFERENCES_SUPPORTED',
  'PUBLIC_PRICE_LIST_SUPPORTED',
  'REGION_SUPPORTED',
  'SUB_ACCOUNT_SUPPORTED',
  'TAGGING_SUPPORTED',
  'UNIT_PRICING_SUPPORTED',
  'USAGE_MEASUREMENT_SUPPORTED',
];

let api: TestApi;
/** Exports to check: a month, and the owner's key. */
let judged: { name: string; month: string; key: string }[];

async function fetchExport(version: string, { name, month, key }: (typeof judged)[number]): Promise<string> {
  const response = await fetch(
    `${api.baseUrl}/api/v1/reconciliation/focus?version=${version}&period=${month}`,
    // The validator stops this process for minutes: a connection that was kept would be gone.
    { headers: { authorization: `Bearer ${key}`, connection: 'close' } },
  );
  expect(response.status).toBe(200);
  const path = join(out, `focus-${version}-${name}.csv`);
  writeFileSync(path, await response.text());
  return path;
}

beforeAll(async () => {
  mkdirSync(out, { recursive: true });
  makeVenv(venv, join(import.meta.dirname, 'requirements.txt'), 12);
  api = await startWorkingApi();
  const screen = createScreen(false, createLogger({ name: 'focus', level: 'silent' }));
  await loadDemo(
    { base: api.baseUrl, key: api.adminKey },
    generateDemo({ seed: DEMO_SEED, endDay: yesterday }),
    screen,
  );
  const last = new Date(`${yesterday}T00:00:00Z`);
  const months = [1, 2].map((back) =>
    new Date(Date.UTC(last.getUTCFullYear(), last.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  );
  const every = await loadFocusMonth(api);
  judged = [
    ...months.map((month) => ({ name: `demo-${month}`, month, key: api.adminKey })),
    { name: 'every-kind', month: FOCUS_MONTH, key: every.adminKey },
  ];
});

afterAll(async () => {
  await api?.close();
  rmSync(temporary, { recursive: true, force: true });
});

/** The validator's list of currencies, relative to its working folder. */
const packages = () =>
  runProgram(join(venv, 'bin', 'python'), [
    '-c',
    'import sysconfig; print(sysconfig.get_path("purelib"))',
  ]).text.trim();

/** The failed rules of a report, and how many passed. */
function readReport(text: string): { passed: number; failed: string[] } {
  const passed = /Pass: (\d+)/.exec(text)?.[1];
  if (passed === undefined) throw new Error(`the validator gave no result: ${text.slice(-2_000)}`);
  const failed = [...text.matchAll(/^- (\S+): violations=/gm)].map((match) => match[1] as string);
  return { passed: Number(passed), failed: [...new Set(failed)].sort() };
}

/**
 * Rules that a charge without an invoice cannot keep alone: the machine-readable rule lacks its condition (“when the charge
 * is associated with an invoice”), and the one above it (InvoiceId-C-003-C: null or not, as it is associated) passes.
 */
const WITHOUT_INVOICE = ['InvoiceId-C-005-C'];

describe('an export of the demo, and of a month with every kind of charge', () => {
  it('keeps the rules of FOCUS 1.2, by the FOCUS project’s validator', async () => {
    for (const one of judged) {
      const path = await fetchExport('1.2', one);
      const { text } = runProgram(
        join(venv, 'bin', 'focus-validator'),
        [
          ...['--data-file', path, '--validate-version', '1.2', '--block-download'],
          ...['--applicability-criteria', APPLIES.join(','), '--show-violations'],
        ],
        { cwd: packages() },
      );
      writeFileSync(join(out, `focus-1.2-${one.name}.txt`), text);
      const { passed, failed } = readReport(text);
      console.info(`FOCUS 1.2, ${one.name}: ${/^Total: .*$/m.exec(text)?.[0]}`);
      expect(failed).toEqual(WITHOUT_INVOICE);
      expect(passed).toBeGreaterThan(200);
    }
  });

  it('is well formed by the data model of FOCUS 1.4', async () => {
    for (const one of judged) {
      const path = await fetchExport('1.4', one);
      const { status, text } = runProgram(join(venv, 'bin', 'focus-toolkit'), ['validate', path]);
      writeFileSync(join(out, `focus-1.4-${one.name}.txt`), text);
      console.info(`FOCUS 1.4, ${one.name}: ${text.trim()}`);
      expect(status, text).toBe(0);
    }
  });
});
