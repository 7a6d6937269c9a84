import type { PageObject, PageValue } from '../../domain/billing/exactNumber.js';
import { faultAt, JsonEvents, type JsonHandler, type JsonScalar } from './jsonEvents.js';

/** Entries of one document: a page of the largest answer has some hundred thousand. */
const ENTRIES_MAX = 3_000_000;

/** A whole JSON document with its numbers as they were written, and where it begins. */
export interface JsonDocument {
  value: PageValue;
  place: { line: number; column: number };
}

/**
 * JSON documents that stand one after the other, or in one array, each held in memory as a whole: for bills whose parts only make sense
 * together. Error invalid_billing_file with line and column.
 */
export async function* readJsonDocuments(chunks: AsyncIterable<Buffer>): AsyncGenerator<JsonDocument> {
  const builder = new DocumentBuilder(() => events.position);
  const events = new JsonEvents(builder);
  for await (const chunk of chunks) {
    events.write(chunk);
    yield* builder.take();
  }
  events.end();
  yield* builder.take();
}

class DocumentBuilder implements JsonHandler {
  readonly #place: () => { line: number; column: number };
  #ready: JsonDocument[] = [];
  #stack: (PageObject | PageValue[])[] = [];
  #keys: string[] = [];
  #entries = 0;
  #root: JsonDocument | undefined;
  /** The documents are the items of one array. */
  #isArray = false;

  constructor(place: () => { line: number; column: number }) {
    this.#place = place;
  }

  take(): JsonDocument[] {
    const ready = this.#ready;
    this.#ready = [];
    return ready;
  }

  startObject(): void {
    this.#open({});
  }

  endObject(): void {
    this.#close();
  }

  startArray(): void {
    if (this.#stack.length > 0 || this.#isArray) this.#open([]);
    else this.#isArray = true;
  }

  endArray(): void {
    if (this.#stack.length > 0) this.#close();
    else this.#isArray = false;
  }

  key(name: string): void {
    this.#keys[this.#keys.length - 1] = name;
  }

  scalar(value: JsonScalar): void {
    this.#put(value);
    this.#finish();
  }

  endDocument(): void {}

  /** A document is over where nothing is open. */
  #finish(): void {
    if (this.#stack.length > 0 || !this.#root) return;
    this.#ready.push(this.#root);
    this.#root = undefined;
    this.#entries = 0;
  }

  #open(value: PageObject | PageValue[]): void {
    this.#put(value);
    this.#stack.push(value);
    this.#keys.push('');
  }

  #close(): void {
    this.#stack.pop();
    this.#keys.pop();
    this.#finish();
  }

  #put(value: PageValue): void {
    this.#entries += 1;
    if (this.#entries > ENTRIES_MAX)
      throw faultAt(this.#place(), `the document has more than ${ENTRIES_MAX} entries`);
    const holder = this.#stack[this.#stack.length - 1];
    if (holder === undefined) this.#root = { value, place: this.#place() };
    else if (Array.isArray(holder)) holder.push(value);
    else
      Object.defineProperty(holder, this.#keys[this.#keys.length - 1] ?? '', {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }
}
