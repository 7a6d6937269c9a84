import type { ChargeCategory } from '../../../domain/billing/billedRow.js';
import {
  CSV_TABLE,
  csvOf,
  day,
  decimal,
  halves,
  LATE_DAY,
  numbersFrom,
  type PlantedBill,
  type PlantedCharge,
} from './planted.js';

const COLUMNS = [
  ...['date', 'model', 'token_class', 'quantity', 'amount_usd'],
  ...['project', 'api_key', 'line_item', 'service_tier', 'currency'],
];

const charge = (
  amount: string,
  category: ChargeCategory,
  cells: Record<string, string> = {},
): PlantedCharge => ({
  category,
  amount,
  currency: 'USD',
  isKept: true,
  cells: {
    date: day(2),
    model: 'command-a-03-2025',
    token_class: 'output',
    quantity: '12345',
    amount_usd: amount,
    ...cells,
  },
});

/** A line that names no model: the label alone says what it is. */
const other = (amount: string, category: ChargeCategory, line_item: string) =>
  charge(amount, category, { model: '', token_class: 'other', quantity: '', line_item });

function plantedCharges(): PlantedCharge[] {
  const next = numbersFrom(7);
  const amount = () => decimal(next, 1 + next(12));
  return [
    ...Array.from({ length: 40 }, (_, at) => charge(amount(), 'usage', { date: day(at) })),
    ...halves(amount()).map((part) => charge(part, 'usage')),
    charge('0', 'usage'),
    charge('2.5e-9', 'usage'),
    charge(amount(), 'usage', { line_item: 'two\nlines, "quoted"', quantity: '' }),
    charge('-1.000000000001', 'adjustment'),
    other(`-${amount()}`, 'credit', 'Promotional credit'),
    other('-4.25', 'refund', 'Refund of August'),
    other(amount(), 'tax', 'VAT 19 %'),
    other(amount(), 'purchase', 'Prepaid top-up'),
    other('0.000000000001', 'adjustment', 'Correction'),
    charge(amount(), 'usage', { date: LATE_DAY }),
  ];
}

const charges = plantedCharges();
const bytes = (columns: readonly string[]) =>
  csvOf(
    columns,
    charges.map(({ cells }) => cells),
  );

const bill = (name: string, columns: readonly string[]): PlantedBill => ({
  name,
  filename: `${name.replaceAll(' ', '-')}.csv`,
  provider: 'cohere',
  format: 'plain_csv',
  bytes: bytes(columns),
  charges,
  table: CSV_TABLE,
  sums: [
    {
      currency: `'USD'`,
      amount: 'amount_usd',
      category: `case when coalesce(model, '') = '' then case
          when line_item like 'Refund%' then 'refund' when line_item like '%credit' then 'credit' when line_item like 'VAT%' then 'tax'
          when line_item like '%top-up' then 'purchase' else 'adjustment' end
        when amount_usd like '-%' then 'adjustment' else 'usage' end`,
    },
  ],
});

export const PLAIN_BILLS: readonly PlantedBill[] = [bill('plain CSV', COLUMNS)];
