/**
 * A strict parser of RFC 9651's Lists of Items, independent of the product's writer: Strings, Tokens, Integers, Byte
 * Sequences and Booleans as bare items and as parameter values.
 */
export interface FieldItem {
  value: string | number | boolean;
  kind: 'string' | 'token' | 'integer' | 'bytes' | 'boolean';
  parameters: Record<string, string | number | boolean>;
}

/** @throws Error with the place where the field breaks the grammar. */
export function parseList(field: string): FieldItem[] {
  const reader = new Reader(field);
  const items: FieldItem[] = [];
  reader.spaces();
  while (!reader.isAtEnd) {
    items.push(reader.item());
    reader.optionalWhitespace();
    if (reader.isAtEnd) return items;
    reader.expect(',');
    reader.optionalWhitespace();
    if (reader.isAtEnd) throw reader.wrong('a comma at the end');
  }
  return items;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  wrong(what: string): Error {
    return new Error(`${what} at ${this.#at} of ${JSON.stringify(this.#text)}`);
  }

  spaces(): void {
    this.#match(/ */y);
  }

  optionalWhitespace(): void {
    this.#match(/[ \t]*/y);
  }

  expect(character: string): void {
    if (this.#text[this.#at] !== character) throw this.wrong(`no ${character}`);
    this.#at += 1;
  }

  item(): FieldItem {
    const { value, kind } = this.#bareItem();
    const parameters: FieldItem['parameters'] = {};
    while (this.#text[this.#at] === ';') {
      this.#at += 1;
      this.spaces();
      const key = this.#match(/[a-z*][a-z0-9_.*-]*/y);
      if (key === undefined) throw this.wrong('no key of a parameter');
      if (this.#text[this.#at] !== '=') parameters[key] = true;
      else {
        this.#at += 1;
        parameters[key] = this.#bareItem().value;
      }
    }
    return { value, kind, parameters };
  }

  #bareItem(): Pick<FieldItem, 'value' | 'kind'> {
    const text = this.#match(/"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/y);
    if (text !== undefined) return { kind: 'string', value: text.slice(1, -1).replace(/\\(["\\])/g, '$1') };
    const number = this.#match(/-?\d{1,15}(?![\d.])/y);
    if (number !== undefined) return { kind: 'integer', value: Number(number) };
    const bytes = this.#match(/:[A-Za-z0-9+/=]*:/y);
    if (bytes !== undefined) return { kind: 'bytes', value: bytes.slice(1, -1) };
    const boolean = this.#match(/\?[01]/y);
    if (boolean !== undefined) return { kind: 'boolean', value: boolean === '?1' };
    const token = this.#match(/[A-Za-z*][!#$%&'*+\-.^_`|~:/0-9A-Za-z]*/y);
    if (token !== undefined) return { kind: 'token', value: token };
    throw this.wrong('no bare item');
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }
}

/** One policy of an answer, from RateLimit-Policy and RateLimit. */
export interface AppliedPolicy {
  quota: number;
  windowSeconds: number | undefined;
  unit: string | undefined;
  /** undefined: RateLimit does not contain it. */
  remaining: number | undefined;
  resetSeconds: number | undefined;
}

const POLICY_PARAMETERS = new Set(['q', 'w', 'qu']);
const LIMIT_PARAMETERS = new Set(['r', 't']);
/** The units of draft-ietf-httpapi-ratelimit-headers-11, 10.3. */
const UNITS = new Set(['requests', 'content-bytes', 'concurrent-requests']);

/**
 * Reads both fields by the rules of draft-ietf-httpapi-ratelimit-headers-11, sections 3 and 4.
 * @throws Error where they break one.
 */
export function readRateLimitFields(headers: {
  policy: string | undefined | null;
  limit: string | undefined | null;
}): Map<string, AppliedPolicy> {
  const told = new Map<string, AppliedPolicy>();
  for (const { value, kind, parameters } of parseList(headers.policy ?? '')) {
    if (kind !== 'string') throw new Error('the name of a policy must be a String');
    if (told.has(String(value))) throw new Error(`the policy ${value} stands twice`);
    for (const key of Object.keys(parameters))
      if (!POLICY_PARAMETERS.has(key)) throw new Error(`RateLimit-Policy has the parameter ${key}`);
    const { q, w, qu } = parameters;
    if (!isCount(q)) throw new Error('q must be a non-negative Integer');
    if (w !== undefined && (!isCount(w) || w === 0)) throw new Error('w must be a positive Integer');
    if (qu !== undefined && !UNITS.has(String(qu))) throw new Error(`${qu} is no unit`);
    told.set(String(value), {
      quota: q,
      windowSeconds: w,
      unit: qu === undefined ? undefined : String(qu),
      remaining: undefined,
      resetSeconds: undefined,
    });
  }
  for (const { value, kind, parameters } of parseList(headers.limit ?? '')) {
    if (kind !== 'string') throw new Error('the name of a policy must be a String');
    const policy = told.get(String(value));
    if (!policy) throw new Error(`RateLimit names ${value}, which RateLimit-Policy does not`);
    for (const key of Object.keys(parameters))
      if (!LIMIT_PARAMETERS.has(key)) throw new Error(`RateLimit has the parameter ${key}`);
    const { r, t } = parameters;
    if (!isCount(r)) throw new Error('r must be a non-negative Integer');
    if (t !== undefined && !isCount(t)) throw new Error('t must be a non-negative Integer');
    policy.remaining = r;
    policy.resetSeconds = t;
  }
  return told;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}
