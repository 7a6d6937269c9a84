/** Results as saved pages. */
import { type BucketResults, pageTexts } from '../bills/pages.js';
import { ACCOUNTS } from './company.js';
import type { DemoProvider } from './prices.js';

export interface DemoFile {
  provider: DemoProvider;
  account: string;
  name: string;
  /** Consecutive pages, one a line. */
  text: string;
}

/** Buckets of a page: a month of days. */
const PAGE_BUCKETS = 31;

export function savedPages(
  provider: DemoProvider,
  name: string,
  buckets: readonly BucketResults[],
): DemoFile {
  const text = `${pageTexts(provider, buckets, PAGE_BUCKETS).join('\n')}\n`;
  return { provider, account: ACCOUNTS[provider], name, text };
}
