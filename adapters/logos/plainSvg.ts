import { invalidLogo, readSvg, type SvgElement } from './svgTree.js';

/** An SVG of plain shapes, and the size that the file states. */
export interface PlainSvg {
  width: number;
  height: number;
  /** The same drawing at another size, pixels. */
  write(width: number, height: number): string;
}

const SHAPES = ['path', 'rect', 'circle', 'ellipse', 'line', 'polyline', 'polygon'];
const GRADIENTS: readonly string[] = ['linearGradient', 'radialGradient'];
/** The elements that are drawn, and the elements in which they may be nested; no other is drawn. */
const DRAWN = new Set([...SHAPES, ...GRADIENTS, 'g', 'defs', 'stop', 'clipPath']);
/** Elements that draw nothing and refer to nothing. */
const IGNORED = new Set(['title', 'desc', 'metadata', 'style']);

const GEOMETRY = new Set(
  `d x y x1 y1 x2 y2 cx cy r rx ry fx fy width height points transform offset gradientUnits gradientTransform
   spreadMethod clipPathUnits id`.split(/\s+/),
);
/** Properties that may also come from style sheets; without dashes, of which a line can have millions. */
const PROPERTIES = new Set(
  `fill fill-opacity fill-rule clip-rule clip-path stroke stroke-width stroke-linecap stroke-linejoin stroke-miterlimit
   stroke-opacity opacity stop-color stop-opacity color display visibility`.split(/\s+/),
);
const REFERENCES = new Set(['fill', 'stroke', 'clip-path']);
const LOCAL_REFERENCE = /^url\(\s*["']?#([\w.:-]+)["']?\s*\)$/;
const SAFE_VALUE = /^[^<>&"'\\]*$/;
const RULES_MAX = 500;
/** Gradients that refer to each other for their colours. */
const GRADIENT_STEPS_MAX = 5;
const SIDE_MAX = 1_000_000;

/**
 * Reduces an SVG file to plain shapes with colours, gradients and clips. Refuses elements that could run, load or reach
 * something, and elements that the drawing would lack. Undefined for a file that is no SVG. Error: invalid_logo.
 */
export function plainSvg(source: string): PlainSvg | undefined {
  const root = readSvg(source);
  if (!root) return undefined;
  const writer = new PlainWriter(root);
  const { box, width, height } = sizeOf(root);
  const content = writer.write();
  return {
    width,
    height,
    write: (drawnWidth, drawnHeight) =>
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box.join(' ')}" width="${drawnWidth}" height="${drawnHeight}">${content}</svg>`,
  };
}

class PlainWriter {
  readonly #root: SvgElement;
  readonly #rules: readonly StyleRule[];
  readonly #byId = new Map<string, SvgElement>();

  constructor(root: SvgElement) {
    this.#root = root;
    const sheets: string[] = [];
    visit(root, (element) => {
      const id = element.attributes.get('id');
      if (id !== undefined && !this.#byId.has(id)) this.#byId.set(id, element);
      if (element.name === 'style') sheets.push(element.text);
    });
    this.#rules = readRules(sheets.join('\n'));
  }

  write(): string {
    const own = this.#attributesOf(this.#root, false).filter(([name]) => PROPERTIES.has(name));
    return `<g${write(own)}>${this.#writeChildren(this.#root, false)}</g>`;
  }

  #writeChildren(parent: SvgElement, isInClip: boolean): string {
    return parent.children.map((child) => this.#writeElement(child, isInClip)).join('');
  }

  #writeElement(element: SvgElement, isInClip: boolean): string {
    const { name } = element;
    if (IGNORED.has(name) || name.includes(':')) return '';
    if (!DRAWN.has(name))
      throw invalidLogo(
        `the SVG contains <${name.slice(0, 40)}>, which a logo cannot have: export it as plain paths, without scripts, text, images, filters and references`,
      );
    const isClip = isInClip || name === 'clipPath';
    const attributes = write(this.#attributesOf(element, isClip));
    const content = GRADIENTS.includes(name)
      ? this.#stopsOf(element).map((stop) => `<stop${write(this.#attributesOf(stop, false))}/>`)
      : [this.#writeChildren(element, isClip)];
    return `<${name}${attributes}>${content.join('')}</${name}>`;
  }

  #stopsOf(gradient: SvgElement): SvgElement[] {
    let current: SvgElement | undefined = gradient;
    for (let step = 0; current !== undefined && step < GRADIENT_STEPS_MAX; step += 1) {
      const stops = current.children.filter(({ name }) => name === 'stop');
      if (stops.length > 0) return stops;
      const reference: string | undefined =
        current.attributes.get('href') ?? current.attributes.get('xlink:href');
      current = reference?.startsWith('#') ? this.#byId.get(reference.slice(1)) : undefined;
    }
    return [];
  }

  #attributesOf(element: SvgElement, isInClip: boolean): [string, string][] {
    const { attributes } = element;
    const found = new Map<string, string>();
    for (const [name, value] of attributes) {
      assertHarmless(name, value);
      if (GEOMETRY.has(name) || PROPERTIES.has(name)) found.set(name, value);
    }
    const declarations = this.#rules
      .filter((rule) => isMeant(rule, element))
      .flatMap((rule) => rule.declarations);
    declarations.push(...readDeclarations(attributes.get('style') ?? ''));
    for (const [name, value] of declarations) {
      assertHarmless(name, value);
      if (PROPERTIES.has(name)) found.set(name, value);
    }
    if (isInClip) found.delete('clip-path');
    return [...found].filter(([name, value]) => this.#isUsable(name, value));
  }

  #isUsable(name: string, value: string): boolean {
    const reference = LOCAL_REFERENCE.exec(value);
    if (!reference) return SAFE_VALUE.test(value);
    const target = this.#byId.get(reference[1] ?? '')?.name ?? '';
    return (
      REFERENCES.has(name) && (name === 'clip-path' ? target === 'clipPath' : GRADIENTS.includes(target))
    );
  }
}

function visit(element: SvgElement, see: (element: SvgElement) => void): void {
  see(element);
  for (const child of element.children) visit(child, see);
}

function write(attributes: readonly (readonly [string, string])[]): string {
  return attributes.map(([name, value]) => ` ${name}="${value.replaceAll('"', '').trim()}"`).join('');
}

/** Elements that could run or load something. Every other unknown one is left out. */
function assertHarmless(name: string, value: string): void {
  if (/^on/i.test(name)) throw invalidLogo(`the SVG has the event handler ${name.slice(0, 40)}: remove it`);
  const isReference = /(?:^|:)(?:href|src)$/i.test(name);
  if (isReference && !value.startsWith('#'))
    throw invalidLogo('the SVG refers to something outside of itself: embed nothing and link nothing');
  if (/(?:javascript|vbscript|data)\s*:/i.test(value) || /expression\s*\(/i.test(value))
    throw invalidLogo('the SVG contains a script or embedded data: remove it');
  if (/url\s*\(/i.test(value) && !LOCAL_REFERENCE.test(value))
    throw invalidLogo('the SVG refers to something outside of itself: embed nothing and link nothing');
}

interface StyleRule {
  selector: string;
  declarations: [string, string][];
}

/** Rules for elements, classes and ids in this order, which is how they override each other. */
function readRules(sheet: string): StyleRule[] {
  const plain = sheet.replace(/\/\*[\s\S]*?(?:\*\/|$)/g, '');
  if (plain.includes('@'))
    throw invalidLogo('the SVG has a style sheet with @ rules: export it with attributes');
  const rules: StyleRule[] = [];
  for (const block of plain.split('}')) {
    const at = block.indexOf('{');
    if (at < 0) continue;
    const declarations = readDeclarations(block.slice(at + 1));
    for (const selector of block.slice(0, at).split(','))
      rules.push({ selector: selector.trim(), declarations });
  }
  if (rules.length > RULES_MAX)
    throw invalidLogo(`the SVG has more than ${RULES_MAX} style rules: simplify it`);
  const rank = ({ selector }: StyleRule) => (selector.startsWith('#') ? 2 : selector.startsWith('.') ? 1 : 0);
  return rules.sort((a, b) => rank(a) - rank(b));
}

function readDeclarations(text: string): [string, string][] {
  return text.split(';').flatMap((declaration) => {
    const at = declaration.indexOf(':');
    if (at < 0) return [];
    const value = declaration.slice(at + 1).replace(/!important/i, '');
    return [[declaration.slice(0, at).trim(), value.trim()] satisfies [string, string]];
  });
}

function isMeant({ selector }: StyleRule, { name, attributes }: SvgElement): boolean {
  if (selector.startsWith('#')) return attributes.get('id') === selector.slice(1);
  if (selector.startsWith('.'))
    return (attributes.get('class') ?? '').split(/\s+/).includes(selector.slice(1));
  return selector === name;
}

const LENGTH = /^\s*(\d*\.?\d+(?:e[+-]?\d{1,2})?)\s*(px|pt|pc|mm|cm|in)?\s*$/i;
const PIXELS: Readonly<Record<string, number>> = { pt: 4 / 3, pc: 16, mm: 96 / 25.4, cm: 96 / 2.54, in: 96 };

function sizeOf({ attributes }: SvgElement): { box: number[]; width: number; height: number } {
  const lengthOf = (name: string): number | undefined => {
    const [, digits, unit = 'px'] = LENGTH.exec(attributes.get(name) ?? '') ?? [];
    return digits === undefined ? undefined : Number(digits) * (PIXELS[unit.toLowerCase()] ?? 1);
  };
  const given = (attributes.get('viewBox') ?? '')
    .trim()
    .split(/[\s,]+/)
    .map(Number);
  const box = given.length === 4 ? given : [0, 0, lengthOf('width') ?? 0, lengthOf('height') ?? 0];
  const [, , width = 0, height = 0] = box;
  if (!box.every(Number.isFinite) || !(width > 0 && height > 0))
    throw invalidLogo('the SVG names no size: give it a viewBox');
  if (width > SIDE_MAX || height > SIDE_MAX)
    throw invalidLogo(`the SVG is larger than ${SIDE_MAX} units: export it smaller`);
  return { box, width, height };
}
