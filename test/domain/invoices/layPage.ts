import type {
  InvoiceEngine,
  InvoiceExtraction,
  PageWords,
  Word,
} from '../../../domain/invoices/pageWords.js';

/** A text at a horizontal place: its left edge, or its right edge for numbers. Points. */
export type Placed = readonly [text: string, x: number, align?: 'left' | 'right'];

export const FONT_SIZE = 9;
/** Points of one character; all have the same width, so that places can be computed. */
export const CHAR_WIDTH = 4.5;
const ROW_HEIGHT = 14;

export interface LaidRow {
  texts: readonly Placed[];
  /** Points below the row before. */
  skip?: number;
}

/** Rows of text as the words of a page, one below the other. */
export function layPage(
  rows: readonly (LaidRow | readonly Placed[])[],
  { page = 1, engine = 'text' as InvoiceEngine, confidence = 1, top = 40 } = {},
): PageWords {
  let y = top;
  const words = rows.flatMap((row) => {
    const { texts, skip = ROW_HEIGHT }: LaidRow = 'texts' in row ? row : { texts: row };
    y += skip;
    return texts.flatMap((placed) => wordsOf(placed, y, confidence));
  });
  return { page, width: 595, height: 842, engine, words };
}

function wordsOf([text, x, align = 'left']: Placed, y: number, confidence: number): Word[] {
  const left = align === 'left' ? x : x - text.length * CHAR_WIDTH;
  return [...text.matchAll(/[^ ]+/g)].map((match) => ({
    text: match[0],
    x: left + match.index * CHAR_WIDTH,
    y,
    width: match[0].length * CHAR_WIDTH,
    height: FONT_SIZE,
    confidence,
  }));
}

export function extractionOf(...pages: PageWords[]): InvoiceExtraction {
  return { pages, entities: [] };
}

/** The page turned about its corner by a slope, with its words in another order. */
export function turned(page: PageWords, slope: number): PageWords {
  const length = Math.hypot(1, slope);
  const words = page.words.map((word) => {
    const x = word.x + word.width / 2;
    const y = word.y + word.height / 2;
    return {
      ...word,
      x: (x - y * slope) / length - word.width / 2,
      y: (y + x * slope) / length - word.height / 2,
    };
  });
  return { ...page, words: words.toReversed() };
}

/** The columns of a Stripe invoice: description, quantity, unit price, tax, amount. */
export const line = (
  description: string,
  quantity: string,
  price: string,
  tax: string,
  amount: string,
): Placed[] => [
  [description, 40],
  [quantity, 360, 'right'],
  [price, 440, 'right'],
  [tax, 490, 'right'],
  [amount, 555, 'right'],
];
export const sum = (label: string, amount: string): Placed[] => [
  [label, 330],
  [amount, 555, 'right'],
];

export const STRIPE_HEAD: readonly (LaidRow | readonly Placed[])[] = [
  [['Invoice', 40]],
  [
    ['Invoice number', 40],
    ['DSUQQKNL-0001', 140],
  ],
  [
    ['Date of issue', 40],
    ['March 26, 2026', 140],
  ],
  [
    ['Date due', 40],
    ['April 25, 2026', 140],
  ],
  {
    texts: [
      ['Anthropic, PBC', 40],
      ['Bill to', 300],
    ],
    skip: 30,
  },
  [
    ['548 Market Street', 40],
    ['Demo Labs GmbH', 300],
  ],
  [['support@anthropic.com', 40]],
];
