import {
  atPointer,
  converted,
  Difference,
  decimalText,
  divideHalfEven,
  type JsonNode,
  ONE,
  parseDecimal,
  readJson,
  readTable,
  type TableRow,
  toTwelve,
} from './exact.js';
import type { Checked } from './verifyPack.js';

const CLAIM = 'claim.json';

/** The decimal of a field; undefined: the field is null. Throws Difference for other values. */
export function decimalOf(node: JsonNode, name: string): bigint | undefined {
  const field = node.fields.get(name);
  if (field?.kind === 'word' && field.text === 'null') return undefined;
  const value = field?.kind === 'string' ? parseDecimal(field.text) : undefined;
  if (value === undefined) throw new Difference(CLAIM, field?.line ?? node.line, `${name} is not a decimal`);
  return value;
}

/** `decimalOf` for a required field. */
export function amountOf(node: JsonNode, name: string): bigint {
  const value = decimalOf(node, name);
  if (value === undefined)
    throw new Difference(CLAIM, node.fields.get(name)?.line ?? node.line, `${name} is missing`);
  return value;
}

export function textOf(node: JsonNode, name: string): string {
  return node.fields.get(name)?.text ?? '';
}

/** Throws Difference where a field has another decimal. */
export function assertSame(node: JsonNode, name: string, worked: bigint, from: string): void {
  const said = amountOf(node, name);
  if (said === worked) return;
  const field = node.fields.get(name);
  throw new Difference(
    CLAIM,
    field?.line,
    `${name} is ${decimalText(said)}, and ${from} ${decimalText(worked)}`,
  );
}

/** Recomputes the dollars of each line of the claim from the provider's pages and the rates. */
export function checkCells(files: ReadonlyMap<string, Buffer>, claim: JsonNode): Checked[] {
  const pages = new Pages(files);
  const rates = new Map(
    (claim.fields.get('pricing_snapshot')?.fields.get('rates')?.items ?? []).map((rate): [string, bigint] => [
      textOf(rate, 'id'),
      amountOf(rate, 'usd_per_mtok_exact'),
    ]),
  );
  const cells = claim.fields.get('cells')?.items ?? [];
  let [rows, computed] = [0, 0];
  for (const cell of cells) {
    rows += checkPageSums(cell, pages);
    if (textOf(cell, 'basis') === 'rates') {
      computed += 1;
      checkExpected(cell, rates);
    }
    const difference = amountOf(cell, 'rate_usd_exact') + amountOf(cell, 'volume_usd_exact');
    assertSame(cell, 'difference_usd_exact', difference, 'rate and volume come to');
    assertSame(
      cell,
      'expected_usd_exact',
      amountOf(cell, 'billed_usd_exact') - difference,
      'billed less the difference is',
    );
  }
  checkReportParts(cells);
  const stated = cells.length - computed;
  return [
    { what: 'rows found on the pages, amounts and quantities', count: rows, note: '' },
    {
      what: 'lines recomputed: quantity × rate',
      count: computed,
      note: stated > 0 ? `${stated} are stated as they were found` : '',
    },
  ];
}

/** Verifies that the rows on the pages sum to the cell's amount and quantity. Returns the number of rows. */
function checkPageSums(cell: JsonNode, pages: Pages): number {
  const rows = cell.fields.get('rows')?.items ?? [];
  const usage = cell.fields.get('quantity_rows')?.items ?? [];
  const isComputed = textOf(cell, 'basis') === 'rates';
  let amount = 0n;
  let quantity: bigint | undefined = 0n;
  for (const row of rows) {
    amount += pages.amountOf(row);
    const counted = pages.sumOf(row, 'quantity');
    quantity = quantity === undefined || counted === undefined ? undefined : quantity + counted;
  }
  const said = decimalOf(cell, 'page_usd_exact');
  if (rows.length > 0 || said !== undefined)
    assertSame(cell, 'page_usd_exact', amount, 'its rows on the pages come to');
  if (isComputed) assertSame(cell, 'billed_usd_exact', amount, 'its rows on the pages come to');
  if (usage.length > 0) {
    quantity = 0n;
    for (const row of usage) quantity += pages.sumOf(row, 'quantity') ?? 0n;
  }
  if (isComputed) {
    if (quantity === undefined)
      throw new Difference(CLAIM, cell.line, 'the rows of the line have no quantity');
    assertSame(cell, 'billed_quantity', quantity, 'its rows on the pages count');
    checkRate(cell, amount, quantity, 'billed_rate_usd');
  }
  return rows.length + usage.length + checkUsageReport(cell, pages);
}

/** Verifies the usage report's count of the same usage, where the units are disputed. Returns the number of rows. */
function checkUsageReport(cell: JsonNode, pages: Pages): number {
  const told = cell.fields.get('usage_report_rows')?.items ?? [];
  if (told.length === 0 && decimalOf(cell, 'usage_report_quantity') === undefined) return 0;
  const quantity = told.reduce((sum, row) => sum + (pages.sumOf(row, 'quantity') ?? 0n), 0n);
  assertSame(cell, reportTotalField(cell), quantity, 'its rows on the pages count');
  return told.length;
}

const REPORT_TOTAL = 'usage_report_total_quantity';

/** The field with the sum of the rows; older packs have only the quantity of each line, which is the sum. */
const reportTotalField = (cell: JsonNode): string =>
  cell.fields.has(REPORT_TOTAL) ? REPORT_TOTAL : 'usage_report_quantity';

/** Verifies that lines which use the same rows of the usage report sum to the rows. */
function checkReportParts(cells: readonly JsonNode[]): void {
  const groups = new Map<string, { first: JsonNode; parts: bigint }>();
  for (const cell of cells) {
    if (!cell.fields.has(REPORT_TOTAL) || decimalOf(cell, REPORT_TOTAL) === undefined) continue;
    const rows = (cell.fields.get('usage_report_rows')?.items ?? []).map((row) =>
      ['page', 'document', 'at'].map((name) => textOf(row, name)),
    );
    const key = JSON.stringify([
      ...['dispute_id', 'day', 'token_class'].map((name) => textOf(cell, name)),
      rows,
    ]);
    const group = groups.get(key) ?? { first: cell, parts: 0n };
    group.parts += amountOf(cell, 'usage_report_quantity');
    groups.set(key, group);
  }
  for (const { first, parts } of groups.values())
    assertSame(first, REPORT_TOTAL, parts, 'the parts of its lines come to');
}

const MILLION = 1_000_000n;
const TRILLION = 1_000_000_000_000n;

/** Verifies that a shown rate is amount ÷ quantity for a million units, to the 12th digit. */
function checkRate(cell: JsonNode, amount: bigint, quantity: bigint, name: string): void {
  const field = cell.fields.get(name);
  if (quantity <= 0n || !field) return;
  const rate = (divideHalfEven(amount * MILLION * TRILLION, quantity) * ONE) / TRILLION;
  if (field.text !== JSON.stringify(Number(decimalText(rate))))
    throw new Difference(
      CLAIM,
      field.line,
      `${name} is ${field.text}, and amount ÷ quantity ${decimalText(rate)}`,
    );
}

/** Verifies that quantities times rates are the expected amount. */
function checkExpected(cell: JsonNode, rates: ReadonlyMap<string, bigint>): void {
  const parts = (cell.fields.get('parts')?.items ?? []).map((part) => {
    const rate = rates.get(textOf(part, 'rate'));
    if (rate === undefined)
      throw new Difference(CLAIM, part.line, `there is no rate ${textOf(part, 'rate')}`);
    return { quantity: amountOf(part, 'quantity'), rate };
  });
  const billed = amountOf(cell, 'billed_quantity');
  const right = amountOf(cell, 'right_quantity');
  const whole = parts.reduce((sum, part) => sum + part.quantity, 0n);
  if (whole !== billed)
    throw new Difference(
      CLAIM,
      cell.fields.get('parts')?.line,
      `the parts come to ${decimalText(whole)} of ${decimalText(billed)} units`,
    );
  if (
    right < 0n ||
    right > billed ||
    (right !== billed && right < (decimalOf(cell, 'observed_quantity') ?? 0n))
  )
    throw new Difference(
      CLAIM,
      cell.fields.get('right_quantity')?.line,
      'right_quantity is not between observed and billed',
    );
  const product = parts.reduce((sum, part) => sum + part.quantity * part.rate, 0n);
  const ofBilled = toTwelve(divideHalfEven(product, ONE * MILLION));
  const ofRight = whole === right || whole === 0n ? ofBilled : twelveOf(product * right, whole * MILLION);
  const rate = amountOf(cell, 'rate_usd_exact');
  if (rate !== 0n)
    assertSame(
      cell,
      'rate_usd_exact',
      amountOf(cell, 'billed_usd_exact') - ofBilled,
      'billed less quantity × rate is',
    );
  assertSame(cell, 'volume_usd_exact', ofBilled - ofRight, 'the units too many cost');
  const field = cell.fields.get('expected_rate_usd');
  const same = new Set(parts.map((part) => part.rate)).size === 1 ? parts[0]?.rate : undefined;
  if (
    field?.kind === 'number' &&
    same !== undefined &&
    field.text !== JSON.stringify(Number(decimalText(same)))
  )
    throw new Difference(
      CLAIM,
      field.line,
      `expected_rate_usd is ${field.text}, and the rate ${decimalText(same)}`,
    );
}

/** A quotient scaled by ONE twice, rounded once at the 12th digit. */
function twelveOf(numerator: bigint, divisor: bigint): bigint {
  return (divideHalfEven(numerator * TRILLION, divisor * ONE * ONE) * ONE) / TRILLION;
}

/** The provider's pages, each read once. */
class Pages {
  readonly #files: ReadonlyMap<string, Buffer>;
  readonly #documents = new Map<string, JsonNode[]>();
  readonly #tables = new Map<string, TableRow[]>();

  constructor(files: ReadonlyMap<string, Buffer>) {
    this.#files = files;
  }

  /** In US dollars. */
  amountOf(row: JsonNode): bigint {
    const amount = this.sumOf(row, 'amount') ?? 0n;
    const rate = decimalOf(row, 'fx_rate');
    return rate === undefined ? amount : converted(amount, rate);
  }

  /** The sum of the terms that the row names; undefined: it names none. */
  sumOf(row: JsonNode, name: 'amount' | 'quantity'): bigint | undefined {
    const terms = row.fields.get(name);
    if (terms?.kind !== 'array') return undefined;
    let sum = 0n;
    for (const term of terms.items) {
      const by = term.fields.get('by');
      const second = by ? this.#numberOf(row, by.text) : ONE;
      sum += divideHalfEven(
        this.#numberOf(row, textOf(term, 'at')) * amountOf(term, 'times') * second,
        ONE * ONE,
      );
    }
    return toTwelve(sum);
  }

  #numberOf(row: JsonNode, at: string): bigint {
    const file = textOf(row, 'page');
    const { line, text } = this.#find(row, file, at);
    const value = text === undefined ? undefined : parseDecimal(text);
    if (value === undefined)
      throw new Difference(file, line, `holds no number at ${textOf(row, 'at')} ${at}`);
    return value;
  }

  #find(row: JsonNode, file: string, at: string): { line: number | undefined; text: string | undefined } {
    const bytes = this.#files.get(file);
    if (!bytes) throw new Difference(CLAIM, row.line, `there is no page ${file}`);
    const place = textOf(row, 'at');
    if (place.startsWith('#')) {
      const table = this.#tables.get(file) ?? readTable(file, bytes);
      this.#tables.set(file, table);
      const record = table[Number(place.slice(1))];
      return { line: record?.line, text: record?.cells.get(at) };
    }
    const documents = this.#documents.get(file) ?? readJson(file, bytes.toString('utf8'));
    this.#documents.set(file, documents);
    const record = atPointer(documents[Number(textOf(row, 'document'))], place);
    const node = atPointer(record, at);
    const isNumber = node?.kind === 'number' || node?.kind === 'string';
    return { line: node?.line ?? record?.line, text: isNumber ? node.text : undefined };
  }
}
