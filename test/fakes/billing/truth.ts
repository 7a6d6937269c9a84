import type { BucketResults } from '../../../lab/bills/pages.js';

/**
 * The data of a loopback provider: every result that it has ever billed, by report and bucket, in the provider's JSON.
 * A number that a double cannot hold exactly, or whose digits matter, is written as `{ $number: '0.0600' }` and appears
 * in the answer with those digits; everything else is written as JSON.stringify does. OpenAI's amount is therefore `{
 * value: { $number: '0.06' }, currency: 'usd' }`, and Anthropic's is the string `'123.78912'` of cents.
 */

/** Costs by UTC day, usage by hour; a bucket without results may be left out. */
export interface ProviderTruth {
  accountId: string;
  /** Shown by Anthropic beside the id, and by OpenAI in a header. */
  name?: string;
  /** The last part of a report's path (`costs`, `completions`, `cost_report`, `messages`, …) → its buckets. */
  reports: Record<string, BucketResults[]>;
}
