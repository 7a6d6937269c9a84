import { z } from 'zod';
import { DomainError } from '../../domain/errors.js';
import { parseInstant } from '../../domain/period.js';
import type { BucketTimes } from './connector.js';

/** What is read of a page here: its buckets' times and its paging. Amounts are read from the bytes, exactly. */
export interface PageEnvelope {
  buckets: BucketTimes[];
  nextCursor: string | null;
}

/** Buckets of one page: the largest that a provider documents are the minutes of a day. */
const BUCKETS_MAX = 1_440;

const seconds = z.number().int().min(0).max(253_402_300_800);
const paging = {
  has_more: z.boolean(),
  next_page: z.string().min(1).max(8_192).nullish(),
};
const results = z.array(z.record(z.string(), z.unknown()));

const openaiPage = z.object({
  data: z.array(z.object({ start_time: seconds, end_time: seconds, results })).max(BUCKETS_MAX),
  ...paging,
});

const anthropicPage = z.object({
  data: z.array(z.object({ starting_at: z.string(), ending_at: z.string(), results })).max(BUCKETS_MAX),
  ...paging,
});

/** Of `{"object":"page","data":[{start_time, end_time, results}], has_more, next_page}`; errors as `readEnvelope`. */
export function readOpenaiEnvelope(body: Buffer, cursor: string | null): PageEnvelope {
  const page = readEnvelope(openaiPage, body, 'OpenAI');
  const buckets = page.data.map((bucket) => ({
    startMicros: BigInt(bucket.start_time) * 1_000_000n,
    endMicros: BigInt(bucket.end_time) * 1_000_000n,
  }));
  return { buckets, nextCursor: nextCursorOf(page, cursor, 'OpenAI') };
}

/** Of `{data:[{starting_at, ending_at, results}], has_more, next_page}`; errors as `readEnvelope`. */
export function readAnthropicEnvelope(body: Buffer, cursor: string | null): PageEnvelope {
  const page = readEnvelope(anthropicPage, body, 'Anthropic');
  const buckets = page.data.map((bucket) => ({
    startMicros: instantOf(bucket.starting_at),
    endMicros: instantOf(bucket.ending_at),
  }));
  return { buckets, nextCursor: nextCursorOf(page, cursor, 'Anthropic') };
}

/** Error provider_answer_unreadable naming the place where the answer is not the documented shape. */
export function readEnvelope<S extends z.ZodType>(schema: S, body: Buffer, name: string): z.output<S> {
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8'));
  } catch {
    throw unreadable(name, 'it is not JSON');
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = (issue?.path ?? []).map(String).join('.').slice(0, 80);
  throw unreadable(name, `${path === '' ? 'the answer' : path} is not as documented`);
}

function nextCursorOf(
  page: { has_more: boolean; next_page?: string | null | undefined },
  cursor: string | null,
  name: string,
): string | null {
  if (!page.has_more) return null;
  if (page.next_page && page.next_page !== cursor) return page.next_page;
  throw new DomainError(
    'provider_paging_changed',
    page.next_page
      ? `${name} named the page that was asked for as the next one; the chunk is fetched from its beginning`
      : `${name} says that there is more and names no next page; the chunk is fetched from its beginning`,
  );
}

function instantOf(text: string): bigint {
  const instant = parseInstant(text);
  if (!instant) throw unreadable('Anthropic', 'a bucket has no time that can be read');
  return instant.micros;
}

function unreadable(name: string, reason: string): DomainError {
  return new DomainError('provider_answer_unreadable', `the answer of ${name} cannot be read: ${reason}`);
}
