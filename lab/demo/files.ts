/** Results as the pages that somebody would have saved, in the providers' own envelopes. */
import { rfc3339 } from './calendar.js';
import { ACCOUNTS } from './company.js';
import type { DemoProvider } from './prices.js';
import type { BucketResults } from './reports.js';

export interface DemoFile {
  provider: DemoProvider;
  account: string;
  name: string;
  /** Pages one after the other, a line each. */
  text: string;
}

/** Buckets of a page: a month of days. */
const PAGE_BUCKETS = 31;

export function savedPages(
  provider: DemoProvider,
  name: string,
  buckets: readonly BucketResults[],
): DemoFile {
  const pages: string[] = [];
  for (let start = 0; start < buckets.length; start += PAGE_BUCKETS) {
    const end = start + PAGE_BUCKETS;
    const next = end < buckets.length ? `page_${end}` : null;
    pages.push(JSON.stringify(pageOf(provider, buckets.slice(start, end), next)));
  }
  return { provider, account: ACCOUNTS[provider], name, text: `${pages.join('\n')}\n` };
}

function pageOf(provider: DemoProvider, buckets: readonly BucketResults[], next: string | null): object {
  const rest = { has_more: next !== null, next_page: next };
  if (provider === 'openai') {
    const data = buckets.map(({ startSeconds, endSeconds, results }) => ({
      object: 'bucket',
      start_time: startSeconds,
      end_time: endSeconds,
      results,
    }));
    return { object: 'page', data, ...rest };
  }
  const data = buckets.map(({ startSeconds, endSeconds, results }) => ({
    starting_at: rfc3339(startSeconds),
    ending_at: rfc3339(endSeconds),
    results,
  }));
  return { data, ...rest };
}
