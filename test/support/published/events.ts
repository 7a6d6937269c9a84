import { type Calls, type Day, type PublishedCase, shiftDay } from './case.js';

/** A published case's calls, as items of POST /api/v1/ingest/events: spread over the days, none at a boundary. */
export function eventsOf(one: PublishedCase): object[] {
  return one.days.flatMap((day) =>
    day.calls.flatMap((calls, kind) =>
      Array.from({ length: calls.count }, (_, index) =>
        eventOf(one, day, calls, `${day.day}-${kind}-${index}`, index),
      ),
    ),
  );
}

const DAY_SECONDS = 86_400;

function eventOf(one: PublishedCase, { day }: Day, calls: Calls, id: string, index: number): object {
  const each = one.told?.(calls) ?? calls.each;
  const [written5m, written1h] = [each.cache_write_5m ?? 0, each.cache_write_1h ?? 0];
  const second = Math.floor(((index + 0.5) / calls.count) * (DAY_SECONDS - 60));
  const at = new Date(Date.parse(`${day}T00:00:00Z`) + second * 1_000).toISOString();
  return {
    provider: one.provider,
    model: one.model,
    request_id: `req-${id}`,
    timestamp: at,
    end_at: at,
    input_tokens: each.input ?? 0,
    cache_read: each.cache_read ?? 0,
    cache_creation: written5m + written1h,
    cache_creation_5m: written5m,
    cache_creation_1h: written1h,
    output_tokens: each.output ?? 0,
    is_batch: calls.isBatch ?? false,
    feature: 'chat',
  };
}

/** By how many days a case moves so that its last day is `back` days before today. */
export function daysUntilBefore(one: PublishedCase, today: string, back: number): number {
  const last = one.days.at(-1)?.day ?? today;
  return Math.round((Date.parse(shiftDay(today, -back)) - Date.parse(last)) / (DAY_SECONDS * 1_000));
}
