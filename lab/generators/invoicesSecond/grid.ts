import { GREY, type Paper, type Tint } from './paper.js';

export interface Slot {
  head: string;
  /** Left and right edge. */
  from: number;
  to: number;
  side: 'left' | 'right' | 'middle';
  breaks?: boolean;
}

export interface Entry {
  text: string;
  field?: string;
}

export interface GridRow {
  entries: (Entry | null)[];
  under?: Entry | undefined;
  strong?: boolean;
}

export interface GridLook {
  size: number;
  pad: number;
  boxed: boolean;
  headFill: Tint | null;
  headTint: Tint;
  striped: boolean;
  /** Centres numbers vertically in rows with wrapped texts. */
  middle: boolean;
  headAgain: boolean;
  top: number;
  bottom: number;
  /** Writes the carried sum before and after a page break. */
  carry?: (where: 'end' | 'start', rowsDone: number) => GridRow;
}

export function grid(paper: Paper, slots: readonly Slot[], rows: readonly GridRow[], look: GridLook): void {
  heading(paper, slots, look);
  for (const [at, row] of rows.entries()) {
    const room = look.bottom - (look.carry ? look.size * 2.4 : 0);
    if (paper.y + heightOf(paper, slots, row, look) > room) {
      if (look.carry) line(paper, slots, look.carry('end', at), look, 0);
      paper.newPage();
      paper.y = look.top;
      if (look.headAgain) heading(paper, slots, look);
      if (look.carry) line(paper, slots, look.carry('start', at), look, 0);
    }
    line(paper, slots, row, look, at);
  }
}

function textsOf(paper: Paper, slot: Slot, entry: Entry | null | undefined, look: GridLook): string[] {
  if (!entry) return [];
  return slot.breaks ? paper.broken(entry.text, slot.to - slot.from - 6, look.size) : [entry.text];
}

function heightOf(paper: Paper, slots: readonly Slot[], row: GridRow, look: GridLook): number {
  const rows = Math.max(1, ...slots.map((slot, at) => textsOf(paper, slot, row.entries[at], look).length));
  return (rows + (row.under ? 1 : 0)) * look.size * 1.28 + look.pad * 2;
}

function heading(paper: Paper, slots: readonly Slot[], look: GridLook): void {
  const height = look.size + look.pad * 2;
  const left = slots[0]?.from ?? 0;
  const right = slots.at(-1)?.to ?? 0;
  if (look.headFill) paper.area(left, paper.y, right - left, height, look.headFill);
  for (const slot of slots)
    place(
      paper,
      slot,
      slot.head,
      paper.y + look.pad + look.size * 0.8,
      look.size - 0.5,
      true,
      undefined,
      look.headTint,
    );
  if (!look.headFill) paper.rule(left, right, paper.y + height);
  paper.y += height;
}

function place(
  paper: Paper,
  slot: Slot,
  text: string,
  y: number,
  size: number,
  bold: boolean,
  field?: string,
  tint?: Tint,
): void {
  const ink = { size, bold, field, ...(tint ? { tint } : {}) };
  if (slot.side === 'right') paper.put(text, slot.to - 3, y, { ...ink, to: 'right' });
  else if (slot.side === 'middle') paper.put(text, (slot.from + slot.to) / 2, y, { ...ink, to: 'middle' });
  else paper.put(text, slot.from + 3, y, ink);
}

function line(paper: Paper, slots: readonly Slot[], row: GridRow, look: GridLook, at: number): void {
  const height = heightOf(paper, slots, row, look);
  const left = slots[0]?.from ?? 0;
  const right = slots.at(-1)?.to ?? 0;
  if (look.striped && at % 2 === 1) paper.area(left, paper.y, right - left, height, [0.96, 0.96, 0.97]);
  const step = look.size * 1.28;
  const first = paper.y + look.pad + look.size * 0.82;
  for (const [column, slot] of slots.entries()) {
    const texts = textsOf(paper, slot, row.entries[column], look);
    const free = (height - look.pad * 2 - texts.length * step) / 2;
    const start = look.middle && !slot.breaks ? first + free : first;
    for (const [down, text] of texts.entries())
      place(
        paper,
        slot,
        text,
        start + down * step,
        look.size,
        row.strong ?? false,
        row.entries[column]?.field,
      );
    if (look.boxed) paper.upright(slot.from, paper.y, paper.y + height);
  }
  const broken = slots[0] ? slots.findIndex((slot) => slot.breaks) : -1;
  const slot = slots[Math.max(0, broken)];
  if (row.under && slot) {
    const rows = textsOf(paper, slot, row.entries[Math.max(0, broken)], look).length;
    paper.put(row.under.text, slot.from + 3, first + rows * step, {
      size: look.size - 1,
      tint: GREY,
      field: row.under.field,
    });
  }
  if (look.boxed) paper.upright(right, paper.y, paper.y + height);
  paper.y += height;
  if (look.boxed || look.striped) paper.rule(left, right, paper.y);
}
