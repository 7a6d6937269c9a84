import { claimCents } from '../../domain/claims/financialSummary.js';
import { decimalFromScaled, divideHalfEven, type Pico } from '../../domain/money.js';

/** A column of a terminal table: its heading, and the alignment of its cells. */
export interface TextColumn {
  heading: string;
  align: 'left' | 'right';
}

export const left = (heading: string): TextColumn => ({ heading, align: 'left' });
export const right = (heading: string): TextColumn => ({ heading, align: 'right' });

/**
 * Columns as wide as their widest cell, with underlined headings; without escape codes, so that files show the same.
 */
export function textTable(
  columns: readonly TextColumn[],
  rows: readonly (readonly string[])[],
  gap = '  ',
): string[] {
  const widths = columns.map(({ heading }, at) =>
    Math.max(heading.length, ...rows.map((row) => (row[at] ?? '').length)),
  );
  const write = (cells: readonly string[]) =>
    cells
      .map((cell, at) => {
        const width = widths[at] ?? 0;
        return columns[at]?.align === 'right' ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(gap)
      .trimEnd();
  return [
    write(columns.map(({ heading }) => heading)),
    widths.map((width) => '-'.repeat(width)).join(gap),
    ...rows.map(write),
  ];
}

/** A text of at most `width` characters; a cut is shown as "…". */
export function fitText(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** A text as lines of at most `width` characters, broken at spaces; a longer word gets a separate line. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter((part) => part !== '')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** A decimal with `digits` fraction digits, rounded half to even, with commas between thousands. */
export function figure(value: bigint, digits: number): string {
  const scale = 12;
  const rounded = divideHalfEven(value, 10n ** BigInt(scale - digits));
  const [whole = '0', fraction = ''] = decimalFromScaled(rounded, digits).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return digits === 0 ? grouped : `${grouped}.${fraction.padEnd(digits, '0')}`;
}

const CENT_PICO = 10_000_000_000n;

/** A finding's dollars, rounded as in its sentence; less than a cent is not shown as zero. */
export function foundDollars(pico: Pico): string {
  const cents = claimCents(pico);
  if (cents === 0n && pico !== 0n) return pico > 0n ? '<0.01' : '>-0.01';
  return figure(cents * CENT_PICO, 2);
}

/** Dollars to the cent; a nonzero amount below half a cent is not shown as zero. */
export function dollars(pico: Pico): string {
  const isTiny = pico !== 0n && pico * 2n < CENT_PICO && pico * 2n > -CENT_PICO;
  return isTiny ? (pico > 0n ? '<0.01' : '>-0.01') : figure(pico, 2);
}
