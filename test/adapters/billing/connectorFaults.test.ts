/** Whatever faults the requests of a chunk meet, a caller that obeys the error codes gets every page once. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { BillingConnector, FetchedPage, ReportChunk } from '../../../adapters/billing/connector.js';
import { checkCoverage } from '../../../domain/billing/coverage.js';
import { DomainError } from '../../../domain/errors.js';
import type { BillingFake } from '../../fakes/billing/reportServer.js';
import {
  accessOf,
  connectorAt,
  PROVIDER_NAMES,
  type ProviderName,
  startProvider,
  stopProviders,
} from './support/connections.js';
import { NOW_MICROS } from './support/truths.js';

const WINDOW = { fromDay: '2026-09-01', toDay: '2026-10-11' };
const ATTEMPTS_MAX = 400;

afterEach(stopProviders);

/** A change between two requests. */
type Event = 'nothing' | 'outage' | 'cut_body' | 'forget_pages' | 'smaller_pages' | 'larger_pages';
const events = fc.array(
  fc.constantFrom<Event>(
    'nothing',
    'nothing',
    'outage',
    'cut_body',
    'forget_pages',
    'smaller_pages',
    'larger_pages',
  ),
  { minLength: 5, maxLength: 60 },
);

function befall(fake: BillingFake, event: Event | undefined): void {
  if (event === 'outage') fake.faults.inject({ kind: 'outage', status: 404, requests: 1 });
  else if (event === 'cut_body') fake.faults.inject({ kind: 'cut_body', requests: 1 });
  else if (event === 'forget_pages') fake.invalidatePages();
  else if (event === 'smaller_pages') fake.limitPages(3);
  else if (event === 'larger_pages') fake.limitPages(17);
}

/** Fetches a chunk as its caller should: passing failures are repeated, changed paging begins again. */
async function follow(
  provider: ProviderName,
  connector: BillingConnector,
  chunk: ReportChunk,
  before: () => void,
): Promise<FetchedPage[]> {
  let pages: FetchedPage[] = [];
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    before();
    const cursor = pages[pages.length - 1]?.nextCursor ?? null;
    try {
      pages.push(await connector.fetchPage(accessOf(provider), chunk, cursor));
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (error.code === 'provider_paging_changed') pages = [];
      else if (error.code !== 'provider_unavailable') throw error;
      continue;
    }
    if (pages[pages.length - 1]?.nextCursor === null) return pages;
  }
  throw new Error('the chunk was never complete');
}

describe.each(PROVIDER_NAMES)('a chunk of %s', (provider) => {
  it('is whole and single after any run of outages, broken answers and changes of paging', async () => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const [chunk] = connector.plan(WINDOW, NOW_MICROS) as [ReportChunk];
    const untroubled = resultsOf(await follow(provider, connector, chunk, () => undefined));
    await fc.assert(
      fc.asyncProperty(events, async (happenings) => {
        fake.faults.clear();
        fake.limitPages(5);
        let at = 0;
        const pages = await follow(provider, connector, chunk, () => {
          befall(fake, happenings[at]);
          at += 1;
        });
        const buckets = pages.flatMap((page) => page.buckets);
        expect(checkCoverage(chunk, buckets, NOW_MICROS)).toEqual({ outcome: 'complete' });
        expect(resultsOf(pages)).toEqual(untroubled);
      }),
      { numRuns: 25 },
    );
  });
});

function resultsOf(pages: readonly FetchedPage[]): unknown[] {
  return pages.flatMap((page) => (JSON.parse(page.body.toString()) as { data: unknown[] }).data);
}
