/** A connector fetches every result of the provider exactly once, and fetched pages are read like saved ones. */
import { afterEach, describe, expect, it } from 'vitest';
import type { FetchedPage, ReportChunk } from '../../../adapters/billing/connector.js';
import { readBillingFile } from '../../../adapters/billing/file.js';
import type { BilledRow } from '../../../domain/billing/billedRow.js';
import { checkCoverage } from '../../../domain/billing/coverage.js';
import { pageKindOf } from '../../../domain/billing/pageRow.js';
import { exactJson } from '../../../lab/bills/exactJson.js';
import type { BucketResults } from '../../../lab/bills/pages.js';
import {
  accessOf,
  connectorAt,
  fetchChunk,
  PROVIDER_NAMES,
  type ProviderName,
  startProvider,
  stopProviders,
} from './support/connections.js';
import { anthropicTruth, NOW_MICROS, openaiTruth } from './support/truths.js';

const WINDOW = { fromDay: '2026-09-01', toDay: '2026-10-11' };

afterEach(stopProviders);

async function readRows(provider: ProviderName, bodies: Buffer[], chunk?: ReportChunk): Promise<BilledRow[]> {
  async function* bytes() {
    yield* bodies;
  }
  const reader = readBillingFile(bytes(), {
    provider,
    format: undefined,
    fxRate: undefined,
    skip: new Set(),
    ...(chunk ? { expected: pageKindOf(provider, chunk.feed, chunk.report) } : {}),
  });
  const rows: BilledRow[] = [];
  for (;;) {
    const next = await reader.next();
    if (next.done) {
      expect(next.value.superseded.size).toBe(0);
      return rows;
    }
    rows.push(...next.value.map(({ row }) => row));
  }
}

/** The truth of a report as one saved page. */
function savedPage(provider: ProviderName, buckets: readonly BucketResults[]): Buffer {
  const iso = (seconds: number) => new Date(seconds * 1_000).toISOString().replace('.000', '');
  const data = buckets.map(({ startSeconds, endSeconds, results }) =>
    provider === 'openai'
      ? { object: 'bucket', start_time: startSeconds, end_time: endSeconds, results }
      : { starting_at: iso(startSeconds), ending_at: iso(endSeconds), results },
  );
  return Buffer.from(exactJson({ data, has_more: false, next_page: null }));
}

const shown = (rows: BilledRow[]) =>
  rows
    .map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)))
    .sort();

describe.each(PROVIDER_NAMES)('the pages of %s', (provider) => {
  it('contain every chunk of the plan once and whole', async () => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const plan = connector.plan(WINDOW, NOW_MICROS);
    for (const chunk of plan) {
      const pages = await fetchChunk(connector, accessOf(provider), chunk);
      const buckets = pages.flatMap((page) => page.buckets);
      expect(checkCoverage(chunk, buckets, NOW_MICROS)).toEqual({ outcome: 'complete' });
      // A chunk is one page of the provider, so that paging is the exception.
      expect(pages).toHaveLength(1);
    }
    expect(fake.requests.every(({ status }) => status === 200)).toBe(true);
    expect(fake.requests).toHaveLength(plan.length);
  });

  it('yield the rows of the saved page of the same report', async () => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const truth = provider === 'openai' ? openaiTruth() : anthropicTruth();
    const recent = { fromDay: '2026-09-11', toDay: '2026-10-11' };
    const since = Date.UTC(2026, 8, 11) / 1_000;
    const plan = connector.plan(recent, NOW_MICROS);
    for (const [report, buckets] of Object.entries(truth.reports)) {
      const chunks = plan.filter((chunk) => chunk.report === report);
      const rows: BilledRow[] = [];
      for (const chunk of chunks) {
        const pages = await fetchChunk(connector, accessOf(provider), chunk);
        rows.push(...(await readRows(provider, bodiesOf(pages), chunk)));
      }
      const saved = savedPage(
        provider,
        buckets.filter((bucket) => bucket.startSeconds >= since),
      );
      expect(rows.length, report).toBeGreaterThan(0);
      expect(shown(rows), report).toEqual(shown(await readRows(provider, [saved])));
    }
  });

  it('are the same whatever the size of a page', async () => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const [chunk] = connector.plan(WINDOW, NOW_MICROS) as [ReportChunk];
    const whole = await readRows(provider, bodiesOf(await fetchChunk(connector, accessOf(provider), chunk)));
    fake.limitPages(3);
    const pages = await fetchChunk(connector, accessOf(provider), chunk);
    expect(pages.length).toBeGreaterThan(10);
    expect(await readRows(provider, bodiesOf(pages))).toEqual(whole);
  });

  it('that are too large for one answer are asked for in smaller ones, also by another process', async () => {
    const fake = await startProvider(provider);
    const [chunk] = connectorAt(provider, fake.origin).plan(WINDOW, NOW_MICROS) as [ReportChunk];
    const ample = connectorAt(provider, fake.origin);
    const [whole] = await fetchChunk(ample, accessOf(provider), chunk);
    const pageBytesMax = Math.floor((whole?.body.length ?? 0) / 4);
    const pages: FetchedPage[] = [];
    const before = fake.requests.length;
    for (let cursor: string | null = null; ; ) {
      // A new connector without state: the cursor contains the page size that fitted.
      const page: FetchedPage = await connectorAt(provider, fake.origin, { pageBytesMax }).fetchPage(
        accessOf(provider),
        chunk,
        cursor,
      );
      pages.push(page);
      cursor = page.nextCursor;
      if (cursor === null) break;
    }
    expect(pages.length).toBeGreaterThan(4);
    expect(fake.requests.length - before).toBeLessThan(2 * pages.length);
    expect(
      checkCoverage(
        chunk,
        pages.flatMap((page) => page.buckets),
        NOW_MICROS,
      ),
    ).toEqual({ outcome: 'complete' });
    expect(shown(await readRows(provider, bodiesOf(pages)))).toEqual(
      shown(await readRows(provider, bodiesOf(whole ? [whole] : []))),
    );
  });

  it('keep their number when the provider makes its pages smaller in the middle', async () => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const [chunk] = connector.plan(WINDOW, NOW_MICROS) as [ReportChunk];
    fake.limitPages(20);
    const first = await connector.fetchPage(accessOf(provider), chunk, null);
    fake.limitPages(2);
    const pages = [first];
    for (let cursor = first.nextCursor; cursor !== null; ) {
      const page = await connector.fetchPage(accessOf(provider), chunk, cursor);
      pages.push(page);
      cursor = page.nextCursor;
    }
    const buckets = pages.flatMap((page) => page.buckets);
    expect(checkCoverage(chunk, buckets, NOW_MICROS)).toEqual({ outcome: 'complete' });
  });

  it('are kept byte for byte, with what was asked and the provider’s name for the answer', async () => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const [chunk] = connector.plan(WINDOW, NOW_MICROS) as [ReportChunk];
    const page = await connector.fetchPage(accessOf(provider), chunk, null);
    expect(page.status).toBe(200);
    expect(page.fetchedAtMicros).toBe(NOW_MICROS);
    expect(page.providerRequestId).toBe('req_fake_1');
    expect(page.requestPath.startsWith(`${fake.requests[0]?.path}?`)).toBe(true);
    expect(page.body.toString()).toContain(provider === 'openai' ? '12345678.123456789012' : '"0.000001"');
  });

  it('of a report without results mark their days as billing nothing', async () => {
    const fake = await startProvider(provider);
    fake.setTruth({ accountId: 'empty', reports: {} });
    const connector = connectorAt(provider, fake.origin);
    const [chunk] = connector.plan(WINDOW, NOW_MICROS) as [ReportChunk];
    const pages = await fetchChunk(connector, accessOf(provider), chunk);
    expect(pages.flatMap((page) => page.buckets).length).toBeGreaterThan(30);
    expect(await readRows(provider, bodiesOf(pages), chunk)).toEqual([]);
  });
});

function bodiesOf(pages: readonly FetchedPage[]): Buffer[] {
  return pages.map((page) => page.body);
}
