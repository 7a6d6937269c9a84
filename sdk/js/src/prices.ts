import { costOf, type Pico, picoOf, type Rates, type Tokens } from './money.js';

/** The service's price table: one price for each model family (`GET /api/v1/pricing/table`). */

const PATTERNS_OF_FAMILY: readonly RegExp[] = [
  // Paths and prefixes: `models/`, an ARN, `openai/`.
  /^.*\//,
  // Bedrock: the region of an inference profile, the maker, the version.
  /^(?:us-gov|us|eu|apac|au|jp|in|ca|sa|global)\./,
  /^[a-z0-9]+\.(?=[a-z])/,
  /:\d+(?::\d+k)?$/,
  /-v\d+$/,
  // Google's numbers of stable versions.
  /-00\d$/,
  // Dates, as providers write them.
  /@(?:default|latest|\d{8})$/,
  /-latest$/,
  /-20\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])$/,
  /-(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/,
  /-(?:2[3-9]|3\d)(?:0[1-9]|1[0-2])$/,
  /-(?:0[1-9]|1[0-2])-20\d{2}$/,
];
const MODEL_CHARS_MAX = 512;
/** Remembered ids; applications use few. */
const REMEMBERED_MAX = 1_000;

export class PriceTable {
  readonly #rates = new Map<string, Rates>();
  readonly #known = new Map<string, Rates | undefined>();

  /** @param pricing the field `pricing` of the table; entries that are no prices are left out. */
  constructor(pricing: unknown = {}) {
    if (typeof pricing !== 'object' || pricing === null) return;
    for (const [family, row] of Object.entries(pricing as Record<string, Record<string, unknown> | null>)) {
      const input = picoOf(row?.in_per_mtok);
      const output = picoOf(row?.out_per_mtok);
      if (input === undefined || output === undefined) continue;
      const cacheRead = picoOf(row?.cache_read) ?? input;
      const cacheWrite = picoOf(row?.cache_creation) ?? input;
      this.#rates.set(family, { input, output, cacheRead, cacheWrite });
    }
  }

  /** Undefined: the model has no price, which does not mean free. */
  cost(model: string, tokens: Tokens, isBatch = false): Pico | undefined {
    const rates = this.find(model);
    return rates && costOf(tokens, rates, isBatch);
  }

  find(model: string): Rates | undefined {
    if (this.#known.has(model)) return this.#known.get(model);
    const found = this.#findAfresh(model);
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear();
    this.#known.set(model, found);
    return found;
  }

  #findAfresh(model: string): Rates | undefined {
    if (model.length > MODEL_CHARS_MAX) return undefined;
    const id = model.trim();
    let name = id.toLowerCase();
    const fineTuned = /^(ft:[^:]+):/.exec(name)?.[1];
    const found = this.#rates.get(id) ?? this.#rates.get(name) ?? (fineTuned && this.#rates.get(fineTuned));
    if (found) return found;
    if (name.startsWith('ft:')) return undefined;
    name = name.replace(/^gpt-35-/, 'gpt-3.5-');
    for (const pattern of PATTERNS_OF_FAMILY) {
      const rates = this.#rates.get(name);
      if (rates) return rates;
      const shorter = name.replace(pattern, '');
      if (shorter !== '') name = shorter;
    }
    return this.#rates.get(name);
  }
}
