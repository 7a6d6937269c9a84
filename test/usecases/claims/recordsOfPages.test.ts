import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readBillingFile } from '../../../adapters/billing/file.js';
import { createPageReaders } from '../../../adapters/billing/locateRows.js';
import { listCountedRows } from '../../../db/claims/evidence.js';
import { claimCsv } from '../../../domain/claims/evidence/claimCsv.js';
import type { ClaimEvidence } from '../../../domain/claims/evidence/claimEvidence.js';
import { findUuid } from '../../../domain/ids.js';
import { readImport } from '../../../usecases/billing/readImport.js';
import { locateRows } from '../../../usecases/claims/evidencePages.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { uploadBill } from '../../support/bills.js';
import { readBill } from '../../support/readBill.js';
import { storeBill } from '../../support/storedBill.js';

/** Rows of pages that a reader of a pack cannot read, or that are not kept: shown by their records. */

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

const BILL = `date,model,token_class,quantity,amount_usd
2026-10-05,gpt-4o,input,1000000,2.5
2026-10-05,gpt-4o,output,"200000","2.000000000001"
2026-10-05,gpt-4o,output,200000,2.000000000001
`;

const readers = createPageReaders({});
const countedRows = (org: TestOrganization) =>
  listCountedRows(org.orgDb, {
    ...{ provider: 'openai', accountId: '', days: ['2026-10-05'], models: ['gpt-4o'], labels: [] },
  });

async function importBill(org: TestOrganization, bytes: Buffer, filename: string): Promise<void> {
  const { body } = await uploadBill(api, bytes, { provider: 'openai' }, { key: org.adminKey, filename });
  const deps = { database: api.database.database, readBillingFile };
  await readImport(deps, org.orgDb, findUuid('imp', body.import_id) ?? '', new AbortController().signal);
}

const recordsOf = (files: readonly { name: string; bytes: Buffer }[]) =>
  (files.find(({ name }) => name === 'pages/records.jsonl')?.bytes ?? '')
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('rows', () => {
  it('of a text file appear in its records, each in a separate one', async () => {
    const org = await api.addOrganization();
    await importBill(org, Buffer.from(BILL), 'October, the whole of it.csv');
    const located = await locateRows(org.orgDb, await countedRows(org), readers);
    expect(located.files.map(({ name }) => name)).toEqual(['pages/001-October-the-whole-of-it.csv']);
    expect(located.files[0]?.bytes.toString()).toBe(BILL);
    expect([...located.rows.values()].map(({ at }) => at).sort()).toEqual(['#0', '#1', '#2']);
    expect([...located.rows.values()][1]).toMatchObject({
      amount: [{ at: 'amount_usd', times: '1' }],
      quantity: [{ at: 'quantity', times: '1' }],
      fx_rate: null,
    });
  });

  it('of a packed file are shown by their records, beside the file as it was received', async () => {
    const org = await api.addOrganization();
    const packed = gzipSync(BILL);
    await importBill(org, packed, 'bill.csv.gz');
    const located = await locateRows(org.orgDb, await countedRows(org), readers);
    expect(located.unlocated).toBe(0);
    expect(located.pages).toMatchObject([
      { file: 'pages/001-bill.csv.gz', kept: 'whole', bytes: packed.length },
    ]);
    expect(located.files[0]?.bytes.equals(packed)).toBe(true);
    expect(
      recordsOf(located.files)
        .map(({ numbers }) => numbers.amount_usd)
        .sort(),
    ).toEqual(['2.000000000001', '2.000000000001', '2.5']);
    expect([...located.rows.values()].map(({ page, at }) => `${page} ${at}`)).toEqual(
      Array.from({ length: 3 }, () => 'pages/records.jsonl /numbers'),
    );
  });

  it('whose file is missing are shown as they were imported, and counted', async () => {
    const org = await api.addOrganization();
    await storeBill(api, org, 'openai', await readBill(BILL, { provider: 'openai' }));
    const located = await locateRows(org.orgDb, await countedRows(org), readers);
    expect([located.unlocated, located.pages.map(({ kept }) => kept)]).toEqual([3, ['left_out']]);
    expect(recordsOf(located.files)).toHaveLength(3);
  });
});

describe('the table of a claim', () => {
  it('has no cell that a spreadsheet takes for a formula, and quotes names that need quotes', () => {
    const cell = {
      ...{ dispute_id: 'dsp_1', day: '2026-10-05', model: '=cmd("x"),1', token_class: '+input' },
      ...{ service_tier: '@tier', is_batch: null, long_context: true, region: '-region', basis: 'rates' },
      ...{ billed_quantity: '5', right_quantity: '5', observed_quantity: null, billed_rate_usd: 2 },
      ...{
        expected_rate_usd: null,
        billed_usd_exact: '-1.5',
        expected_usd_exact: '1',
        difference_usd_exact: '-2.5',
      },
    };
    const totals = { recoverable_usd_exact: '-2.5', recoverable_cents: -250 };
    const evidence = { cells: [cell], undercharges: [], totals };
    const [, line, total] = claimCsv(evidence as unknown as ClaimEvidence).split('\r\n');
    expect(line).toBe(
      `dsp_1,2026-10-05,"'=cmd(""x""),1",'+input,'@tier,,true,'-region,5,5,,2,-1.5,,1,-2.5,rates`,
    );
    expect(total).toBe(',,,total,,,,,,,,,,,,-2.5,');
  });
});
