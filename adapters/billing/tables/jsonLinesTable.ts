import type { TableRecord } from '../../../domain/billing/formats/tableFormat.js';
import { ExactNumber, type PageObject, type PageValue } from '../../../domain/billing/pageRow.js';
import type { DomainError } from '../../../domain/errors.js';
import { faultAt, JsonEvents, type JsonHandler, type JsonScalar } from '../jsonEvents.js';
import type { PlacedRecord, TableSource } from './readTable.js';

/** Most fields of one record, including those of nested objects and arrays. */
const RECORD_ENTRIES_MAX = 5_000;

/**
 * JSON lines (one object after the other, or an array of them) as a table. Error: invalid_billing_file with line and
 * column.
 */
export async function openJsonLines(chunks: AsyncIterable<Buffer>): Promise<TableSource> {
  const batches = readLines(chunks);
  const first = await batches.next();
  const [record] = first.done ? [] : first.value;
  if (!record) throw faultAt({ line: 1, column: 1 }, 'the file holds no record');
  return {
    columns: new Set(record.record.keys()),
    layout: 'json',
    headerFault: (reason) => record.faultAt(reason),
    records: () => chain(first.value as PlacedRecord[], batches),
  };
}

async function* chain(
  first: PlacedRecord[],
  rest: AsyncGenerator<PlacedRecord[]>,
): AsyncGenerator<PlacedRecord[]> {
  try {
    yield first;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}

async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<PlacedRecord[]> {
  const builder = new RecordBuilder(() => events.position);
  const events = new JsonEvents(builder);
  for await (const chunk of chunks) {
    events.write(chunk);
    const records = builder.take();
    if (records.length > 0) yield records;
  }
  events.end();
  const last = builder.take();
  if (last.length > 0) yield last;
}

/** The first record of a file's beginning; undefined: it is incomplete. */
export function firstRecord(head: Buffer): PlacedRecord | undefined {
  const builder = new RecordBuilder(() => events.position);
  const events = new JsonEvents(builder);
  try {
    events.write(head);
  } catch {
    // The reader reports faults after the first record.
  }
  return builder.take()[0];
}

interface Place {
  line: number;
  column: number;
}

class JsonRecord implements PlacedRecord {
  readonly record: TableRecord;
  readonly #place: Place;

  constructor(record: TableRecord, place: Place) {
    this.record = record;
    this.#place = place;
  }

  faultAt(reason: string): DomainError {
    return faultAt(this.#place, reason);
  }
}

/** Builds each object and flattens it. */
class RecordBuilder implements JsonHandler {
  readonly #place: () => Place;
  #ready: PlacedRecord[] = [];
  #stack: (PageObject | PageValue[])[] = [];
  #keys: string[] = [];
  #entries = 0;
  /** The records are the items of one array. */
  #isArray = false;
  #start: Place = { line: 1, column: 1 };

  constructor(place: () => Place) {
    this.#place = place;
  }

  take(): PlacedRecord[] {
    const ready = this.#ready;
    this.#ready = [];
    return ready;
  }

  startObject(): void {
    if (this.#stack.length === 0) {
      this.#start = this.#place();
      this.#entries = 0;
      this.#push({});
    } else this.#nest({});
  }

  startArray(): void {
    if (this.#stack.length > 0) this.#nest([]);
    else if (this.#isArray) throw this.#noRecord();
    else this.#isArray = true;
  }

  endObject(): void {
    this.#close();
  }

  endArray(): void {
    if (this.#stack.length > 0) this.#close();
    else this.#isArray = false;
  }

  key(name: string): void {
    this.#keys[this.#keys.length - 1] = name;
  }

  scalar(value: JsonScalar): void {
    if (this.#stack.length === 0) throw this.#noRecord();
    this.#put(value);
  }

  endDocument(): void {}

  #noRecord(): DomainError {
    return faultAt(this.#place(), 'an object is expected here: one record a line');
  }

  #nest(value: PageObject | PageValue[]): void {
    this.#put(value);
    this.#push(value);
  }

  #push(value: PageObject | PageValue[]): void {
    this.#stack.push(value);
    this.#keys.push('');
  }

  #put(value: PageValue): void {
    this.#entries += 1;
    if (this.#entries > RECORD_ENTRIES_MAX)
      throw faultAt(this.#start, `a record has more than ${RECORD_ENTRIES_MAX} fields`);
    const holder = this.#stack[this.#stack.length - 1] as PageObject | PageValue[];
    if (Array.isArray(holder)) holder.push(value);
    else
      Object.defineProperty(holder, this.#keys[this.#keys.length - 1] ?? '', {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }

  #close(): void {
    const value = this.#stack.pop();
    this.#keys.pop();
    if (this.#stack.length > 0) return;
    const cells = new Map<string, string>();
    flatten(value as PageObject, '', cells);
    this.#ready.push(new JsonRecord(cells, this.#start));
  }
}

/** Cells by dotted lower-case path; null and empty texts are omitted. */
function flatten(object: PageObject, prefix: string, cells: Map<string, string>): void {
  for (const [key, value] of Object.entries(object)) {
    const path = `${prefix}${key.toLowerCase()}`;
    if (value === null) continue;
    if (typeof value === 'string') {
      const text = value.trim();
      if (text !== '') cells.set(path, text);
    } else if (typeof value === 'boolean') cells.set(path, String(value));
    else if (value instanceof ExactNumber) cells.set(path, value.text);
    else if (Array.isArray(value)) cells.set(path, exactJson(value));
    else flatten(value, `${path}.`, cells);
  }
}

/** JSON text with numbers as written. */
export function exactJson(value: PageValue): string {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(exactJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}:${exactJson(field)}`);
  return `{${fields.join(',')}}`;
}
