import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import PDFDocument from 'pdfkit';
import type { TruthBox } from '../invoiceTruth.js';
import type { Random } from './random.js';

/** Replacement of hyphens and minus signs in the text layer; they are always visible on the page. */
export type GlyphLoss = 'none' | 'nul' | 'space' | 'drawn';

export interface TextOptions {
  size?: number;
  bold?: boolean;
  colour?: string;
  align?: 'left' | 'right';
  /** Path of the field in the truth, for its box. */
  field?: string | undefined;
}

const require = createRequire(import.meta.url);
const INTER = dirname(require.resolve('@expo-google-fonts/inter/package.json'));
const PDFJS = dirname(require.resolve('pdfjs-dist/package.json'));
const FONTS = {
  inter: {
    regular: join(INTER, '400Regular/Inter_400Regular.ttf'),
    bold: join(INTER, '600SemiBold/Inter_600SemiBold.ttf'),
  },
  liberation: {
    regular: join(PDFJS, 'standard_fonts/LiberationSans-Regular.ttf'),
    bold: join(PDFJS, 'standard_fonts/LiberationSans-Bold.ttf'),
  },
  helvetica: { regular: 'Helvetica', bold: 'Helvetica-Bold' },
};
export type FontName = keyof typeof FONTS;

// Kerning makes the digits of "1.1" overlap, and contextual forms replace hyphens.
const FEATURES = { kern: false, calt: false, liga: false } as unknown as PDFKit.Mixins.OpenTypeFeatures[];
const LOST = ['-', '\u2212', '\u2013'];

/** A document with a cursor that records the boxes of named fields. */
export class Sheet {
  readonly #doc: PDFKit.PDFDocument;
  readonly #loss: GlyphLoss;
  readonly #chunks: Buffer[] = [];
  readonly boxes: Record<string, TruthBox> = {};
  readonly width: number;
  readonly height: number;
  pages = 1;
  y = 0;

  constructor(options: {
    size: 'A4' | 'LETTER';
    font: FontName;
    loss: GlyphLoss;
    title: string;
    madeOn: string;
  }) {
    this.#loss = options.loss;
    this.#doc = new PDFDocument({
      size: options.size,
      margin: 0,
      bufferPages: true,
      info: {
        Title: options.title,
        Producer: 'pdfkit',
        Creator: 'pdfkit',
        CreationDate: new Date(`${options.madeOn}T09:00:00Z`),
      },
    });
    this.#doc.on('data', (chunk: Buffer) => this.#chunks.push(chunk));
    this.#doc.registerFont('regular', FONTS[options.font].regular);
    this.#doc.registerFont('bold', FONTS[options.font].bold);
    this.width = this.#doc.page.width;
    this.height = this.#doc.page.height;
  }

  newPage(): void {
    this.#doc.addPage();
    this.pages += 1;
  }

  #use({ size = 9, bold = false }: TextOptions): void {
    this.#doc.font(bold ? 'bold' : 'regular').fontSize(size);
  }

  widthOf(text: string, options: TextOptions = {}): number {
    this.#use(options);
    return this.#doc.widthOfString(text, { features: FEATURES });
  }

  /** Writes one row of text with its upper edge at `y`; for `right`, `x` is its right edge. */
  text(text: string, x: number, y: number, options: TextOptions = {}): void {
    const { size = 9, colour = '#1a1f36', align = 'left', field } = options;
    const width = this.widthOf(text, options);
    const left = align === 'right' ? x - width : x;
    this.#doc.fillColor(colour);
    this.#write(text, left, y, options);
    if (field) this.#keep(field, { page: this.pages, x: left, y, width, height: size * 1.2 });
  }

  #write(text: string, x: number, y: number, options: TextOptions): void {
    const { size = 9, colour = '#1a1f36' } = options;
    let at = x;
    for (const part of this.#loss === 'drawn' ? text.split(/([-\u2212\u2013])/) : [text]) {
      if (part === '') continue;
      this.#use(options);
      const width = this.#doc.widthOfString(part, { features: FEATURES });
      if (this.#loss === 'drawn' && LOST.includes(part)) {
        const { ascender } = (this.#doc as unknown as { _font: { ascender: number } })._font;
        const middle = y + size * (ascender / 1000 - 0.3);
        this.#doc.rect(at + width * 0.12, middle, width * 0.76, size * 0.085).fill(colour);
      } else {
        this.#doc.fillColor(colour).text(part, at, y, { lineBreak: false, features: FEATURES });
      }
      at += width;
    }
  }

  #keep(field: string, box: TruthBox): void {
    const known = this.boxes[field];
    if (known && known.page !== box.page) return;
    const round = (value: number) => Math.round(value * 100) / 100;
    const right = Math.max(box.x + box.width, known ? known.x + known.width : 0);
    const bottom = Math.max(box.y + box.height, known ? known.y + known.height : 0);
    const x = Math.min(box.x, known?.x ?? box.x);
    const y = Math.min(box.y, known?.y ?? box.y);
    this.boxes[field] = {
      page: box.page,
      x: round(x),
      y: round(y),
      width: round(right - x),
      height: round(bottom - y),
    };
  }

  /** Wraps a text to this width. */
  rows(text: string, width: number, options: TextOptions = {}): string[] {
    const rows: string[] = [];
    let row = '';
    for (const word of text.split(' ')) {
      const longer = row ? `${row} ${word}` : word;
      if (row && this.widthOf(longer, options) > width) {
        rows.push(row);
        row = word;
      } else row = longer;
    }
    return row ? [...rows, row] : rows;
  }

  line(x1: number, x2: number, y: number, colour = '#e3e8ee', thickness = 0.7): void {
    this.#doc.moveTo(x1, y).lineTo(x2, y).lineWidth(thickness).strokeColor(colour).stroke();
  }

  block(x: number, y: number, width: number, height: number, colour: string): void {
    this.#doc.rect(x, y, width, height).fill(colour);
  }

  /** Writes the footer of every page, after the last page. */
  footers(write: (page: number, pages: number) => void): void {
    const last = this.pages;
    for (let page = 1; page <= last; page += 1) {
      this.#doc.switchToPage(page - 1);
      this.pages = page;
      write(page, last);
    }
    this.pages = last;
  }

  async finish(): Promise<Buffer> {
    if (this.#loss === 'nul' || this.#loss === 'space') this.#loseGlyphs(this.#loss === 'nul' ? 0 : 0x20);
    const ended = new Promise<void>((resolve) => this.#doc.on('end', () => resolve()));
    this.#doc.end();
    await ended;
    return Buffer.concat(this.#chunks);
  }

  /** Maps the glyphs of hyphens and minus signs to another character, like a defective font subset. */
  #loseGlyphs(character: number): void {
    interface Embedded {
      font: { glyphForCodePoint(point: number): { id: number } };
      subset: { mapping: Record<number, number> };
      unicode: number[][];
    }
    const families = (this.#doc as unknown as { _fontFamilies: Record<string, Partial<Embedded>> })
      ._fontFamilies;
    for (const { font, subset, unicode } of Object.values(families)) {
      if (!font || !subset || !unicode) continue;
      for (const letter of LOST) {
        const at = subset.mapping[font.glyphForCodePoint(letter.codePointAt(0) as number).id];
        if (at !== undefined) unicode[at] = [character];
      }
    }
  }
}

export function drawLoss(font: FontName, random: Random): GlyphLoss {
  if (!random.chance(0.3)) return 'none';
  return font === 'helvetica' ? 'drawn' : random.pick(['nul', 'space', 'drawn']);
}
