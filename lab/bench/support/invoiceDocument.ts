import { PDFDocument, type PDFFont, type PDFPage, rgb, StandardFonts } from 'pdf-lib';

/** Models as the document and the bill name them. */
const MODELS = [
  ['Claude Sonnet 4.5', 'claude-sonnet-4-5'],
  ['Claude Haiku 4.5', 'claude-haiku-4-5'],
  ['Claude Opus 4.1', 'claude-opus-4-1'],
] as const;
const CLASSES = [
  ['Input Tokens', 'input'],
  ['Output Tokens', 'output'],
  ['Cache Read Tokens', 'cache_read'],
] as const;
const HALVES = ['01', '15'] as const;
const DAYS_A_HALF = 14;
/** Micro-dollars of one token, by class. */
const RATES: Record<string, number> = { input: 3, output: 15, cache_read: 1 };

interface Charge {
  description: string;
  period: string;
  firstDay: number;
  model: string;
  tokenClass: string;
  tokens: number;
}

function charges(): Charge[] {
  return MODELS.flatMap(([shown, model], at) =>
    CLASSES.flatMap(([words, tokenClass], kind) =>
      HALVES.map((day, half) => ({
        description: `${shown} Usage - ${words}`,
        period: `Feb ${Number(day)} – Feb ${Number(day) + DAYS_A_HALF - 1}, 2026`,
        firstDay: Number(day),
        model,
        tokenClass,
        tokens: 10_000_000 * (1 + at + 3 * kind + 9 * half),
      })),
    ),
  );
}

const centsOf = ({ tokens, tokenClass }: Charge) => (tokens * (RATES[tokenClass] ?? 0)) / 10_000;
const dollars = (cents: number) =>
  `$${(cents / 100).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

/** The bill of February that the document agrees with, as the plain CSV of billing imports. */
export function billOfDocument(): string {
  const rows = charges().flatMap((charge) =>
    Array.from({ length: DAYS_A_HALF }, (_, day) => {
      const date = `2026-02-${String(charge.firstDay + day).padStart(2, '0')}`;
      const isFirst = day === 0;
      return `${date},${charge.model},${charge.tokenClass},${isFirst ? charge.tokens : 0},${isFirst ? centsOf(charge) / 100 : 0}`;
    }),
  );
  return `date,model,token_class,quantity,amount_usd\n${rows.join('\n')}\n`;
}

const PAGE_LINES = 9;

/** An invoice of two pages and 18 lines, as Stripe sets them. Another number makes other bytes. */
export async function invoiceOfTwoPages(number: string): Promise<Uint8Array> {
  const document = await PDFDocument.create({ updateMetadata: false });
  const font = await document.embedFont(StandardFonts.Helvetica);
  const bold = await document.embedFont(StandardFonts.HelveticaBold);
  const all = charges();
  const total = dollars(all.reduce((sum, charge) => sum + centsOf(charge), 0));
  const first = new Sheet(document.addPage([595, 842]), font);
  first.put('Invoice', 40, 50, 20, bold);
  for (const [at, [name, value]] of [
    ['Invoice number', number],
    ['Date of issue', 'March 1, 2026'],
    ['Date due', 'March 31, 2026'],
  ].entries()) {
    first.put(name ?? '', 40, 80 + at * 14, 9, bold);
    first.put(value ?? '', 140, 80 + at * 14, 9);
  }
  first.put('Anthropic, PBC', 40, 136, 9, bold);
  first.put('548 Market Street, San Francisco, California 94104', 40, 149);
  first.put('Bill to', 340, 136, 9, bold);
  first.put('Bench Labs', 340, 149);
  first.put(`${total} USD due March 31, 2026`, 40, 182, 13, bold);
  let y = drawLines(first, bold, 210, all.slice(0, PAGE_LINES));
  const second = new Sheet(document.addPage([595, 842]), font);
  y = drawLines(second, bold, 50, all.slice(PAGE_LINES));
  for (const [name, value] of [
    ['Subtotal', total],
    ['Total', total],
    ['Amount due', `${total} USD`],
  ] as const) {
    second.put(name, 350, y + 10);
    second.right(value, 555, y + 10);
    y += 18;
  }
  return document.save();
}

function drawLines(sheet: Sheet, bold: PDFFont, top: number, lines: readonly Charge[]): number {
  sheet.put('Description', 40, top, 9, bold);
  sheet.right('Qty', 380, top, 9, bold);
  sheet.right('Unit price', 465, top, 9, bold);
  sheet.right('Amount', 555, top, 9, bold);
  let y = top + 20;
  for (const charge of lines) {
    sheet.put(charge.description, 40, y);
    sheet.right(charge.tokens.toLocaleString('en-US'), 380, y);
    sheet.right(`$${((RATES[charge.tokenClass] ?? 0) / 1e6).toFixed(6)}`, 465, y);
    sheet.right(dollars(centsOf(charge)), 555, y);
    sheet.put(charge.period, 40, y + 12, 8);
    y += 28;
  }
  return y;
}

/** A page on which distances are counted from its top. */
class Sheet {
  readonly #page: PDFPage;
  readonly #font: PDFFont;

  constructor(page: PDFPage, font: PDFFont) {
    this.#page = page;
    this.#font = font;
  }

  put(text: string, x: number, y: number, size = 9, font = this.#font): void {
    this.#page.drawText(text, { x, y: this.#page.getHeight() - y, size, font, color: rgb(0, 0, 0) });
  }

  right(text: string, edge: number, y: number, size = 9, font = this.#font): void {
    this.put(text, edge - font.widthOfTextAtSize(text, size), y, size, font);
  }
}
