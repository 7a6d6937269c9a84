/**
 * Reads the text of a Python value (`repr`) of texts, numbers, booleans, None, lists, tuples and dictionaries with
 * texts as keys. LiteLLM writes objects into attributes in this form. Strict: any other text has no value.
 */
import type { Json } from '../event.js';
import { mapOf } from '../jsonValues.js';

/** Longest text that is read, characters. */
const CHARS_MAX = 16_384;
const DEPTH_MAX = 8;

/** The value; undefined: the text is not the `repr` of such a value. */
export function readPythonLiteral(text: string): Json | undefined {
  if (text.length > CHARS_MAX) return undefined;
  const reader = new LiteralReader(text);
  try {
    return reader.whole();
  } catch (fault) {
    if (fault instanceof NoLiteral) return undefined;
    throw fault;
  }
}

/** An object that LiteLLM writes as JSON or as a Python value; undefined: it is neither. */
export function readObjectText(text: string): { [key: string]: Json } | undefined {
  return mapOf(text) ?? mapOf(readPythonLiteral(text));
}

class NoLiteral extends Error {}

const NUMBER = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const WORDS: readonly (readonly [string, Json])[] = [
  ['None', null],
  ['True', true],
  ['False', false],
];
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  '\\': '\\',
  "'": "'",
  '"': '"',
};
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

class LiteralReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Json {
    const value = this.#value(0);
    this.#blank();
    if (this.#at < this.#text.length) throw new NoLiteral();
    return value;
  }

  #value(depth: number): Json {
    if (depth > DEPTH_MAX) throw new NoLiteral();
    this.#blank();
    const char = this.#text[this.#at];
    if (char === '{') return this.#dictionary(depth);
    if (char === '[') return this.#list(']', depth);
    if (char === '(') return this.#list(')', depth);
    if (char === "'" || char === '"') return this.#string();
    for (const [word, value] of WORDS)
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    return this.#number();
  }

  #dictionary(depth: number): Json {
    const entries: [string, Json][] = [];
    this.#at += 1;
    while (!this.#ends('}')) {
      const key = this.#value(depth + 1);
      if (typeof key !== 'string') throw new NoLiteral();
      this.#expect(':');
      entries.push([key, this.#value(depth + 1)]);
      if (!this.#ends('}', false)) this.#expect(',');
    }
    return Object.fromEntries(entries);
  }

  #list(close: string, depth: number): Json {
    const items: Json[] = [];
    this.#at += 1;
    while (!this.#ends(close)) {
      items.push(this.#value(depth + 1));
      if (!this.#ends(close, false)) this.#expect(',');
    }
    return items;
  }

  #string(): string {
    const quote = this.#text[this.#at];
    this.#at += 1;
    let value = '';
    for (;;) {
      const char = this.#text[this.#at];
      this.#at += 1;
      if (char === undefined || char === '\n') throw new NoLiteral();
      if (char === quote) return value;
      value += char === '\\' ? this.#escape() : char;
    }
  }

  #escape(): string {
    const char = this.#text[this.#at] ?? '';
    this.#at += 1;
    const plain = Object.hasOwn(ESCAPES, char) ? ESCAPES[char] : undefined;
    if (plain !== undefined) return plain;
    const digits = Object.hasOwn(HEX_DIGITS, char) ? (HEX_DIGITS[char] as number) : 0;
    const hex = this.#text.slice(this.#at, this.#at + digits);
    const code = Number.parseInt(hex, 16);
    if (digits === 0 || !/^[0-9a-fA-F]+$/.test(hex) || hex.length < digits || code > 0x10ffff)
      throw new NoLiteral();
    this.#at += digits;
    return String.fromCodePoint(code);
  }

  #number(): number {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text)?.[0];
    if (found === undefined) throw new NoLiteral();
    this.#at += found.length;
    return Number(found);
  }

  /** Whether the closing bracket follows; it is taken unless only looked for. */
  #ends(close: string, isTaken = true): boolean {
    this.#blank();
    if (this.#text[this.#at] !== close) return false;
    if (isTaken) this.#at += 1;
    return true;
  }

  #expect(char: string): void {
    this.#blank();
    if (this.#text[this.#at] !== char) throw new NoLiteral();
    this.#at += 1;
  }

  #blank(): void {
    while (this.#text[this.#at] === ' ') this.#at += 1;
  }
}
