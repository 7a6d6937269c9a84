/**
 * What a loopback provider knows: every result that it has ever billed, by report and bucket, in the provider's own
 * JSON. A number that a double cannot hold exactly, or whose digits matter, is given as `{ $number: '0.0600' }` and
 * stands in the answer as those digits; everything else is written as JSON.stringify does. So OpenAI's amount is
 * `{ value: { $number: '0.06' }, currency: 'usd' }`, and Anthropic's is the string `'123.78912'` of cents.
 */

/** A number by its decimal text, written into the answer as it stands. */
export interface NumberText {
  $number: string;
}

/** Results of one bucket; each result is exactly the provider's JSON, grouped by everything that can be grouped by. */
export interface BucketResults {
  startSeconds: number;
  endSeconds: number;
  results: object[];
}

/** Costs by UTC day, usage by hour; a bucket without results may be left out. */
export interface ProviderTruth {
  accountId: string;
  /** Shown by Anthropic beside the id, and by OpenAI in a header. */
  name?: string;
  /** The last part of a report's path (`costs`, `completions`, `cost_report`, `messages`, …) → its buckets. */
  reports: Record<string, BucketResults[]>;
}

export function isNumberText(value: unknown): value is NumberText {
  return typeof value === 'object' && value !== null && typeof (value as NumberText).$number === 'string';
}
