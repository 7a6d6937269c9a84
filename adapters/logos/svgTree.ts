import { DomainError } from '../../domain/errors.js';

/** An element of an SVG file. Namespaces other than SVG's keep their prefix in the name. */
export interface SvgElement {
  name: string;
  attributes: Map<string, string>;
  children: SvgElement[];
  /** Text directly in the element. */
  text: string;
}

const DEPTH_MAX = 32;
const ELEMENTS_MAX = 3_000;
const ATTRIBUTES_MAX = 60;

export const invalidLogo = (sentence: string) => new DomainError('invalid_logo', sentence);

const SKIPPED = /<!--[\s\S]*?-->|<\?[\s\S]*?\?>/y;
const CDATA = /<!\[CDATA\[([\s\S]*?)\]\]>/y;
/** One without an inner subset: nothing is declared, and nothing is fetched. */
const DOCTYPE = /<!DOCTYPE\s[^[<>]*>/iy;
const CLOSING = /<\/([A-Za-z_][\w:.-]*)\s*>/y;
const OPENING = /<([A-Za-z_][\w:.-]*)/y;
const ATTRIBUTE = /\s+([A-Za-z_][\w:.-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;
const END_OF_TAG = /\s*(\/?)>/y;
const TEXT = /[^<]+/y;

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/**
 * Reads an SVG file strictly, in one pass: no entity is declared, no reference is followed. Undefined for a file whose
 * root is no `svg`. Error invalid_logo.
 */
export function readSvg(source: string): SvgElement | undefined {
  const reader = new SvgReader(source);
  return reader.read();
}

class SvgReader {
  readonly #source: string;
  #at = 0;
  #elements = 0;

  constructor(source: string) {
    this.#source = source;
  }

  read(): SvgElement | undefined {
    this.#skipProlog();
    const root = this.#take(OPENING);
    if (root === null || localName(root[1] ?? '') !== 'svg') return undefined;
    const { element, isClosed } = this.#openElement(root[1] ?? '');
    if (!isClosed) this.#readContent(element);
    this.#skipProlog();
    if (this.#at < this.#source.length) throw invalidLogo('the SVG has content after its end');
    return element;
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#source);
    if (match) this.#at = pattern.lastIndex;
    return match;
  }

  #skipProlog(): void {
    for (let isMore = true; isMore; ) {
      while (/\s/.test(this.#source[this.#at] ?? '')) this.#at += 1;
      isMore = this.#take(SKIPPED) !== null || this.#take(DOCTYPE) !== null;
    }
    if (/^<!DOCTYPE/i.test(this.#source.slice(this.#at, this.#at + 9)))
      throw invalidLogo('the SVG declares entities: export it without a document type');
  }

  #readContent(root: SvgElement): void {
    const open: { element: SvgElement; tag: string }[] = [{ element: root, tag: root.name }];
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      const closing = this.#take(CLOSING);
      if (closing) {
        if (localName(closing[1] ?? '') !== top.tag)
          throw invalidLogo('the SVG is not well-formed: tags overlap');
        open.pop();
        continue;
      }
      const text = this.#take(CDATA)?.[1] ?? textOf(this.#take(TEXT)?.[0]);
      if (text !== undefined) {
        top.element.text += text;
        continue;
      }
      if (this.#take(SKIPPED)) continue;
      const opening = this.#take(OPENING);
      if (!opening) throw invalidLogo('the SVG is not well-formed, or it was cut off');
      const { element, isClosed } = this.#openElement(opening[1] ?? '');
      top.element.children.push(element);
      if (isClosed) continue;
      open.push({ element, tag: element.name });
      if (open.length > DEPTH_MAX)
        throw invalidLogo(`the SVG nests more than ${DEPTH_MAX} groups: simplify it`);
    }
  }

  #openElement(tag: string): { element: SvgElement; isClosed: boolean } {
    this.#elements += 1;
    if (this.#elements > ELEMENTS_MAX)
      throw invalidLogo(`the SVG has more than ${ELEMENTS_MAX} elements: simplify it`);
    const attributes = new Map<string, string>();
    for (let found = this.#take(ATTRIBUTE); found; found = this.#take(ATTRIBUTE)) {
      const [, name = '', double, single] = found;
      if (attributes.has(name)) throw invalidLogo(`the SVG is not well-formed: ${name} is given twice`);
      attributes.set(name, decode(double ?? single ?? ''));
      if (attributes.size > ATTRIBUTES_MAX)
        throw invalidLogo(`an element of the SVG has more than ${ATTRIBUTES_MAX} attributes`);
    }
    const end = this.#take(END_OF_TAG);
    if (!end) throw invalidLogo('the SVG is not well-formed, or it was cut off');
    return {
      element: { name: localName(tag), attributes, children: [], text: '' },
      isClosed: end[1] === '/',
    };
  }
}

const localName = (tag: string): string => (tag.startsWith('svg:') ? tag.slice(4) : tag);

const textOf = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : decode(text);

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|(\w{1,20}));|&/g, (_, decimal, hex, name) => {
    const code = decimal ? Number(decimal) : hex ? Number.parseInt(hex, 16) : undefined;
    const known =
      code === undefined ? ENTITIES[name] : code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
    if (known === undefined) throw invalidLogo('the SVG uses an entity that is not predefined');
    return known;
  });
}
