import { DomainError } from '../../errors.js';
import { parseInstant } from '../../period.js';
import { type BilledRow, type ChargeCategory, QUANTITY_ONE, QUANTITY_SCALE } from '../billedRow.js';
import { parseAzureMeter } from '../grammars/azureMeter.js';
import type { ParsedLabel } from '../grammars/parsedLabel.js';
import {
  ExactNumber,
  findScaled,
  findText,
  isPageObject,
  keepText,
  keepTextOrNull,
  type PageObject,
  type PageValue,
  toPicoOrNull,
} from '../pageRow.js';
import { azureCategory, azureUnitTokens, resourceOf } from './azureCostDetails.js';
import type { DocumentContext, DocumentFormat } from './index.js';
import { timesOfDay } from './tableFormat.js';

/** Lower-case columns of a Cost Management answer, including the request's aliases. */
export const AZURE_QUERY_COLUMNS = {
  cost: ['cost', 'pretaxcost', 'totalcost'],
  quantity: ['usagequantity', 'qty'],
  day: ['usagedate'],
  meter: ['meter', 'metername'],
  currency: ['currency', 'billingcurrency'],
  resource: ['resourceid'],
  subscription: ['subscriptionid'],
  product: ['metersubcategory'],
  unit: ['unitofmeasure'],
  chargeType: ['chargetype'],
} as const;

type ColumnName = keyof typeof AZURE_QUERY_COLUMNS;

/** Whether a JSON document is an answer of the query API. */
function isAzureQueryPage(document: PageObject): boolean {
  const { properties } = document;
  return isPageObject(properties) && Array.isArray(properties.columns) && Array.isArray(properties.rows);
}

const USAGE_DATE = /^(\d{4})(\d\d)(\d\d)$/;

/** `20260901` (a number) or a text such as `2026-09-01T00:00:00` → `2026-09-01`; undefined for any other text. */
export function dayOfUsageDate(text: string): string | undefined {
  const [, year, month, day] = USAGE_DATE.exec(text) ?? [];
  const iso = year === undefined ? text.slice(0, 10) : `${year}-${month}-${day}`;
  return parseInstant(iso)?.dateOnly ? iso : undefined;
}

/** Cells of one row, by column. */
class QueryRow {
  readonly #cells: readonly PageValue[];
  readonly #places: ReadonlyMap<ColumnName, number>;

  constructor(cells: readonly PageValue[], places: ReadonlyMap<ColumnName, number>) {
    this.#cells = cells;
    this.#places = places;
  }

  value(column: ColumnName): PageValue | undefined {
    const place = this.#places.get(column);
    return place === undefined ? undefined : this.#cells[place];
  }

  text(column: ColumnName): string | null {
    const value = this.value(column);
    return value instanceof ExactNumber ? value.text : findText(value);
  }

  /** 1e-12 units; null: the column or the cell is empty. */
  number(column: ColumnName): bigint | null {
    return findScaled(this.value(column), QUANTITY_SCALE) ?? null;
  }
}

interface ReadRow {
  row: QueryRow;
  label: ParsedLabel;
  cost: bigint;
  quantity: bigint | null;
  unitTokens: bigint;
}

/** Tokens per unit of meters whose unit is not stated. */
const USUAL_UNIT_TOKENS = 1_000n;
/** A thousandth of a unit of money per million tokens, in 1e-12 units; every model costs more. */
const IMPOSSIBLE_RATE = 1_000_000_000n;

/** Maximum remembered rows of a file, by which repeated rows are found. */
const SEEN_MAX = 1_000_000;

/** Saved or fetched answers of the query. */
export const azureQuery: DocumentFormat = {
  format: 'azure_query_pages',
  name: "an answer of Azure's Cost Management query",
  looksLike: /"properties"\s*:\s*\{[\s\S]*"columns"\s*:\s*\[/,
  isDocument: isAzureQueryPage,
  read: (document, context) => ({ rows: azureQueryRows(document, context) }),
};

/**
 * An answer → cost rows. Error invalid_billing_file with the row, also for a repeated row, which means that pages
 * overlapped.
 */
function azureQueryRows(document: PageObject, { fxRateOn, seen }: DocumentContext): BilledRow[] {
  const { properties } = document;
  if (!isPageObject(properties) || !Array.isArray(properties.columns) || !Array.isArray(properties.rows))
    throw new DomainError('invalid_billing_file', 'the answer has no columns and rows in "properties"');
  const places = placesOf(properties.columns);
  const read = properties.rows.map((cells, at) => {
    checkOnce(cells, seen, at);
    return readRow(cells, places, at);
  });
  const countsTokens = read.some(isImpossible);
  return read.map((one, at) => toRow(one, countsTokens, fxRateOn, at));
}

function placesOf(columns: readonly PageValue[]): Map<ColumnName, number> {
  const names = columns.map((column) =>
    isPageObject(column) ? (findText(column.name) ?? '').toLowerCase() : '',
  );
  const places = new Map<ColumnName, number>();
  for (const [name, known] of Object.entries(AZURE_QUERY_COLUMNS)) {
    const place = names.findIndex((column) => (known as readonly string[]).includes(column));
    if (place >= 0) places.set(name as ColumnName, place);
  }
  for (const name of ['cost', 'day', 'meter'] as const) {
    if (!places.has(name)) {
      throw new DomainError(
        'invalid_billing_file',
        `the answer has no column ${AZURE_QUERY_COLUMNS[name][0]}; its columns are ${names.slice(0, 20).join(', ')}`,
      );
    }
  }
  return places;
}

/** Rows are grouped by all of their fields, so two equal rows are one row that was sent twice. */
function checkOnce(cells: PageValue, seen: Set<string>, at: number): void {
  if (!Array.isArray(cells) || seen.size >= SEEN_MAX) return;
  const key = JSON.stringify(cells.map((cell) => (cell instanceof ExactNumber ? cell.text : cell)));
  if (seen.has(key)) throw fault(at, 'the same charge occurs twice; give each page of an answer once');
  seen.add(key);
}

function readRow(cells: PageValue, places: ReadonlyMap<ColumnName, number>, at: number): ReadRow {
  if (!Array.isArray(cells)) throw fault(at, 'a row must be an array');
  const row = new QueryRow(cells, places);
  const cost = row.number('cost');
  if (cost === null) throw fault(at, 'the cost must be a number');
  const label = parseAzureMeter(row.text('meter') ?? '', row.text('product') ?? '');
  const unitTokens = azureUnitTokens(row.text('unit') ?? undefined) ?? label.unitTokens ?? USUAL_UNIT_TOKENS;
  return { row, label, cost, quantity: row.number('quantity'), unitTokens };
}

/** Some answers count tokens instead of units, which makes rates lower than those of any model. */
function isImpossible({ label, cost, quantity, unitTokens }: ReadRow): boolean {
  if (!label.recognised || !label.observable || cost <= 0n || quantity === null || quantity <= 0n)
    return false;
  // cost / (quantity × unit) < rate / 1e6
  return cost * 1_000_000n * QUANTITY_ONE < IMPOSSIBLE_RATE * quantity * unitTokens;
}

function toRow(
  { row, label, cost, quantity, unitTokens }: ReadRow,
  countsTokens: boolean,
  fxRateOn: DocumentContext['fxRateOn'],
  at: number,
): BilledRow {
  const day = dayOfUsageDate(row.text('day') ?? '');
  if (day === undefined) throw fault(at, 'UsageDate must be a day such as 20260901');
  const currency = (row.text('currency') ?? 'USD').toUpperCase();
  if (!/^[A-Z]{3}$/.test(currency)) throw fault(at, 'Currency must be three letters such as EUR');
  const meter = row.text('meter') ?? '(no meter)';
  const isTokens = label.recognised && label.observable;
  const count = quantity === null || quantity < 0n ? null : quantity;
  const category: ChargeCategory = azureCategory(row.text('chargeType') ?? '', meter, label.recognised, cost);
  return {
    feed: 'cost',
    report: '',
    account: accountOf(row),
    day,
    ...timesOfDay(day),
    chargeCategory: category,
    lineItem: keepText(meter),
    observable: label.observable,
    model: label.model,
    tokenClass: label.tokenClass,
    serviceTier: label.serviceTier,
    isBatch: label.isBatch,
    longContext: label.longContext,
    region: label.region,
    project:
      resourceOf(row.text('resource')) ?? keepTextOrNull(row.text('subscription')?.toLowerCase() ?? null),
    apiKey: null,
    quantity: count === null ? null : isTokens && !countsTokens ? count * unitTokens : count,
    quantityUnit: count === null ? null : isTokens ? 'tokens' : null,
    amountPico: toPicoOrNull(cost, currency, fxRateOn(day)),
    listPico: null,
    contractedPico: null,
    netPico: null,
    currency,
    originalAmount: cost,
    isFinal: null,
  };
}

const SUBSCRIPTION = /^\/subscriptions\/([0-9a-f-]{36})\//i;

/** The subscription of the resource; null: the answer is not grouped by resource. */
function accountOf(row: QueryRow): string | null {
  return SUBSCRIPTION.exec(row.text('resource') ?? '')?.[1]?.toLowerCase() ?? null;
}

function fault(at: number, reason: string): DomainError {
  return new DomainError('invalid_billing_file', `row ${at + 1} of the answer: ${reason}`);
}
