/** Each event's cost is shown as a sum that a reader can follow to the same digits. */
import { expect } from 'vitest';
import type { TestApi } from '../../support/api.js';
import { sumUsd } from '../costCalculator.js';
import type { ObservedEvent } from './observedEvents.js';

interface ExplainedLine {
  token_class: string;
  tokens: number;
  amount: string;
}

/** Requests the calculation of every priced call: its lines have the event's tokens, and sum to the event's cost. */
export async function expectExplained(
  api: TestApi,
  adminKey: string,
  events: readonly ObservedEvent[],
): Promise<void> {
  for (const event of events) {
    if (event.cost_source !== 'computed' || event.status !== 'ok') continue;
    const { status, body } = await api.get(`/api/v1/events/${event.id}/cost`, adminKey);
    const lines = body.computed.lines as ExplainedLine[];
    const tokens = Object.fromEntries(lines.map((line) => [line.token_class, line.tokens]));
    const written1h = event.cache_creation_1h ?? 0;
    const classes = {
      input: event.input_tokens,
      cache_read: event.cache_read,
      cache_write_5m: event.cache_creation - written1h,
      cache_write_1h: written1h,
      output: event.output_tokens,
    };
    const used = Object.fromEntries(Object.entries(classes).filter(([, count]) => count > 0));
    expect({ status, tokens, total: body.computed.total }).toEqual({
      status: 200,
      tokens: used,
      total: event.usd,
    });
    expect(sumUsd(lines.map((line) => line.amount))).toBe(event.usd);
  }
}
