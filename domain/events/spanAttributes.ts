/** Assigns attributes of a span, scope or resource to their meanings, in one pass with one look-up each. */

import { ATTRIBUTE_TABLE, type Meaning, SERVICE_PREFIX } from './attributeTable.js';
import { type Json, REPEATED_BYTES_MAX } from './event.js';
import { ItemFault } from './itemFault.js';
import {
  type AttributeValue,
  jsonOf,
  labelOf,
  mapOf,
  readAnyValue,
  setOwn,
  stripJson,
  stripText,
  withinLimit,
} from './jsonValues.js';

/** A name's value for a slot; a lower rank counts first. A copy is a value inside a map that is also kept whole. */
interface Offer {
  name: string;
  slot: number;
  rank: number;
  isCopy: boolean;
}

/** A value under a key of a map. */
interface CopyOffer extends Offer {
  key: string;
}

const MEANINGS = Object.keys(ATTRIBUTE_TABLE) as Meaning[];
const SLOTS = new Map<Meaning, number>(MEANINGS.map((meaning, slot) => [meaning, slot]));
const COST_SLOT = SLOTS.get('cost');
const NO_VALUES: AttributeValue[] = [];
const NO_OFFERS: (Offer | undefined)[] = [];
const IS_ANYWHERE = MEANINGS.map((meaning) => ATTRIBUTE_TABLE[meaning].from === 'anywhere');
const { offers: OFFERS, inside: INSIDE } = compile();

function compile() {
  const offers = new Map<string, Offer>();
  const inside = new Map<string, CopyOffer[]>();
  MEANINGS.forEach((meaning, slot) => {
    ATTRIBUTE_TABLE[meaning].names.forEach((name, rank) => {
      if (typeof name === 'string') {
        if (offers.has(name)) throw new Error(`the attribute ${name} has two meanings`);
        offers.set(name, { name, slot, rank, isCopy: false });
      } else {
        const copy = { name: `${name.inside}.${name.key}`, slot, rank, isCopy: true, key: name.key };
        inside.set(name.inside, [...(inside.get(name.inside) ?? []), copy]);
      }
    });
  });
  return { offers, inside };
}

export class SpanAttributes {
  /** By slot: the value that counts, and below its offer. Most resources and scopes have none. */
  #values: AttributeValue[] = NO_VALUES;
  #held: (Offer | undefined)[] = NO_OFFERS;
  /** Attributes that no meaning was read from, in order; names and values alternate. */
  readonly #unread: AttributeValue[] = [];
  #service: { [key: string]: Json } | undefined;
  /** The part of a resource or scope that its spans store, computed once. */
  #repeated: Map<Meaning | 'service', Json | undefined> | undefined;
  readonly #outer: SpanAttributes | undefined;

  /**
   * @param pairs OTLP key-values. Keys and values are stripped here; the later of two equal keys counts.
   * @param outer the scope of a span, or the resource of a scope, which is read for absent attributes.
   * @throws ItemFault invalid_field if the attributes are not a list.
   */
  constructor(pairs: unknown, outer?: SpanAttributes) {
    this.#outer = outer;
    if (pairs === undefined || pairs === null) return;
    if (!Array.isArray(pairs))
      throw new ItemFault('invalid_field', 'attributes: must be a list of key and value');
    for (const pair of pairs as ({ key?: unknown; value?: unknown } | null)[]) {
      if (typeof pair?.key !== 'string') continue;
      // A known name has nothing to strip.
      const offer = OFFERS.get(pair.key);
      const value = readAnyValue(pair.value);
      if (offer === undefined) this.#take(stripText(pair.key), value);
      else if (value !== undefined) this.#offer(offer, value);
    }
  }

  #take(name: string, value: AttributeValue): void {
    if (value === undefined) return;
    const offer = OFFERS.get(name);
    if (offer !== undefined) {
      this.#offer(offer, value);
      return;
    }
    if (name.startsWith(SERVICE_PREFIX)) {
      this.#service ??= {};
      setOwn(this.#service, name.slice(SERVICE_PREFIX.length), jsonOf(value));
      return;
    }
    if (name === '_service') {
      this.#service ??= {};
      const block = stripJson(mapOf(value) ?? {}) as { [key: string]: Json };
      for (const [key, item] of Object.entries(block)) setOwn(this.#service, key, item);
      return;
    }
    const keys = INSIDE.get(name);
    if (keys !== undefined) this.#takeInside(keys, value);
    this.#unread.push(name, value);
  }

  /** Reads the labels inside a map or its JSON text; the map itself stays unread and is kept. */
  #takeInside(keys: readonly CopyOffer[], value: AttributeValue): void {
    const map = mapOf(value);
    if (map === undefined) return;
    for (const offer of keys) {
      const inner = Object.hasOwn(map, offer.key) ? map[offer.key] : undefined;
      if (typeof inner === 'string') this.#offer(offer, stripText(inner));
      else if (typeof inner === 'number' || typeof inner === 'boolean') this.#offer(offer, inner);
      // Such a value is no label; offered as a cost, it is refused.
      else if (inner !== null && inner !== undefined && offer.slot === COST_SLOT) this.#offer(offer, inner);
    }
  }

  #offer(offer: Offer, value: AttributeValue): void {
    if (value === '') return;
    if (this.#values === NO_VALUES) {
      this.#values = new Array(MEANINGS.length).fill(undefined);
      this.#held = new Array(MEANINGS.length).fill(undefined);
    }
    const held = this.#held[offer.slot];
    if (held !== undefined && offer.rank > held.rank) {
      if (!offer.isCopy) this.#unread.push(offer.name, value);
      return;
    }
    if (held !== undefined && offer.rank < held.rank && !held.isCopy)
      this.#unread.push(held.name, this.#values[offer.slot]);
    this.#held[offer.slot] = offer;
    this.#values[offer.slot] = value;
  }

  /** The value of a meaning, from the level that the table names; undefined: no attribute has it. */
  get(meaning: Meaning): AttributeValue {
    return this.#at(SLOTS.get(meaning) as number);
  }

  #at(slot: number): AttributeValue {
    const own = this.#values[slot];
    if (own !== undefined || this.#outer === undefined || !IS_ANYWHERE[slot]) return own;
    return this.#outer.#at(slot);
  }

  /** Like `get`, as a label. */
  label(meaning: Meaning): string | undefined {
    return labelOf(this.get(meaning));
  }

  has(meaning: Meaning): boolean {
    return this.#values[SLOTS.get(meaning) as number] !== undefined;
  }

  /** The attribute that a meaning was read from, for messages and for the stored usage. */
  nameOf(meaning: Meaning): string {
    return this.#held[SLOTS.get(meaning) as number]?.name ?? meaning;
  }

  /** All values of a meaning by priority: first the one that counts, then the others. */
  all(meaning: Meaning): string[] {
    const held = this.label(meaning);
    if (held === undefined) return [];
    const others = this.#outranked(meaning);
    return others.length === 0 ? [held] : [held, ...others];
  }

  #outranked(meaning: Meaning): string[] {
    const slot = SLOTS.get(meaning);
    const found: { rank: number; text: string }[] = [];
    for (let index = 0; index < this.#unread.length; index += 2) {
      const offer = OFFERS.get(this.#unread[index] as string);
      const text = offer?.slot === slot ? labelOf(this.#unread[index + 1]) : undefined;
      if (offer !== undefined && text !== undefined) found.push({ rank: offer.rank, text });
    }
    return found.length === 0 ? [] : found.sort((a, b) => a.rank - b.rank).map(({ text }) => text);
  }

  /** Attributes that no meaning was read from, names and values alternating, in received order. */
  get unread(): readonly AttributeValue[] {
    return this.#unread;
  }

  /** A value of the `_service` block of the span, else of the scope, else of the resource. */
  inService(key: string): Json | undefined {
    if (this.#service !== undefined && Object.hasOwn(this.#service, key)) return this.#service[key];
    return this.#outer?.inService(key);
  }

  /** The stored `_service` block: those of resource, scope and span merged, where the inner one counts first. */
  get service(): { [key: string]: Json } | undefined {
    const repeated = this.#outer === undefined ? undefined : this.#outer.#repeatedService;
    if (repeated === undefined || this.#service === undefined) return this.#service ?? repeated;
    return { ...repeated, ...this.#service };
  }

  /** The block that every span inside repeats. */
  get #repeatedService(): { [key: string]: Json } | undefined {
    return this.#repeatedOnce('service', () => this.service) as { [key: string]: Json } | undefined;
  }

  kept(meaning: Meaning): Json | undefined {
    const own = this.#values[SLOTS.get(meaning) as number];
    if (own !== undefined) return withinLimit(jsonOf(own));
    return this.#outer === undefined ? undefined : this.#outer.#keptForSpans(meaning);
  }

  #keptForSpans(meaning: Meaning): Json | undefined {
    return this.#repeatedOnce(meaning, () => {
      const value = this.get(meaning);
      return value === undefined ? undefined : jsonOf(value);
    });
  }

  #repeatedOnce(part: Meaning | 'service', read: () => Json | undefined): Json | undefined {
    this.#repeated ??= new Map();
    if (this.#repeated.has(part)) return this.#repeated.get(part);
    const value = read();
    const kept = value === undefined ? undefined : withinLimit(value, REPEATED_BYTES_MAX);
    this.#repeated.set(part, kept);
    return kept;
  }
}
