import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { daysAgo, type PublishedDay, publishDays } from '../../support/publishedDays.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

/** Twelve days of five models, with ties. */
const DAYS: PublishedDay[] = Array.from({ length: 60 }, (_, at) => ({
  day: daysAgo(1 + (at % 12)),
  model: `model-${Math.floor(at / 12)}`,
  status: 'partial',
  billedUsd: String(10 + (at % 4)),
  ourUsd: '10',
  matchedUsd: '10',
}));

// biome-ignore lint/suspicious/noExplicitAny: two lists of different records
type Row = any;

const LISTS: readonly [path: string, name: string, of: (row: Row) => string][] = [
  ['/api/v1/reconciliation/matches', 'matches', (row) => `${row.usage_start} ${row.model}`],
  ['/api/v1/reconciliation/gap-explorer', 'gaps', (row) => `${row.bucket} ${row.model}`],
];

describe('a list that is read page by page while runs publish the same days again', () => {
  it.each(LISTS)('%s returns every record once, and its totals with each page', async (path, name, of) => {
    const org = await api.addOrganization();
    await publishDays(api.database, org.orgId, DAYS);
    const seen: string[] = [];
    let query = '?limit=13';
    for (;;) {
      const publishing = publishDays(api.database, org.orgId, DAYS);
      const { status, body } = await api.get(path + query, org.adminKey);
      expect(status).toBe(200);
      seen.push(...body[name].map(of));
      if (name === 'matches') expect(body.totals).toEqual({ matched_usd: 600, unmatched_usd: 90 });
      else expect(body.total).toBe(60);
      await publishing;
      if (!body.has_more) break;
      query = `?limit=13&cursor=${body.next_cursor}`;
    }
    expect(seen.sort()).toEqual(DAYS.map((day) => `${day.day}T00:00:00Z ${day.model}`).sort());
  });
});
