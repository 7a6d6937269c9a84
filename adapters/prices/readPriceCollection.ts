import { isPageObject, type PageObject, type PageValue } from '../../domain/billing/pageRow.js';
import { DomainError } from '../../domain/errors.js';
import {
  type ListedCollection,
  readLitellm,
  readModelsDev,
} from '../../domain/pricing/imports/collection.js';
import { JsonEvents, type JsonHandler, type JsonScalar } from '../billing/jsonEvents.js';

/**
 * Reads a public price collection from its bytes; the content determines which one. Numbers are read as written, so
 * that no rate passes through a double. Throws RangeError with the fault and its place.
 */
export function readPriceCollection(bytes: Buffer): ListedCollection {
  const file = readExactJson(bytes);
  if (!isPageObject(file))
    throw new RangeError('the file is no JSON object: neither LiteLLM’s nor models.dev’s');
  const entries = Object.values(file).filter(isPageObject);
  if (entries.some((entry) => isPageObject(entry.models))) return readModelsDev(file);
  if (entries.some((entry) => typeof entry.litellm_provider === 'string')) return readLitellm(file);
  throw new RangeError(
    'the file is neither LiteLLM’s model_prices_and_context_window.json nor models.dev’s api.json',
  );
}

function readExactJson(bytes: Buffer): PageValue {
  const tree = new TreeBuilder();
  const reader = new JsonEvents(tree);
  try {
    reader.write(bytes);
    reader.end();
  } catch (error) {
    throw error instanceof DomainError ? new RangeError(error.message) : error;
  }
  const [first, ...more] = tree.documents;
  if (first === undefined || more.length > 0) throw new RangeError('the file is not one JSON document');
  return first;
}

/** Builds the value from the events. */
class TreeBuilder implements JsonHandler {
  readonly documents: PageValue[] = [];
  readonly #open: (PageObject | PageValue[])[] = [];
  readonly #keys: string[] = [];

  startObject(): void {
    // Without a prototype, a model called __proto__ is an ordinary key.
    this.#enter(Object.create(null) as PageObject);
  }

  startArray(): void {
    this.#enter([]);
  }

  endObject(): void {
    this.#open.pop();
  }

  endArray(): void {
    this.#open.pop();
  }

  key(name: string): void {
    this.#keys.push(name);
  }

  scalar(value: JsonScalar): void {
    this.#add(value);
  }

  endDocument(): void {}

  #enter(container: PageObject | PageValue[]): void {
    this.#add(container);
    this.#open.push(container);
  }

  #add(value: PageValue): void {
    const parent = this.#open.at(-1);
    if (parent === undefined) this.documents.push(value);
    else if (Array.isArray(parent)) parent.push(value);
    else parent[this.#keys.pop() as string] = value;
  }
}
