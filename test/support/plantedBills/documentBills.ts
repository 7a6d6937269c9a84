import type { ChargeCategory } from '../../../domain/billing/billedRow.js';
import { exactOf, textOfExact, timesExact } from '../exactTable.js';
import { AWKWARD, day, numbersFrom, type PlantedBill } from './planted.js';

type Charge = PlantedBill['charges'][number];

const charge = (amount: string, category: ChargeCategory, currency: string): Charge => ({
  amount,
  category,
  currency,
  isKept: true,
});

/** Cents as the answer has them → dollars. */
const dollars = (cents: string) => textOfExact(timesExact(exactOf(cents), { value: 1n, scale: 2 }));

interface XaiLine {
  description: string;
  unitType: string;
  amount: string;
  category: ChargeCategory;
}

/** The lines of an invoice of xAI: whole and broken cents, as texts. */
function xaiLines(seed: number): XaiLine[] {
  const next = numbersFrom(seed);
  const cents = () => `${next(100_000)}.${next(10)}${1 + next(9)}`;
  const line = (category: ChargeCategory, amount: string, description = 'grok-4-0709'): XaiLine => ({
    description,
    unitType: description === 'grok-4-0709' ? 'Completion text tokens' : '',
    amount,
    category,
  });
  return [
    ...Array.from({ length: 20 }, () => line('usage', cents())),
    line('usage', '0'),
    line('usage', '1e-7'),
    line('usage', cents(), AWKWARD),
    line('adjustment', `-${cents()}`),
    line('refund', '-12.5', 'Refund of August'),
    line('purchase', '3000', 'SuperGrok subscription'),
  ];
}

const xaiInvoices = [2, 3].map((seed, at) => ({
  lines: xaiLines(seed),
  vat: `${seed}1.25`,
  credit: `-${seed}00`,
  month: 8 + at,
}));

const XAI_CATEGORY = `case when json_extract_string(line, '$.description') like 'Refund%' then 'refund' when json_extract_string(line, '$.description') like '%subscription' then 'purchase'
  when json_extract_string(line, '$.amount') like '-%' then 'adjustment' else 'usage' end`;
const inDollars = (cents: string) =>
  `cast(cast(${cents} as decimal(20, 10)) * cast('0.01' as decimal(3, 2)) as decimal(38, 12))::varchar`;

const xaiBill: PlantedBill = {
  name: 'xAI invoices JSON',
  filename: 'xai-invoices.json',
  provider: 'xai',
  format: 'xai_invoices',
  bytes: Buffer.from(
    JSON.stringify(
      {
        invoices: xaiInvoices.map(({ lines, vat, credit, month }) => ({
          invoiceNumber: `INV-${month}`,
          coreInvoice: {
            billingCycle: { year: 2026, month },
            lines: lines.map(({ category: _category, ...line }) => ({ ...line, numUnits: '1000' })),
            vatCost: vat,
            defaultCreditsIssued: credit,
            prepaidCredits: { val: '-99999' },
          },
        })),
      },
      null,
      2,
    ),
  ),
  charges: xaiInvoices.flatMap(({ lines, vat, credit }) => [
    ...lines.map(({ amount, category }) => charge(dollars(amount), category, 'USD')),
    charge(dollars(vat), 'tax', 'USD'),
    charge(dollars(credit), 'credit', 'USD'),
  ]),
  // A row for each line and, with an empty line, one for each invoice itself.
  table: `(with invoices as (select unnest(cast(json_extract(content, '$.invoices[*].coreInvoice') as json[])) as invoice from read_text('$file'))
    select null as invoice, unnest(cast(json_extract(invoice, '$.lines[*]') as json[])) as line from invoices
    union all select invoice, null as line from invoices)`,
  sums: [
    {
      currency: `'USD'`,
      category: XAI_CATEGORY,
      amount: inDollars(`json_extract_string(line, '$.amount')`),
    },
    { currency: `'USD'`, category: `'tax'`, amount: inDollars(`json_extract_string(invoice, '$.vatCost')`) },
    {
      currency: `'USD'`,
      category: `'credit'`,
      amount: inDollars(`json_extract_string(invoice, '$.defaultCreditsIssued')`),
    },
  ],
};

/** Counts of a month of Mistral's usage, and the paid part of it; the plan covers the rest. */
const METRICS = ['mistral-large-2411', 'mistral-small-2506', 'mistral-medium-2508'];
const GROUPS = {
  input: ['0.0000017', '8.5E-8', '0.000000000001'],
  output: ['0.0000051', '2.5E-7', '0.0000002'],
};

const mistralEntries = (() => {
  const next = numbersFrom(41);
  return METRICS.flatMap((metric, at) =>
    Object.entries(GROUPS).flatMap(([group, prices]) =>
      Array.from({ length: 12 }, (_, index) => {
        const value = next(1_000_000);
        // Every fourth is covered in part, one is covered whole, one counts nothing, one is taken back.
        const paid = index % 4 === 3 ? Math.floor(value / 3) : index === 6 ? 0 : value;
        const shown = index === 9 ? 0 : index === 10 ? -value : value;
        return {
          metric,
          group,
          price: prices[at] as string,
          day: day(index),
          value: shown,
          paid: index === 9 ? 0 : index === 10 ? -value : paid,
        };
      }),
    ),
  );
})();

const mistralBill: PlantedBill = {
  name: 'Mistral usage JSON',
  filename: 'mistral-usage.json',
  provider: 'mistral',
  format: 'mistral_usage',
  bytes: Buffer.from(
    JSON.stringify({
      chat: { models: {} },
      completion: {
        models: Object.fromEntries(
          METRICS.map((metric) => [
            `${metric}::${metric}`,
            Object.fromEntries(
              Object.keys(GROUPS).map((group) => [
                group,
                mistralEntries
                  .filter((one) => one.metric === metric && one.group === group)
                  .map((one) => ({
                    usage_type: 'usage',
                    event_type: 'api_tokens',
                    billing_metric: metric,
                    billing_display_name: `${metric}, "${AWKWARD}"`,
                    billing_group: group,
                    timestamp: one.day,
                    value: one.value,
                    value_paid: one.paid,
                  })),
              ]),
            ),
          ]),
        ),
      },
      start_date: '2026-09-01T00:00:00Z',
      end_date: '2026-09-30T23:59:59.999Z',
      currency: 'EUR',
      prices: METRICS.flatMap((metric, at) =>
        Object.entries(GROUPS).map(([group, prices]) => ({
          event_type: 'api_tokens',
          billing_metric: metric,
          billing_group: group,
          price: prices[at],
        })),
      ),
    }),
  ),
  charges: mistralEntries.flatMap(({ price, value, paid }) => {
    const times = (count: number) =>
      textOfExact(timesExact(exactOf(price), { value: BigInt(count), scale: 0 }));
    return [
      charge(times(value), value < 0 ? 'adjustment' : 'usage', 'EUR'),
      charge(times(paid - value), 'credit', 'EUR'),
    ];
  }),
  table: `(select entry, price from
    (select unnest(cast(json_extract(content, '$.completion.models.*.*[*]') as json[])) as entry from read_text('$file')) entries
    join (select unnest(cast(json_extract(content, '$.prices[*]') as json[])) as price from read_text('$file')) prices
      on json_extract_string(entry, '$.billing_metric') = json_extract_string(price, '$.billing_metric') and json_extract_string(entry, '$.billing_group') = json_extract_string(price, '$.billing_group'))`,
  sums: [
    {
      currency: `'EUR'`,
      category: `case when json_extract_string(entry, '$.value') like '-%' then 'adjustment' else 'usage' end`,
      amount: `cast(cast(json_extract_string(entry, '$.value') as decimal(18, 0)) * cast(json_extract_string(price, '$.price') as decimal(18, 12)) as varchar)`,
    },
    {
      currency: `'EUR'`,
      category: `'credit'`,
      amount: `cast((cast(json_extract_string(entry, '$.value_paid') as decimal(17, 0)) - cast(json_extract_string(entry, '$.value') as decimal(17, 0))) * cast(json_extract_string(price, '$.price') as decimal(18, 12)) as varchar)`,
    },
  ],
};

export const DOCUMENT_BILLS: readonly PlantedBill[] = [xaiBill, mistralBill];
