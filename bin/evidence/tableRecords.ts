import { Difference, type JsonNode, readJson } from './exact.js';

/** Records of a bill that is a table: CSV (RFC 4180) with a header, or JSON lines. Cells by lower-case column. */

export interface TableRow {
  readonly line: number;
  readonly cells: ReadonlyMap<string, string>;
}

export function readTable(file: string, bytes: Buffer): TableRow[] {
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  return /^\s*\{/.test(text) ? readLines(file, text) : readCsv(file, text);
}

function readLines(file: string, text: string): TableRow[] {
  return readJson(file, text).map((node) => {
    const cells = new Map<string, string>();
    flatten(node, '', cells);
    return { line: node.line, cells };
  });
}

function flatten(node: JsonNode, path: string, cells: Map<string, string>): void {
  for (const [name, field] of node.fields) {
    const at = (path === '' ? name : `${path}.${name}`).toLowerCase();
    if (field.kind === 'object') flatten(field, at, cells);
    else if (field.kind === 'string' || field.kind === 'number') cells.set(at, field.text);
  }
}

function readCsv(file: string, text: string): TableRow[] {
  const records = [...csvRecords(file, text)];
  const header = records.shift()?.cells.map((cell) => cell.trim().toLowerCase()) ?? [];
  return records.map(({ line, cells }) => ({
    line,
    cells: new Map(cells.map((cell, at): [string, string] => [header[at] ?? '', cell.trim()])),
  }));
}

/** Lines end with LF, CRLF or CR; empty ones count for nothing. */
export function* csvRecords(file: string, text: string): Generator<{ line: number; cells: string[] }> {
  let line = 1;
  let at = 0;
  while (at < text.length) {
    const start = line;
    const cells: string[] = [];
    for (;;) {
      const quoted = /[ \t]*"((?:[^"]|"")*)"[ \t]*/y;
      quoted.lastIndex = at;
      const found = quoted.exec(text);
      if (found) {
        cells.push((found[1] ?? '').replaceAll('""', '"'));
        line += (found[0].match(/\r\n|\n|\r/g) ?? []).length;
        at += found[0].length;
      } else {
        const plain = /[^,\r\n]*/y;
        plain.lastIndex = at;
        const cell = plain.exec(text)?.[0] ?? '';
        cells.push(cell);
        at += cell.length;
      }
      if (text[at] !== ',') break;
      at += 1;
    }
    if (at < text.length && text[at] !== '\r' && text[at] !== '\n')
      throw new Difference(file, line, 'is not CSV');
    if (text[at] === '\r' && text[at + 1] === '\n') at += 1;
    at += 1;
    line += 1;
    if (cells.length > 1 || (cells[0] ?? '').trim() !== '') yield { line: start, cells };
  }
}
