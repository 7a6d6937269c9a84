/** Reads an organization's events back through the API and compares them with a client's expected events. */
import { expect } from 'vitest';
import type { ExpectedEvent } from './expectedEvents.js';

/** An event in an answer of the API; only the fields that are compared. */
export interface WireEvent {
  id: string;
  provider: string;
  billed_by: string;
  model: string;
  response_model: string | null;
  status: string;
  http_status: number | null;
  input_tokens: number;
  output_tokens: number;
  cache_read: number;
  cache_creation: number;
  cache_creation_1h: number | null;
  reasoning_tok: number;
  cached_tok: number;
  cost_usd: number;
  cost_source: string;
  price_gaps: string[];
  request_id: string | null;
  superseded_by: string | null;
  usage_missing: string[];
  usage_flags: string[];
  usage_source: string;
  input_semantics: string;
}

/** An event with its cost in all its digits. */
export interface ObservedEvent extends WireEvent {
  usd: string;
}

const DAY_MILLIS = 86_400_000;
const COST_DIGITS = /"cost_usd":([0-9.eE+-]+)/;

/** All live events of an organization about a time, from the export: it writes amounts as exact decimals. */
export async function readEvents(baseUrl: string, key: string, atMillis: number): Promise<ObservedEvent[]> {
  const start = new Date(atMillis - DAY_MILLIS).toISOString();
  const end = new Date(atMillis + DAY_MILLIS).toISOString();
  const response = await fetch(`${baseUrl}/api/v1/events/export?start=${start}&end=${end}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`export answered ${response.status}: ${text}`);
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => ({
      ...(JSON.parse(line) as WireEvent),
      usd: plainDecimal(COST_DIGITS.exec(line)?.[1] ?? 'absent'),
    }));
}

function plainDecimal(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/**
 * One call, one event: the two sets agree in every token class and to the last digit of the cost. Calls without an id
 * are identified by their counts, so equal calls must exist as often as they were made.
 */
export function expectEvents(observed: readonly ObservedEvent[], expected: readonly ExpectedEvent[]): void {
  const seen = observed.map(lineOfObserved);
  const due = expected.map(lineOfExpected);
  expect({ absent: without(due, seen), unexpected: without(seen, due) }).toEqual({
    absent: [],
    unexpected: [],
  });
  const ids = (values: (string | null)[]) => values.filter((value) => value !== null).sort();
  const told = new Set(expected.map((event) => event.responseId));
  expect(ids(observed.map((event) => event.request_id).filter((id) => told.has(id)))).toEqual(
    ids(expected.map((event) => event.responseId)),
  );
  expectMissingNamed(observed, expected);
}

/** The rest of a list after each line of another list has removed one equal line. */
function without(lines: readonly string[], taken: readonly string[]): string[] {
  const left = [...lines].sort();
  for (const line of taken) {
    const index = left.indexOf(line);
    if (index >= 0) left.splice(index, 1);
  }
  return left;
}

/** Where a client omits required data, the event names the missing class. */
function expectMissingNamed(observed: readonly ObservedEvent[], expected: readonly ExpectedEvent[]): void {
  const byLine = new Map<string, ExpectedEvent[]>();
  for (const event of expected) {
    const line = lineOfExpected(event);
    byLine.set(line, [...(byLine.get(line) ?? []), event]);
  }
  for (const event of observed) {
    const twin = byLine.get(lineOfObserved(event))?.pop();
    const unnamed = twin?.missing.filter((name) => !event.usage_missing.includes(name));
    expect({ call: twin?.callId, event: event.id, unnamed, named: event.usage_missing }).toMatchObject({
      unnamed: [],
    });
  }
}

function lineOfExpected(event: ExpectedEvent): string {
  return line({
    ...event,
    write: event.cacheCreation,
    write1h: event.cacheCreation > 0 ? event.cacheCreation1h : 0,
    cached: event.provider === 'openai' ? event.cacheRead : 0,
    model: event.pricedModel,
    source: event.costSource,
    gaps: event.priceGaps,
  });
}

function lineOfObserved(event: ObservedEvent): string {
  return line({
    provider: event.provider,
    model: event.response_model ?? event.model,
    status: event.status,
    httpStatus: event.status === 'error' ? event.http_status : null,
    input: event.input_tokens,
    cacheRead: event.cache_read,
    write: event.cache_creation,
    write1h: event.cache_creation > 0 ? event.cache_creation_1h : 0,
    output: event.output_tokens,
    reasoning: event.reasoning_tok,
    cached: event.cached_tok,
    usd: event.usd,
    source: event.cost_source,
    gaps: event.price_gaps,
  });
}

interface Line {
  provider: string;
  model: string;
  status: string;
  httpStatus: number | null;
  input: number;
  cacheRead: number;
  write: number;
  write1h: number | null;
  output: number;
  reasoning: number;
  cached: number;
  usd: string;
  source: string;
  gaps: readonly string[];
}

function line(event: Line): string {
  const write = event.write1h === null ? `${event.write}` : `${event.write} (1h ${event.write1h})`;
  return (
    `${event.provider} ${event.model} ${event.status}${event.httpStatus === null ? '' : ` ${event.httpStatus}`}: input ${event.input} read ${event.cacheRead} ` +
    `write ${write} output ${event.output} reasoning ${event.reasoning} cached ${event.cached} ` +
    `= $${event.usd} ${event.source} [${event.gaps.join(',')}]`
  );
}
