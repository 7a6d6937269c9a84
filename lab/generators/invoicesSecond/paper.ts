import {
  concatTransformationMatrix,
  degrees,
  PDFDict,
  PDFDocument,
  type PDFFont,
  PDFName,
  type PDFPage,
  pushGraphicsState,
  rgb,
  StandardFonts,
} from 'pdf-lib';
import type { TruthBox } from '../invoiceTruth.js';
import type { Chance } from './chance.js';

export type Tint = [number, number, number];
export const BLACK: Tint = [0.08, 0.08, 0.1];
export const GREY: Tint = [0.42, 0.44, 0.48];

const FAMILIES = {
  helvetica: [StandardFonts.Helvetica, StandardFonts.HelveticaBold],
  times: [StandardFonts.TimesRoman, StandardFonts.TimesRomanBold],
  courier: [StandardFonts.Courier, StandardFonts.CourierBold],
} as const;
export type Family = keyof typeof FAMILIES;

/** Codes of hyphen and en dash in the encoding of the standard fonts. */
const DASHES = ['2D', '96'];

export interface Manner {
  family: Family;
  landscape: boolean;
  /** Written across a page that the viewer turns. */
  turned: boolean;
  /** Order of a page's texts in the file. */
  order: 'reading' | 'shuffled' | 'by_column';
  /** Texts in several pieces. */
  pieces: boolean;
  /** Replacement of dashes in the text layer. */
  dashes: 'kept' | 'nul' | 'space' | 'soft_hyphen';
  letter: boolean;
  title: string;
  /** Creation date of the document. */
  made: string;
}

export interface Ink {
  size?: number;
  bold?: boolean;
  tint?: Tint;
  /** `x` is then the right end, or the middle. */
  to?: 'right' | 'middle';
  field?: string | undefined;
}

interface Stroke {
  text: string;
  x: number;
  y: number;
  size: number;
  font: PDFFont;
  tint: Tint;
}

/** Pages that are written from top to bottom; `y` counts down from the upper edge. */
export class Paper {
  readonly #doc: PDFDocument;
  readonly #fonts: [PDFFont, PDFFont];
  readonly #manner: Manner;
  readonly #chance: Chance;
  readonly #widths = new Map<string, number>();
  readonly boxes: Record<string, TruthBox> = {};
  readonly width: number;
  readonly height: number;
  #page!: PDFPage;
  #strokes: Stroke[] = [];
  #finishPage: (number: number) => void = () => undefined;
  pages = 0;
  y = 0;

  private constructor(doc: PDFDocument, fonts: [PDFFont, PDFFont], manner: Manner, chance: Chance) {
    this.#doc = doc;
    this.#fonts = fonts;
    this.#manner = manner;
    this.#chance = chance;
    const [short, long] = manner.letter ? [612, 792] : [595.28, 841.89];
    this.width = manner.landscape ? long : short;
    this.height = manner.landscape ? short : long;
  }

  static async open(manner: Manner, chance: Chance): Promise<Paper> {
    const doc = await PDFDocument.create({ updateMetadata: false });
    const made = new Date(`${manner.made}T12:00:00Z`);
    doc.setTitle(manner.title);
    doc.setProducer('pdf-lib');
    doc.setCreationDate(made);
    doc.setModificationDate(made);
    const [regular, bold] = FAMILIES[manner.family];
    const paper = new Paper(doc, [await doc.embedFont(regular), await doc.embedFont(bold)], manner, chance);
    paper.newPage();
    return paper;
  }

  /** Called for each page before the next one begins, so that it can write the foot. */
  onPageEnd(write: (number: number) => void): void {
    this.#finishPage = write;
  }

  newPage(): void {
    if (this.pages > 0) this.#endPage();
    this.pages += 1;
    const { turned } = this.#manner;
    this.#page = this.#doc.addPage(turned ? [this.height, this.width] : [this.width, this.height]);
    if (turned) {
      this.#page.setRotation(degrees(90));
      this.#page.pushOperators(pushGraphicsState(), concatTransformationMatrix(0, 1, -1, 0, this.height, 0));
    }
  }

  #endPage(): void {
    this.#finishPage(this.pages);
    const strokes = this.#strokes;
    if (this.#manner.order === 'by_column')
      strokes.sort((one, other) => Math.round(one.x / 40) - Math.round(other.x / 40));
    if (this.#manner.order === 'shuffled')
      for (let at = strokes.length - 1; at > 0; at -= 1) {
        const other = this.#chance.int(0, at);
        [strokes[at], strokes[other]] = [strokes[other] as Stroke, strokes[at] as Stroke];
      }
    for (const { text, x, y, size, font, tint } of strokes)
      this.#page.drawText(text, { x, y: this.height - y, size, font, color: rgb(...tint) });
    this.#strokes = [];
  }

  /** As drawn: the standard fonts are written without kerning. */
  measure(text: string, size: number, bold = false): number {
    let units = 0;
    for (const letter of text) {
      const key = `${bold}${letter}`;
      let width = this.#widths.get(key);
      if (width === undefined) {
        width = this.#fonts[bold ? 1 : 0].widthOfTextAtSize(letter, 1000);
        this.#widths.set(key, width);
      }
      units += width;
    }
    return (units * size) / 1000;
  }

  /** Writes with the base line at `y`. */
  put(
    text: string,
    x: number,
    y: number,
    { size = 9, bold = false, tint = BLACK, to, field }: Ink = {},
  ): void {
    if (text === '') return;
    const width = this.measure(text, size, bold);
    const left = to === 'right' ? x - width : to === 'middle' ? x - width / 2 : x;
    const font = this.#fonts[bold ? 1 : 0];
    let at = left;
    for (const piece of this.#cut(text)) {
      this.#strokes.push({ text: piece, x: at, y, size, font, tint });
      at += this.measure(piece, size, bold);
    }
    if (field) this.#remember(field, { page: this.pages, x: left, y: y - size * 0.78, width, height: size });
  }

  #cut(text: string): string[] {
    if (!this.#manner.pieces) return [text];
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const length = this.#chance.int(2, 7);
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    return pieces;
  }

  #remember(field: string, box: TruthBox): void {
    const old = this.boxes[field];
    const joined = old && old.page === box.page ? old : box;
    const x = Math.min(joined.x, box.x);
    const y = Math.min(joined.y, box.y);
    const width = Math.max(joined.x + joined.width, box.x + box.width) - x;
    const height = Math.max(joined.y + joined.height, box.y + box.height) - y;
    const tidy = (value: number) => Number(value.toFixed(2));
    this.boxes[field] = {
      page: joined.page,
      x: tidy(x),
      y: tidy(y),
      width: tidy(width),
      height: tidy(height),
    };
  }

  /** Breaks at spaces. */
  broken(text: string, width: number, size: number): string[] {
    const rows: string[] = [];
    let words: string[] = [];
    for (const word of text.split(' ')) {
      if (words.length > 0 && this.measure([...words, word].join(' '), size) > width) {
        rows.push(words.join(' '));
        words = [];
      }
      words.push(word);
    }
    return [...rows, words.join(' ')];
  }

  rule(x1: number, x2: number, y: number, tint: Tint = [0.85, 0.86, 0.88], thickness = 0.6): void {
    this.#page.drawLine({
      start: { x: x1, y: this.height - y },
      end: { x: x2, y: this.height - y },
      thickness,
      color: rgb(...tint),
    });
  }

  upright(x: number, y1: number, y2: number, tint: Tint = [0.75, 0.76, 0.78]): void {
    this.#page.drawLine({
      start: { x, y: this.height - y1 },
      end: { x, y: this.height - y2 },
      thickness: 0.5,
      color: rgb(...tint),
    });
  }

  area(x: number, y: number, width: number, height: number, tint: Tint): void {
    this.#page.drawRectangle({ x, y: this.height - y - height, width, height, color: rgb(...tint) });
  }

  /** A large pale word across the page. */
  stamp(word: string): void {
    this.#page.drawText(word, {
      x: this.width * 0.22,
      y: this.height * 0.3,
      size: 110,
      font: this.#fonts[1],
      color: rgb(0.93, 0.93, 0.94),
      rotate: degrees(50),
    });
  }

  async close(): Promise<Buffer> {
    this.#endPage();
    await this.#doc.flush();
    if (this.#manner.dashes !== 'kept') this.#loseDashes();
    return Buffer.from(await this.#doc.save({ useObjectStreams: this.#chance.yes(0.5) }));
  }

  /** Adds a character map to the fonts in which dashes are other characters. */
  #loseDashes(): void {
    const code = { nul: '0000', space: '0020', soft_hyphen: '00AD', kept: '002D' }[this.#manner.dashes];
    const rows = DASHES.map((dash) => `<${dash}> <${code}>`).join('\n');
    const map = `/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Lost def /CMapType 2 def
1 begincodespacerange <00> <FF> endcodespacerange
${DASHES.length} beginbfchar
${rows}
endbfchar
endcmap CMapName currentdict /CMap defineresource pop end end`;
    for (const font of this.#fonts) {
      const dictionary = this.#doc.context.lookup(font.ref, PDFDict);
      dictionary.set(PDFName.of('ToUnicode'), this.#doc.context.register(this.#doc.context.stream(map)));
    }
  }
}
