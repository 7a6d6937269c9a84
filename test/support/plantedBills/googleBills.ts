import type { ChargeCategory } from '../../../domain/billing/billedRow.js';
import {
  AWKWARD,
  CSV_TABLE,
  csvOf,
  day,
  decimal,
  halves,
  LATE_DAY,
  numbersFrom,
  type PlantedBill,
} from './planted.js';

/** Fields of Google Cloud's standard usage cost export, as a query writes them into a CSV. */
const COLUMNS = [
  ...[
    'billing_account_id',
    'service.id',
    'service.description',
    'sku.id',
    'sku.description',
    'usage_start_time',
  ],
  ...['usage_end_time', 'project.id', 'project.number', 'project.name', 'project.ancestry_numbers', 'labels'],
  ...[
    'system_labels',
    'location.location',
    'location.country',
    'location.region',
    'location.zone',
    'export_time',
  ],
  ...[
    'cost',
    'currency',
    'currency_conversion_rate',
    'usage.amount',
    'usage.unit',
    'usage.amount_in_pricing_units',
  ],
  ...[
    'usage.pricing_unit',
    'credits',
    'invoice.month',
    'invoice.publisher_type',
    'cost_type',
    'adjustment_info.id',
  ],
  ...['adjustment_info.description', 'adjustment_info.mode', 'adjustment_info.type', 'tags', 'cost_at_list'],
  ...['transaction_type', 'seller_name', 'price.effective_price', 'subscription.instance_id'],
];

interface Line {
  cells: Record<string, string>;
  charges: PlantedBill['charges'];
}

function line(
  amount: string,
  category: ChargeCategory,
  cells: Record<string, string> = {},
  credits: readonly string[] = [],
  isKept = true,
): Line {
  const currency = cells.currency ?? 'USD';
  return {
    cells: {
      billing_account_id: '010101-F0FFF0-61C528',
      'service.description': 'Vertex AI',
      'sku.description': 'Gemini 2.5 Flash GA Text Input - Predictions',
      usage_start_time: `${day(3)} 12:00:00 UTC`,
      usage_end_time: `${day(3)} 13:00:00 UTC`,
      cost: amount,
      currency,
      'usage.amount': '1000',
      'usage.unit': 'count',
      cost_type: 'regular',
      'invoice.month': '202609',
      credits: `[${credits.map((credit, at) => `{"name":"Grant ${at}, \\"A\\"","amount":${credit},"type":"PROMOTION"}`).join(',')}]`,
      ...cells,
    },
    charges: [
      { amount, category, currency, isKept },
      ...credits.map((credit) => ({ amount: credit, category: 'credit' as const, currency, isKept })),
    ],
  };
}

function plantedLines(): Line[] {
  const next = numbersFrom(21);
  const amount = () => decimal(next, 1 + next(12));
  const at = (text: string) => ({
    usage_start_time: `${text} 08:30:00 UTC`,
    usage_end_time: `${text} 09:30:00 UTC`,
  });
  return [
    ...Array.from({ length: 40 }, (_, index) => line(amount(), 'usage', at(day(index + 1)))),
    ...halves(amount()).map((part) => line(part, 'usage')),
    line('0', 'usage'),
    line('1.5e-7', 'usage', { 'project.name': AWKWARD }),
    line(amount(), 'usage', {}, [`-${amount()}`, '-0.000000000001']),
    line('-4.5', 'adjustment'),
    line(amount(), 'tax', { cost_type: 'tax', 'usage.amount': '' }),
    line('-0.000003', 'adjustment', { cost_type: 'rounding_error', 'usage.amount': '' }),
    line(`-${amount()}`, 'adjustment', { cost_type: 'adjustment' }),
    line(amount(), 'usage', { currency: 'EUR', currency_conversion_rate: '0.9' }, ['-0.25']),
    line(
      amount(),
      'usage',
      { 'service.description': 'Compute Engine', 'sku.description': 'N2 core' },
      ['-1.5'],
      false,
    ),
    line(amount(), 'tax', { 'service.description': 'Cloud Storage', cost_type: 'tax' }, [], false),
    line(amount(), 'usage', { ...at(LATE_DAY), 'invoice.month': '202609' }),
  ];
}

const lines = plantedLines();
const charges = lines.flatMap((one) => one.charges);

/** A record as BigQuery writes it: fields inside of fields, numbers as numbers. */
function json(cells: Record<string, string>): string {
  const nested = new Map<string, string[]>();
  const fields: string[] = [];
  for (const [name, cell] of Object.entries(cells)) {
    if (cell === '') continue;
    const isPlain = name === 'credits' || /^(?:cost|currency_conversion_rate|usage\.amount)$/.test(name);
    const value = isPlain ? cell : JSON.stringify(cell);
    const [outer, inner] = name.split('.') as [string, string?];
    if (inner === undefined) fields.push(`${JSON.stringify(outer)}:${value}`);
    else nested.set(outer, [...(nested.get(outer) ?? []), `${JSON.stringify(inner)}:${value}`]);
  }
  const inner = [...nested].map(([name, own]) => `${JSON.stringify(name)}:{${own.join(',')}}`);
  return `{${[...fields, ...inner].join(',')}}`;
}

const CATEGORY = `case cost_type when 'tax' then 'tax' when 'rounding_error' then 'adjustment' when 'adjustment' then 'adjustment'
  else case when cost like '-%' then 'adjustment' else 'usage' end end`;
const COST = { currency: 'currency', amount: 'cost', category: CATEGORY };
/** The credits of a record, one by one: their digits as written, not as doubles. */
const CREDITS = {
  currency: 'currency',
  amount: `unnest(regexp_extract_all(credits, '"amount":(-?[0-9.eE-]+)', 1))`,
  category: `'credit'`,
};

export const GOOGLE_BILLS: readonly PlantedBill[] = [
  {
    name: 'Google billing export CSV',
    filename: 'google.csv',
    provider: 'google',
    format: 'google_billing_export',
    bytes: csvOf(
      COLUMNS,
      lines.map(({ cells }) => cells),
    ),
    charges,
    table: CSV_TABLE,
    sums: [COST, CREDITS],
  },
  {
    name: 'Google billing export JSON lines',
    filename: 'google.jsonl',
    provider: 'google',
    format: 'google_billing_export',
    bytes: Buffer.from(lines.map(({ cells }) => `${json(cells)}\n`).join('')),
    charges,
    // Every field as the text in the file.
    table: `(select cast(json_extract(line, '$.cost') as varchar) as cost, json_extract_string(line, '$.currency') as currency, json_extract_string(line, '$.cost_type') as cost_type,
      cast(json_extract(line, '$.credits') as varchar) as credits
      from (select cast(text as json) as line from (select unnest(string_split(content, chr(10))) as text from read_text('$file')) where text <> ''))`,
    sums: [COST, CREDITS],
  },
];
