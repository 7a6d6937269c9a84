import type { Sheet, TextOptions } from './sheet.js';

export interface Column {
  title: string;
  /** Left edge of texts; right edge of numbers. */
  x: number;
  align: 'left' | 'right';
  /** Width of wrapped texts. */
  width?: number;
}

export interface Cell {
  text: string;
  field?: string;
  bold?: boolean;
}

export interface Row {
  cells: (Cell | null)[];
  /** Small print below the first cell, such as a period. */
  below?: Cell[];
}

export interface TableLook {
  size: number;
  /** Between rows. */
  gap: number;
  headColour: string;
  headFill?: string;
  headBold: boolean;
  ruleColour?: string;
  left: number;
  right: number;
  /** Lower limit of the rows. */
  bottom: number;
  /** Upper limit of the rows on following pages. */
  top: number;
  repeatsHead: boolean;
}

/** Writes a table from `sheet.y` on, with page breaks. */
export function drawTable(
  sheet: Sheet,
  columns: readonly Column[],
  rows: readonly Row[],
  look: TableLook,
): void {
  head(sheet, columns, look);
  for (const row of rows) {
    const options: TextOptions = { size: look.size };
    const wrapped = row.cells.map((cell, at) => {
      const width = columns[at]?.width;
      return cell && width ? sheet.rows(cell.text, width, options) : cell ? [cell.text] : [];
    });
    const below = row.below ?? [];
    const step = look.size * 1.35;
    const height = Math.max(...wrapped.map((texts) => texts.length)) * step + below.length * step;
    if (sheet.y + height > look.bottom) {
      sheet.newPage();
      sheet.y = look.top;
      if (look.repeatsHead) head(sheet, columns, look);
    }
    for (const [at, cell] of row.cells.entries()) {
      const column = columns[at];
      if (!cell || !column) continue;
      for (const [down, text] of (wrapped[at] ?? []).entries())
        sheet.text(text, column.x, sheet.y + down * step, {
          ...options,
          align: column.align,
          field: cell.field,
          bold: cell.bold ?? false,
        });
    }
    let y = sheet.y + (wrapped[0]?.length ?? 1) * step;
    for (const { text, field } of below) {
      sheet.text(text, columns[0]?.x ?? look.left, y, { size: look.size - 1, colour: '#697386', field });
      y += step;
    }
    sheet.y += height + look.gap;
    if (look.ruleColour) sheet.line(look.left, look.right, sheet.y - look.gap / 2, look.ruleColour, 0.5);
  }
}

function head(sheet: Sheet, columns: readonly Column[], look: TableLook): void {
  const size = look.size - 1;
  if (look.headFill) sheet.block(look.left, sheet.y - 4, look.right - look.left, size + 9, look.headFill);
  for (const { title, x, align } of columns)
    sheet.text(title, x, sheet.y, { size, align, colour: look.headColour, bold: look.headBold });
  sheet.y += size + 8;
  if (!look.headFill) sheet.line(look.left, look.right, sheet.y - 3);
  sheet.y += 5;
}

/** Name and value of a sum, the value right-aligned. */
export function drawSum(
  sheet: Sheet,
  name: string,
  value: string,
  place: { left: number; right: number; size: number; bold?: boolean; field?: string; rule?: boolean },
): void {
  if (place.rule !== false) sheet.line(place.left, place.right, sheet.y - 4);
  const options = { size: place.size, bold: place.bold ?? false };
  sheet.text(name, place.left, sheet.y, options);
  sheet.text(value, place.right, sheet.y, { ...options, align: 'right', field: place.field });
  sheet.y += place.size * 1.35 + 7;
}
