import { z } from 'zod';
import { microsOfDay } from '../../domain/period.js';
import type { BucketTimes } from './connector.js';
import { readEnvelope } from './pageEnvelope.js';

const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);
const token = z.string().min(1).max(8_192).nullish();

const costs = z.object({
  ResultsByTime: z.array(z.object({ TimePeriod: z.object({ Start: day, End: day }) })).max(400),
  NextPageToken: token,
});

const dimensions = z.object({
  DimensionValues: z.array(z.object({ Value: z.string().max(1_024) })).max(10_000),
  NextPageToken: token,
});

/** The days and the next page of an answer of GetCostAndUsage. Error provider_answer_unreadable. */
export function readCosts(body: Buffer): { buckets: BucketTimes[]; token: string | null } {
  const page = readEnvelope(costs, body, 'AWS');
  const buckets = page.ResultsByTime.map(({ TimePeriod }) => ({
    startMicros: microsOfDay(TimePeriod.Start),
    endMicros: microsOfDay(TimePeriod.End),
  }));
  return { buckets, token: page.NextPageToken ?? null };
}

/** The values of an answer of GetDimensionValues. Error provider_answer_unreadable. */
export function readDimensionValues(body: Buffer): string[] {
  return readEnvelope(dimensions, body, 'AWS').DimensionValues.map(({ Value }) => Value);
}
