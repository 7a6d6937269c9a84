/** Results as pages in the providers' own envelopes. */
import { exactJson } from './exactJson.js';

/** Results of one bucket, each exactly as the provider's JSON. */
export interface BucketResults {
  startSeconds: number;
  endSeconds: number;
  results: object[];
}

/** `2026-11-02T00:00:00Z`. */
export const rfc3339 = (seconds: number) => new Date(seconds * 1_000).toISOString().replace('.000', '');

/** The JSON text of each page with `size` buckets. */
export function pageTexts(
  provider: 'openai' | 'anthropic',
  buckets: readonly BucketResults[],
  size: number,
): string[] {
  const pages: string[] = [];
  for (let start = 0; start < buckets.length; start += size) {
    const end = start + size;
    const rest = {
      has_more: end < buckets.length,
      next_page: end < buckets.length ? `page_${end}` : null,
    };
    const data = buckets.slice(start, end).map(provider === 'openai' ? openaiBucket : anthropicBucket);
    pages.push(exactJson(provider === 'openai' ? { object: 'page', data, ...rest } : { data, ...rest }));
  }
  return pages;
}

const openaiBucket = ({ startSeconds, endSeconds, results }: BucketResults): object => ({
  object: 'bucket',
  start_time: startSeconds,
  end_time: endSeconds,
  results,
});

const anthropicBucket = ({ startSeconds, endSeconds, results }: BucketResults): object => ({
  starting_at: rfc3339(startSeconds),
  ending_at: rfc3339(endSeconds),
  results,
});
