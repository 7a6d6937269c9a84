/** That claim.csv is claim.json line by line, and adds up. */
import { textOf } from './checkCells.js';
import { Difference } from './difference.js';
import type { JsonNode } from './exactJson.js';
import { csvRecords } from './tableRecords.js';
import type { Checked } from './verifyPack.js';

const FILE = 'claim.csv';
const FIELDS: readonly [column: string, field: string][] = [
  ['dispute_id', 'dispute_id'],
  ['day', 'day'],
  ['model', 'model'],
  ['token_class', 'token_class'],
  ['service_tier', 'service_tier'],
  ['is_batch', 'is_batch'],
  ['long_context', 'long_context'],
  ['region', 'region'],
  ['billed_quantity', 'billed_quantity'],
  ['right_quantity', 'right_quantity'],
  ['observed_quantity', 'observed_quantity'],
  ['billed_usd_per_mtok', 'billed_rate_usd'],
  ['billed_usd', 'billed_usd_exact'],
  ['expected_usd_per_mtok', 'expected_rate_usd'],
  ['expected_usd', 'expected_usd_exact'],
  ['difference_usd', 'difference_usd_exact'],
  ['basis', 'basis'],
];

export function checkCsv(files: ReadonlyMap<string, Buffer>, claim: JsonNode): Checked[] {
  const bytes = files.get(FILE);
  if (!bytes) throw new Difference(FILE, undefined, 'is missing');
  const lines = [...csvRecords(FILE, bytes.toString('utf8'))];
  const list = (name: string) => claim.fields.get(name)?.items ?? [];
  const totals = claim.fields.get('totals') ?? claim;
  const lineOf = (tokenClass: string, difference: string) =>
    FIELDS.map(([column]) => ({ token_class: tokenClass, difference_usd: difference })[column] ?? '');
  const expected = [
    FIELDS.map(([column]) => column),
    ...list('cells').map((cell) => FIELDS.map(([, field]) => cellOf(cell, field))),
    ...list('undercharges').map((one) =>
      FIELDS.map(
        ([column, field]) =>
          ({ token_class: 'netted undercharge', basis: 'stated', dispute_id: '' })[column] ??
          cellOf(one, field),
      ),
    ),
    lineOf('total', textOf(totals, 'recoverable_usd_exact')),
  ];
  // Packs of earlier versions end with the total.
  if (lines.length > expected.length)
    expected.push(lineOf('credit requested', dollarsOf(textOf(totals, 'recoverable_cents'))));
  expected.forEach((cells, at) => {
    const found = lines[at];
    const other = cells.findIndex((cell, place) => found?.cells[place] !== safe(cell));
    if (!found || other >= 0 || found.cells.length !== cells.length)
      throw new Difference(
        FILE,
        found?.line,
        `${FIELDS[Math.max(other, 0)]?.[0]} is ${found?.cells[other]}, and claim.json says ${cells[other]}`,
      );
  });
  const [extra] = lines.slice(expected.length);
  if (extra) throw new Difference(FILE, extra.line, 'is a line that claim.json does not have');
  return [{ what: 'lines of claim.csv', count: expected.length - 1, note: '' }];
}

/** Cents as a decimal of dollars with two digits. */
const dollarsOf = (cents: string): string => cents.padStart(3, '0').replace(/(..)$/, '.$1');

function cellOf(node: JsonNode, field: string): string {
  const value = node.fields.get(field);
  return value === undefined || (value.text === 'null' && value.kind === 'word') ? '' : value.text;
}

/** As no spreadsheet takes it for a formula. */
const safe = (cell: string): string =>
  /^[=+\-@\t\r]/.test(cell) && !/^-?\d+(\.\d+)?$/.test(cell) ? `'${cell}` : cell;
