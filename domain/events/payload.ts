/** What is kept of an item beside its fields: at most 256 attributes, at most 256 KB. */
import { type AttributeValue, jsonOf, readAnyValue } from './anyValue.js';
import { type Json, PAYLOAD_ATTRIBUTES_MAX, PAYLOAD_BYTES_MAX } from './event.js';
import { setOwn, stripText } from './stripText.js';

/** Events of a span that are kept with their attributes. */
const SPAN_EVENTS_MAX = 128;

/** Unread attributes (names and values alternating) and the span's events; null when there are none. */
export function payloadOfSpan(unread: readonly AttributeValue[], events: unknown): Json | null {
  const keptEvents = readEvents(events);
  if (unread.length === 0 && keptEvents.length === 0) return null;
  const payload: { [key: string]: Json } = {};
  const end = Math.min(unread.length, PAYLOAD_ATTRIBUTES_MAX * 2);
  for (let index = 0; index < end; index += 2)
    setOwn(payload, unread[index] as string, jsonOf(unread[index + 1]));
  if (keptEvents.length > 0) payload._events = keptEvents;
  return withinLimit(payload);
}

function readEvents(events: unknown): Json[] {
  if (!Array.isArray(events)) return [];
  const kept: Json[] = [];
  for (const event of events.slice(0, SPAN_EVENTS_MAX) as ({
    name?: unknown;
    attributes?: unknown;
  } | null)[]) {
    if (typeof event !== 'object' || event === null) continue;
    const attributes: { [key: string]: Json } = {};
    const pairs = Array.isArray(event.attributes) ? event.attributes.slice(0, PAYLOAD_ATTRIBUTES_MAX) : [];
    for (const pair of pairs as ({ key?: unknown; value?: unknown } | null)[]) {
      if (typeof pair?.key === 'string')
        setOwn(attributes, stripText(pair.key), jsonOf(readAnyValue(pair.value)));
    }
    kept.push({ name: typeof event.name === 'string' ? stripText(event.name) : '', attributes });
  }
  return kept;
}

/** The value, or a note of its size where its JSON text is longer than the limit: never a part of it. */
export function withinLimit(value: Json, bytesMax = PAYLOAD_BYTES_MAX): Json {
  // Stripped text has no character of more than two bytes once escaped, so the cheap bound spares writing it out.
  if (jsonCharsBound(value, bytesMax) <= bytesMax) return value;
  const bytes = JSON.stringify(value).length;
  return bytes <= bytesMax ? value : { _truncated: true, bytes };
}

const NUMBER_CHARS = 25;

/** An upper bound of the length of the value's JSON text, or some number above `enough` where it is longer. */
export function jsonCharsBound(value: Json, enough: number): number {
  if (typeof value === 'string') return value.length * 2 + 2;
  if (typeof value !== 'object' || value === null) return NUMBER_CHARS;
  let bound = 2;
  if (Array.isArray(value)) {
    for (const item of value) {
      bound += jsonCharsBound(item, enough - bound) + 1;
      if (bound > enough) break;
    }
    return bound;
  }
  for (const key in value) {
    bound += key.length * 2 + 4 + jsonCharsBound(value[key] as Json, enough - bound);
    if (bound > enough) break;
  }
  return bound;
}
