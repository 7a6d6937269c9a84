/**
 * A reader of CSV and decimals that is independent of the product, for checking exports and imports. Decimals are
 * fractions over powers of ten, so that nothing is rounded.
 */

/** RFC 4180: quotes, doubled quotes, newlines inside of quotes, CRLF or LF, a byte order mark. */
export function parseCsvText(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let isQuoted = false;
  const endCell = () => {
    row.push(cell);
    cell = '';
  };
  const source = text.startsWith('\ufeff') ? text.slice(1) : text;
  for (let at = 0; at < source.length; at += 1) {
    const char = source[at] as string;
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (source[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (char === '"') isQuoted = true;
    else if (char === ',') endCell();
    else if (char === '\n') {
      endCell();
      rows.push(row);
      row = [];
    } else if (char !== '\r') cell += char;
  }
  if (cell !== '' || row.length > 0) {
    endCell();
    rows.push(row);
  }
  return rows.filter((cells) => cells.length > 1 || cells[0] !== '');
}

/** Records by column name; every row must be as long as the header. */
export function readTable(text: string): Record<string, string>[] {
  const [header = [], ...rows] = parseCsvText(text);
  return rows.map((cells, at) => {
    if (cells.length !== header.length)
      throw new Error(`row ${at + 1} has ${cells.length} cells, not ${header.length}`);
    return Object.fromEntries(header.map((name, column) => [name, cells[column] as string]));
  });
}

/** value ÷ 10^scale */
export interface Exact {
  value: bigint;
  scale: number;
}

/** A plain or scientific decimal; throws for anything else. */
export function exactOf(text: string): Exact {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text.trim());
  if (!match || `${match[2]}${match[3] ?? ''}` === '') throw new Error(`not a decimal: ${text}`);
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const value = BigInt(`${whole}${fraction}`) * (sign === '-' ? -1n : 1n);
  const scale = fraction.length - Number(exponent);
  return scale >= 0 ? { value, scale } : { value: value * 10n ** BigInt(-scale), scale: 0 };
}

export function addExact(a: Exact, b: Exact): Exact {
  const scale = Math.max(a.scale, b.scale);
  const at = ({ value, scale: own }: Exact) => value * 10n ** BigInt(scale - own);
  return { value: at(a) + at(b), scale };
}

export function timesExact(a: Exact, b: Exact): Exact {
  return { value: a.value * b.value, scale: a.scale + b.scale };
}

/** Without trailing zeros, so that equal numbers are equal texts. */
export function textOfExact({ value, scale }: Exact): string {
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0');
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${digits.slice(0, digits.length - scale)}${scale > 0 && fraction !== '' ? `.${fraction}` : ''}`;
}

export const ZERO: Exact = { value: 0n, scale: 0 };

/** The exact sum of texts; empty ones are nothing. */
export function sumTexts(texts: readonly string[]): string {
  return textOfExact(
    texts.filter((text) => text !== '').reduce((sum, text) => addExact(sum, exactOf(text)), ZERO),
  );
}

/** Sums of one column, grouped by the name that another function returns for a row. */
export function sumsBy(
  rows: readonly Record<string, string>[],
  group: (row: Record<string, string>) => string,
  column: string,
): Record<string, string> {
  const groups = new Map<string, string[]>();
  for (const row of rows) {
    const name = group(row);
    groups.set(name, [...(groups.get(name) ?? []), row[column] ?? '']);
  }
  return Object.fromEntries([...groups].sort().map(([name, texts]) => [name, sumTexts(texts)]));
}
