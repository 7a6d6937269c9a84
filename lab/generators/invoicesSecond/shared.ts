import type { Bill, Item } from './bill.js';
import { writtenSpan } from './calendar.js';
import { asMoney, plain, written } from './figures.js';
import type { Entry } from './grid.js';
import { BLACK, GREY, type Ink, type Paper, type Tint } from './paper.js';

/** Optional fields that a form prints. */
export interface Shows {
  subtotal: boolean;
  balance: boolean;
  paid: boolean;
  period: boolean;
  due: boolean;
}

export function money(bill: Bill, value: bigint): string {
  return asMoney(value, bill.notation, bill.money);
}

export function percent(bill: Bill, value: bigint): string {
  return `${plain(value).replace('.', bill.notation.comma ? ',' : '.')}%`;
}

export function cells(
  bill: Bill,
  item: Item,
): { text: Entry; count: Entry | null; rate: Entry | null; net: Entry; tax: Entry | null } {
  const path = `lines.${bill.items.indexOf(item) + 1}`;
  const minus = item.count !== null && item.count < 0n ? '-' : '';
  return {
    text: { text: item.text, field: `${path}.description` },
    count:
      item.count === null
        ? null
        : { text: minus + written(item.count, bill.notation, 0), field: `${path}.quantity` },
    rate: item.rate === null ? null : { text: money(bill, item.rate), field: `${path}.unitPrice` },
    net: { text: money(bill, item.net), field: `${path}.amount` },
    tax: item.taxPercent === null ? null : { text: percent(bill, item.taxPercent), field: `${path}.taxRate` },
  };
}

export function spanOf(bill: Bill, item: Item): Entry | undefined {
  if (item.from === null || item.to === null) return undefined;
  const field = `lines.${bill.items.indexOf(item) + 1}.period`;
  return {
    text: writtenSpan(item.from, item.to, bill.dates, bill.dates === 'short' ? ' - ' : ' to '),
    field,
  };
}

export function stack(
  paper: Paper,
  texts: readonly (string | null)[],
  x: number,
  y: number,
  ink: Ink = {},
): number {
  let at = y;
  for (const text of texts) {
    if (text === null) continue;
    paper.put(text, x, at, ink);
    at += (ink.size ?? 9) * 1.38;
  }
  return at;
}

/** Writes a name at the left and a value at the right, and moves to the next row. */
export function pair(
  paper: Paper,
  name: string,
  value: string,
  place: {
    from: number;
    to: number;
    size?: number;
    bold?: boolean;
    field?: string | undefined;
    ruled?: boolean;
    fill?: Tint;
  },
): void {
  const size = place.size ?? 9;
  const ink = { size, bold: place.bold ?? false, tint: BLACK };
  if (place.fill)
    paper.area(place.from - 4, paper.y - size * 1.1, place.to - place.from + 8, size * 1.75, place.fill);
  if (place.ruled) paper.rule(place.from, place.to, paper.y - size * 1.25);
  paper.put(name, place.from, paper.y, ink);
  paper.put(value, place.to, paper.y, { ...ink, to: 'right', field: place.field });
  paper.y += size * 1.95;
}

/** Starts a new page if less than this height is left. */
export function keepTogether(paper: Paper, height: number, top = 56): void {
  if (paper.y + height <= paper.height - 64) return;
  paper.newPage();
  paper.y = top;
}

export function smallPrint(paper: Paper, texts: readonly string[], x: number): void {
  keepTogether(paper, texts.length * 11 + 10);
  paper.y = stack(paper, texts, x, paper.y + 8, { size: 7.5, tint: GREY });
}
