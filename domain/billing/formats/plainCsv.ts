import { MICROS_PER_DAY, parseInstant } from '../../period.js';
import { BILLED_CLASS_NAMES, type BilledRow, categoryOfLabel, findBilledClass } from '../billedRow.js';
import { type FxRate, keepText, toPicoOrNull } from '../pageRow.js';
import {
  CellFault,
  currencyOf,
  decimalOf,
  requiredDecimal,
  type TableFormat,
  type TableRecord,
  textOf,
} from './tableFormat.js';

/** Required columns, and below optional ones. */
const REQUIRED = ['date', 'model', 'token_class', 'quantity', 'amount_usd'] as const;
const OPTIONAL = ['project', 'api_key', 'line_item', 'service_tier', 'currency'] as const;

/** The format for bills without a supported one: a line for each day, model and class. */
export const plainCsv: TableFormat = {
  format: 'plain_csv',
  name: 'a plain CSV',
  required: REQUIRED,
  reads: new Set<string>([...REQUIRED, ...OPTIONAL]),
  isHeader: (columns) => REQUIRED.every((column) => columns.has(column)),
  rowsOf: (record, { fxRate }) => [plainCsvRow(record, fxRate)],
};

const DAY = /^\d{4}-\d{2}-\d{2}$/;

function readDay(text: string): bigint {
  const instant = DAY.test(text) ? parseInstant(text) : undefined;
  if (!instant)
    throw new CellFault('date', `date must be a day such as 2026-01-31, not "${text.slice(0, 40)}"`);
  return instant.micros;
}

/** A record → a cost row; an empty `quantity` is unknown. Error CellFault with the column. */
function plainCsvRow(record: TableRecord, fxRate: FxRate): BilledRow {
  const day = record.get('date') ?? '';
  const startMicros = readDay(day);
  const className = (record.get('token_class') ?? '').toLowerCase();
  const tokenClass = findBilledClass(className);
  if (tokenClass === undefined) {
    throw new CellFault(
      'token_class',
      `token_class must be one of ${BILLED_CLASS_NAMES.join(', ')}, not "${className.slice(0, 40)}"`,
    );
  }
  const original = requiredDecimal(record, ['amount_usd']);
  const quantity = decimalOf(record, ['quantity']);
  if (quantity !== null && quantity < 0n && original >= 0n)
    throw new CellFault('quantity', 'quantity must not be negative');
  const currency = currencyOf(record, ['currency']);
  const model = textOf(record, ['model']);
  const label = record.get('line_item') ?? (model === null ? tokenClass : `${model}, ${tokenClass}`);
  const tier = (record.get('service_tier') ?? '').toLowerCase();
  const recognised = model !== null && tokenClass !== 'other';
  return {
    feed: 'cost',
    report: '',
    account: null,
    day,
    periodStartMicros: startMicros,
    periodEndMicros: startMicros + MICROS_PER_DAY,
    chargeCategory: categoryOfLabel(label, recognised, original),
    lineItem: keepText(label),
    observable: true,
    model,
    tokenClass,
    serviceTier: tier === '' || tier === 'default' || tier === 'batch' ? 'standard' : keepText(tier),
    isBatch: tier === '' ? null : tier === 'batch',
    longContext: null,
    region: null,
    project: textOf(record, ['project']),
    apiKey: textOf(record, ['api_key']),
    quantity: quantity === null || quantity < 0n ? null : quantity,
    quantityUnit:
      quantity === null
        ? null
        : tokenClass === 'requests'
          ? 'requests'
          : tokenClass === 'other'
            ? null
            : 'tokens',
    amountPico: toPicoOrNull(original, currency, fxRate),
    listPico: null,
    contractedPico: null,
    netPico: null,
    currency,
    originalAmount: original,
    isFinal: null,
  };
}
