import type { Model, Supplier } from './catalog.js';
import { addDays, daysBetween, monthEnd, monthStart } from './dates.js';
import { type Decimal, decimal, product } from './decimal.js';
import type { DraftLine } from './draft.js';
import { type Currency, roundedMoney } from './numberStyle.js';
import type { Random } from './random.js';

type Period = { start: string; end: string };

export interface LineWishes {
  supplier: Supplier;
  currency: Currency;
  month: { year: number; month: number };
  /** Approximate number of lines. */
  count: number;
  random: Random;
}

const CLASSES = ['input', 'cached', 'output'] as const;

function priceOf(model: Model, tokens: (typeof CLASSES)[number]): Decimal | null {
  const text = model[tokens];
  return text === null || text === '0' ? null : decimal(text);
}

const WORDS: Record<string, Record<(typeof CLASSES)[number], string>> = {
  openai: { input: ', input', cached: ', cached input', output: ', output' },
  anthropic: {
    input: ' Usage - Input Tokens',
    cached: ' Usage - Prompt Caching Read',
    output: ' Usage - Output Tokens',
  },
  aws_bedrock: { input: '-input-tokens', cached: '-cache-read-input-token-count', output: '-output-tokens' },
  azure_openai: { input: ' Inp glbl Tokens', cached: ' cached Inp glbl Tokens', output: ' Outp glbl Tokens' },
  google: {
    input: ' Text Input - Predictions',
    cached: ' Text Input Caching - Predictions',
    output: ' Text Output - Predictions',
  },
  mistral: { input: ' input tokens', cached: ' cached tokens', output: ' output tokens' },
  cohere: { input: ' - Input Tokens', cached: ' - Cached Tokens', output: ' - Output Tokens' },
  xai: {
    input: ' prompt text tokens',
    cached: ' cached prompt text tokens',
    output: ' completion text tokens',
  },
};

function usageText(supplier: Supplier, model: string, tokens: (typeof CLASSES)[number]): string {
  const words = WORDS[supplier.id]?.[tokens] ?? ` ${tokens}`;
  if (supplier.id === 'aws_bedrock') return `USE1-${model.replaceAll(' ', '')}${words}`;
  return `${model}${words}`;
}

/** Parts of a month, so that a long invoice has a line for each. */
function slices(year: number, month: number, parts: number): Period[] {
  const start = monthStart(year, month);
  const end = monthEnd(year, month);
  const days = daysBetween(start, end) + 1;
  return Array.from({ length: parts }, (_, part) => ({
    start: addDays(start, Math.floor((days * part) / parts)),
    end: addDays(start, Math.floor((days * (part + 1)) / parts) - 1),
  }));
}

/** Units of a quantity: tokens (the unit price then has many decimals), thousands or millions of tokens. */
const UNITS = [
  { tokens: 1n, suffix: '' },
  { tokens: 1_000n, suffix: ' (per 1K tokens)' },
  { tokens: 1_000_000n, suffix: ' (per 1M tokens)' },
] as const;

export function usageLines(wishes: LineWishes): DraftLine[] {
  const { supplier, currency, month, random } = wishes;
  const unit = random.pick(UNITS);
  const kinds = supplier.models.flatMap((model) =>
    CLASSES.flatMap((tokens) => {
      const price = priceOf(model, tokens);
      return price === null ? [] : [{ model: model.name, tokens, price }];
    }),
  );
  const parts = Math.max(1, Math.min(31, Math.round(wishes.count / kinds.length)));
  const perMillion = 1_000_000n / unit.tokens;
  const lines = slices(month.year, month.month, parts).flatMap((period) =>
    kinds.map(({ model, tokens, price }): DraftLine => {
      const isZero = random.chance(0.04);
      const count = isZero ? 0 : Math.floor(random.magnitude(40_000, 900_000_000));
      const quantity = decimal(
        unit.tokens === 1_000_000n ? (count / 1_000_000).toFixed(3) : Math.ceil(count / Number(unit.tokens)),
      );
      const unitPrice = price / perMillion;
      return {
        description: usageText(supplier, model, tokens) + unit.suffix,
        quantity,
        unitPrice,
        amount: roundedMoney(product(quantity, unitPrice), currency),
        taxRate: null,
        period,
        kind: 'usage',
      };
    }),
  );
  return lines.slice(0, Math.max(1, wishes.count));
}

/** Lines of one unit at a price with seven decimals; only the sum is rounded. */
export function unroundedLines({ supplier, month, count, random }: LineWishes): DraftLine[] {
  const period = { start: monthStart(month.year, month.month), end: monthEnd(month.year, month.month) };
  return Array.from({ length: count }, (_, at): DraftLine => {
    const amount = decimal(random.magnitude(0.02, 900).toFixed(7));
    const model = supplier.models[at % supplier.models.length] as Model;
    return {
      description: `API usage (${model.name})`,
      quantity: decimal(1),
      unitPrice: amount,
      amount,
      taxRate: null,
      period,
      kind: 'usage',
    };
  });
}

export function prepaidLine({ supplier, currency, random }: LineWishes): DraftLine {
  const amount =
    decimal(random.pick([5, 10, 25, 50, 100, 250, 500, 1000, 5000, 20000])) *
    (currency.digits === 0 ? 100n : 1n);
  return {
    description: supplier.prepaid,
    quantity: decimal(1),
    unitPrice: amount,
    amount,
    taxRate: null,
    period: null,
    kind: 'prepaid_purchase',
  };
}

/** Seats of a month, and the charge and credit of a change during the month. */
export function seatLines({ supplier, currency, month, random }: LineWishes): DraftLine[] {
  const day = random.whole(3, 26);
  const start = `${monthStart(month.year, month.month).slice(0, 8)}${String(day).padStart(2, '0')}`;
  const end = addDays(start, 30);
  const scale = currency.digits === 0 ? 100n : 1n;
  const price = decimal(random.pick(['25', '30', '60', '125', '150'])) * scale;
  const seats = decimal(random.whole(3, 120));
  const lines: DraftLine[] = [
    {
      description: supplier.seat,
      quantity: seats,
      unitPrice: price,
      amount: roundedMoney(product(seats, price), currency),
      taxRate: null,
      period: { start, end },
      kind: 'subscription',
    },
  ];
  const changed = addDays(start, -random.whole(2, 12));
  const share = BigInt(daysBetween(changed, start));
  const before = random.whole(2, 90);
  const after = before + random.whole(1, 30);
  for (const [count, word, sign] of [
    [before, 'Unused time on', -1n],
    [after, 'Remaining time on', 1n],
  ] as const) {
    const amount = roundedMoney((sign * product(decimal(count), price) * share) / 30n, currency);
    const isOne = random.chance(0.4);
    lines.push({
      description: `${word} ${count} × ${supplier.seat} after ${shortText(changed)}`,
      quantity: isOne ? decimal(1) : decimal(count),
      unitPrice: isOne ? amount : null,
      amount,
      taxRate: null,
      period: { start: changed, end: start },
      kind: 'proration',
    });
  }
  return lines;
}

const MONTH_NAMES = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

function shortText(day: string): string {
  const [year, month, date] = day.split('-');
  return `${Number(date)} ${MONTH_NAMES[Number(month) - 1]} ${year}`;
}

export function creditLine(lines: readonly DraftLine[], { currency, random }: LineWishes): DraftLine {
  const before = lines.reduce((total, line) => total + line.amount, 0n);
  const share = BigInt(random.whole(3, 30));
  const amount = -roundedMoney((before * share) / 100n, currency);
  return {
    description: random.pick([
      'Service credit (SLA)',
      'Promotional credit',
      'Goodwill credit for incident INC-4417',
    ]),
    quantity: decimal(1),
    unitPrice: amount,
    amount,
    taxRate: null,
    period: null,
    kind: 'credit',
  };
}

const TAILS = [
  'including requests routed through the regional inference endpoints of the European Union',
  'with data retention disabled by agreement MSA-2291 dated 2 March 2026, billed in arrears',
  'for the workspace "Customer support automation (production)" and all of its service accounts',
];

/** A description of several rows. */
export function wrapped(line: DraftLine, random: Random): DraftLine {
  return { ...line, description: `${line.description} ${random.pick(TAILS)}` };
}
