/** Results as the pages that somebody would have saved. */
import { type BucketResults, pageTexts } from '../bills/pages.js';
import { ACCOUNTS } from './company.js';
import type { DemoProvider } from './prices.js';

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
  const text = `${pageTexts(provider, buckets, PAGE_BUCKETS).join('\n')}\n`;
  return { provider, account: ACCOUNTS[provider], name, text };
}
