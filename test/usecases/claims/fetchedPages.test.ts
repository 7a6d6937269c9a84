import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPageReaders } from '../../../adapters/billing/locateRows.js';
import { type CountedRow, listCountedRows } from '../../../db/claims/evidence.js';
import { locateRows, rowId } from '../../../usecases/claims/evidencePages.js';
import { pollToEnd } from '../../support/bills.js';
import { aConnection, CONNECTIONS, daysAgo, type FetchedProvider } from '../../support/fetchedBills.js';
import { type FetchingPlace, startFetchingPlace } from '../../support/fetchingPlace.js';

/** Rows of bills that connections have fetched, on the pages as they came. */

let place: FetchingPlace;

beforeAll(async () => {
  place = await startFetchingPlace();
  await place.engine.startWorker();
}, 300_000);

afterAll(() => place?.close());

const MODELS: Record<FetchedProvider, string> = { openai: 'gpt-4o-2024-08-06', anthropic: 'claude-opus-5' };
const RECORDS: Record<FetchedProvider, RegExp> = {
  openai: /^https:\/\/api\.openai\.com\/v1\/organization\/(costs|usage\/completions)\?/,
  anthropic: /^https:\/\/api\.anthropic\.com\/v1\/organizations\/(cost_report|usage_report\/messages)\?/,
};

describe.each(['openai', 'anthropic'] as const)(
  'the data that a connection to %s has fetched',
  (provider) => {
    it('has each row on a page, with its address, its time and its sha256', async () => {
      const org = await place.api.addOrganization();
      const { body } = await place.api.post(CONNECTIONS, aConnection(provider), org.adminKey);
      await pollToEnd(place.api, body.sync.status_url, 180_000, org.adminKey);
      const rows = await listCountedRows(org.orgDb, {
        ...{
          provider,
          accountId: '',
          days: [daysAgo(3), daysAgo(8)],
          models: [MODELS[provider]],
          labels: [],
        },
      });
      const located = await locateRows(org.orgDb, rows, createPageReaders(place.connectors));
      expect([located.unlocated, located.rows.size]).toEqual([0, rows.length]);
      expect(new Set(rows.map(({ feed }) => feed))).toEqual(new Set(['cost', 'usage']));
      for (const page of located.pages) {
        const bytes = located.files.find(({ name }) => name === page.file)?.bytes ?? Buffer.alloc(0);
        expect(page).toMatchObject({
          url: expect.stringMatching(RECORDS[provider]),
          sha256: createHash('sha256').update(bytes).digest('hex'),
          kept: 'whole',
        });
      }
      for (const row of rows) expect(numberOn(located, row)).toBe(row.amountPico ?? row.quantity);
    });
  },
);

/** The number that the place of a row leads to, in 1e-12 units, read by nothing of the product. */
function numberOn({ rows, files }: Awaited<ReturnType<typeof locateRows>>, row: CountedRow): bigint {
  const place = rows.get(rowId(row));
  const file = files.find(({ name }) => name === place?.page);
  let record = JSON.parse((file?.bytes ?? '').toString());
  for (const part of (place?.at ?? '').slice(1).split('/')) record = record[part];
  let sum = 0;
  for (const { at, times } of place?.amount ?? place?.quantity ?? []) {
    let value = record;
    for (const part of at.slice(1).split('/')) value = value[part];
    sum += Number(value) * Number(times);
  }
  return BigInt(Math.round(sum * 1e8)) * 10_000n;
}
