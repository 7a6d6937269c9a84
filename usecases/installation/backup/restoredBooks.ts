import pg from 'pg';
import { finishTakenOut } from '../../../db/installation/monthPartitions.js';
import { type BookReading, type BookTotals, inOneSnapshot, readBooks, recountBooks } from './bookTotals.js';

/** What the books of a restored database say, held against those of its backup. */
export interface RestoredBooks {
  /** As the service will show them. */
  now: BookTotals[];
  /** Differences as sentences; none when everything agrees. */
  differences: string[];
}

/**
 * Reads the books of a restored database. The backup's own reading was taken a moment before its end, so the database
 * may hold more; what belongs to that moment is added up anew from the events and must be the same to the last digit.
 * So must the totals and the events of now, and what was billed where no bill was stored meanwhile.
 */
export async function readRestoredBooks(
  url: string,
  taken: { books: BookReading; billed_settled: boolean },
  options: { billed: boolean },
): Promise<RestoredBooks> {
  const client = new pg.Client({ connectionString: url, application_name: 'trueup-restore' });
  await client.connect();
  try {
    await finishTakenOut(client);
    return await inOneSnapshot(client, async () => {
      const now = (await readBooks(client, options)).organizations;
      const then = await recountBooks(client, taken.books.snapshot);
      const all = await recountBooks(client);
      return {
        now,
        differences: [
          ...compare(taken.books.organizations, then, 'the backup says', 'its events add up to'),
          ...(taken.billed_settled ? compareBilled(taken.books.organizations, now) : []),
          ...compare(now, all, 'the totals say', 'the events add up to'),
        ],
      };
    });
  } finally {
    await client.end();
  }
}

function compare(
  said: readonly BookTotals[],
  counted: ReadonlyMap<string, { calls: number; cost_usd: string }>,
  who: string,
  what: string,
): string[] {
  return said.flatMap(({ organization_id, calls, cost_usd }) => {
    const found = counted.get(organization_id) ?? { calls: 0, cost_usd: '0' };
    if (found.calls === calls && found.cost_usd === cost_usd) return [];
    return [
      `organization ${organization_id}: ${who} ${calls} calls and ${cost_usd} USD, ${what} ${found.calls} and ${found.cost_usd} USD`,
    ];
  });
}

function compareBilled(said: readonly BookTotals[], found: readonly BookTotals[]): string[] {
  return said.flatMap(({ organization_id, billed_usd }) => {
    const now = found.find((totals) => totals.organization_id === organization_id)?.billed_usd;
    if (billed_usd === null || now === null || now === billed_usd) return [];
    return [
      `organization ${organization_id}: the backup says ${billed_usd} USD billed, its bills add up to ${now} USD`,
    ];
  });
}
