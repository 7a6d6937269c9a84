import { CUSTOMERS, type Supplier } from './catalog.js';
import { addDays, monthEnd, monthStart } from './dates.js';
import { decimal, percentOf, product, rounded, sum } from './decimal.js';
import type { DraftInvoice, DraftLine } from './draft.js';
import { creditLine, prepaidLine, seatLines, unroundedLines, usageLines, wrapped } from './lines.js';
import { CURRENCIES, type Currency, type NumberStyle, roundedMoney } from './numberStyle.js';
import type { Random } from './random.js';

/** Subjects of invoices. Each supplier has one invoice of every subject that it supports. */
export const SUBJECTS = [
  'usage',
  'prepaid',
  'seats',
  'long_usage',
  'unrounded',
  'receipt',
  'credit_note',
  'deductions',
  'wrapped',
  'mixed',
] as const;
export type Subject = (typeof SUBJECTS)[number];

const STYLES: Record<string, NumberStyle[]> = {
  stripe: [
    { point: '.', group: ',', currency: 'symbol_before', minus: '-' },
    { point: '.', group: ',', currency: 'symbol_before', minus: '\u2212' },
  ],
  stripeEuropean: [
    { point: ',', group: '.', currency: 'symbol_after', minus: '-' },
    { point: ',', group: '\u00a0', currency: 'symbol_after', minus: '-' },
  ],
  aws: [
    { point: '.', group: ',', currency: 'symbol_before', minus: '-' },
    { point: '.', group: ',', currency: 'code_before', minus: '-' },
  ],
  azure: [
    { point: '.', group: ',', currency: 'code_before', minus: 'parentheses' },
    { point: '.', group: ',', currency: 'none', minus: 'parentheses' },
    { point: ',', group: '.', currency: 'code_after', minus: '-' },
    { point: '.', group: "'", currency: 'code_before', minus: 'trailing' },
  ],
  google: [
    { point: '.', group: ',', currency: 'symbol_before', minus: '-' },
    { point: '.', group: ',', currency: 'none', minus: '-' },
  ],
};

function linesFor(
  subject: Subject,
  supplier: Supplier,
  currency: Currency,
  month: { year: number; month: number },
  random: Random,
): DraftLine[] {
  const wishes = { supplier, currency, month, random, count: random.whole(2, 14) };
  switch (subject) {
    case 'prepaid':
    case 'receipt':
      return supplier.prepaid ? [prepaidLine(wishes)] : usageLines({ ...wishes, count: 3 });
    case 'seats':
      return supplier.seat ? seatLines(wishes) : usageLines(wishes);
    case 'long_usage':
      return usageLines({ ...wishes, count: random.whole(35, 105) });
    case 'unrounded':
      return supplier.layout === 'stripe'
        ? unroundedLines({ ...wishes, count: random.whole(1, 6) })
        : usageLines(wishes);
    case 'wrapped':
      return usageLines(wishes).map((line) => (random.chance(0.5) ? wrapped(line, random) : line));
    case 'mixed': {
      const usage = usageLines(wishes);
      const seats = supplier.seat ? seatLines(wishes) : [];
      return [...seats, ...usage, creditLine(usage, wishes)];
    }
    case 'deductions': {
      const usage = usageLines(wishes);
      return random.chance(0.5) ? [...usage, creditLine(usage, wishes)] : usage;
    }
    default:
      return usageLines(wishes);
  }
}

function numberFor(supplier: Supplier, random: Random): string {
  if (supplier.layout === 'aws') return String(random.whole(1_400_000_000, 2_300_000_000));
  if (supplier.layout === 'azure')
    return `G${String(random.whole(10_000_000, 199_999_999)).padStart(9, '0')}`;
  if (supplier.layout === 'google') return String(random.whole(4_700_000_000, 5_900_000_000));
  return `${random.letters('0123456789ABCDEF', 8)}-${String(random.whole(1, 180)).padStart(4, '0')}`;
}

function accountFor(supplier: Supplier, random: Random): string | null {
  const digits = (count: number) => random.letters('123456789', count);
  if (supplier.layout === 'aws') return digits(12);
  if (supplier.layout === 'azure')
    return `${random.letters('ABCDEFGHJKLMNPQRSTUVWXYZ234567', 4)}-${random.letters('ABCDEFGHJKLMNPQRSTUVWXYZ234567', 4)}-BG7-PGB`;
  if (supplier.layout === 'google')
    return ['01', '', ''].map((head) => head + random.letters('0123456789ABCDEF', 6 - head.length)).join('-');
  return null;
}

/** An invoice with correct sums. */
export function planInvoice(supplier: Supplier, subject: Subject, random: Random): DraftInvoice {
  const customer = random.pick(CUSTOMERS);
  const isStripe = supplier.layout === 'stripe';
  // Some suppliers bill everybody in dollars.
  const currency = CURRENCIES[random.chance(0.45) ? 'USD' : customer.currency] as Currency;
  const month = { year: random.whole(2025, 2026), month: random.whole(1, 9) };
  const style = random.pick(
    STYLES[
      isStripe && currency.code === 'EUR' && random.chance(0.6) ? 'stripeEuropean' : supplier.layout
    ] as NumberStyle[],
  );
  const kind = !isStripe
    ? 'invoice'
    : subject === 'receipt'
      ? 'receipt'
      : subject === 'credit_note'
        ? 'credit_note'
        : 'invoice';
  const features = new Set<string>([`subject_${isStripe || subject === 'long_usage' ? subject : 'usage'}`]);
  const issueDate = random.chance(0.8)
    ? addDays(monthEnd(month.year, month.month), random.whole(1, 5))
    : addDays(monthStart(month.year, month.month), random.whole(0, 27));
  const draft: DraftInvoice = {
    supplier: supplier.id,
    kind,
    features,
    currency,
    style,
    issuer: issuerFor(supplier, customer.country),
    customer,
    number: numberFor(supplier, random),
    account: accountFor(supplier, random),
    issueDate,
    dueDate: addDays(issueDate, random.pick([0, 0, 15, 30])),
    period: { start: monthStart(month.year, month.month), end: monthEnd(month.year, month.month) },
    lines: linesFor(subject, supplier, currency, month, random),
    subtotal: 0n,
    discounts: [],
    taxes: [],
    total: 0n,
    credits: [],
    amountPaid: null,
    amountDue: 0n,
    replaces: null,
    contradictions: [],
  };
  addUp(draft, subject, customer, random);
  if (kind === 'credit_note') {
    draft.replaces = draft.number;
    draft.number = `${draft.number}-CN-01`;
    draft.dueDate = null;
  }
  if (subject === 'unrounded' || subject === 'wrapped') features.add(subject);
  features.add(`country_${customer.country}`);
  return draft;
}

function issuerFor(supplier: Supplier, country: string): DraftInvoice['issuer'] {
  const isEuropean = ['Germany', 'France', 'Sweden', 'Ireland', 'Switzerland', 'United Kingdom'].includes(
    country,
  );
  if (supplier.id === 'openai' && isEuropean)
    return {
      name: 'OpenAI Ireland Limited',
      address: [
        '1st Floor, The Liffey Trust Centre',
        '117-126 Sheriff Street Upper',
        'Dublin 1, D01 YC43',
        'Ireland',
        'EU OSS VAT EU372041333',
      ],
    };
  if (supplier.id === 'azure_openai' && isEuropean)
    return {
      name: 'Microsoft Ireland Operations Ltd',
      address: [
        'One Microsoft Place, South County Business Park',
        'Leopardstown, Dublin 18, D18 P521',
        'Ireland',
        'VAT IE8256796U',
      ],
    };
  if (supplier.id === 'aws_bedrock' && isEuropean)
    return {
      name: 'Amazon Web Services EMEA SARL',
      address: ['38 avenue John F. Kennedy', 'L-1855 Luxembourg'],
    };
  if (supplier.id === 'google' && isEuropean)
    return {
      name: 'Google Cloud EMEA Limited',
      address: ['70 Sir John Rogerson’s Quay', 'Dublin 2', 'Ireland', 'VAT IE3668997OH'],
    };
  return supplier.issuer;
}

/** Discounts before tax, taxes, and balances after it, so that the document foots. */
function addUp(
  draft: DraftInvoice,
  subject: Subject,
  customer: (typeof CUSTOMERS)[number],
  random: Random,
): void {
  const { currency } = draft;
  draft.subtotal = roundedMoney(sum(draft.lines.map((line) => line.amount)), currency);
  if (subject === 'deductions' && draft.subtotal > decimal(10)) {
    const percent = random.whole(2, 25);
    draft.discounts.push({
      name: random.pick([`Startup program (${percent}% off)`, `Volume discount (${percent}% off)`]),
      amount: -roundedMoney(percentOf(decimal(percent), draft.subtotal), currency),
    });
  }
  const base = draft.subtotal + sum(draft.discounts.map(({ amount }) => amount));
  const isTaxed = customer.taxes.length > 0 && (customer.country !== 'United States' || random.chance(0.7));
  if (isTaxed && customer.isReverseCharge && random.chance(0.7)) {
    const [name] = customer.taxes[0] as [string, string];
    draft.taxes.push({ name, rate: 0n, base, amount: 0n, isReverseCharge: true });
    for (const line of draft.lines) line.taxRate = 0n;
  } else if (isTaxed) {
    for (const [name, percent] of customer.taxes) {
      const rate = decimal(percent);
      const amount = roundedMoney(percentOf(rate, base), currency);
      draft.taxes.push({ name, rate, base, amount, isReverseCharge: false });
    }
    if (customer.taxes.length === 1)
      for (const line of draft.lines) line.taxRate = decimal(customer.taxes[0]?.[1] as string);
  }
  draft.total = base + sum(draft.taxes.map(({ amount }) => amount));
  if (draft.kind === 'invoice' && subject === 'deductions' && draft.total > decimal(20)) {
    const applied = rounded(product(draft.total, decimal(random.whole(1, 60))) / 100n, currency.digits);
    draft.credits.push({ name: 'Applied balance', amount: -applied });
  }
  draft.amountDue = draft.total + sum(draft.credits.map(({ amount }) => amount));
  if (draft.kind === 'receipt') draft.amountPaid = draft.total;
}

/** Records the special features of the figures. */
export function noteFeatures(draft: DraftInvoice): void {
  const { features, lines } = draft;
  features.add(draft.kind).add(`currency_${draft.currency.code}`);
  if (draft.style.point === ',') features.add('decimal_comma');
  if (draft.taxes.some((tax) => tax.isReverseCharge)) features.add('reverse_charge');
  if (draft.taxes.some((tax) => tax.amount > 0n)) features.add('vat');
  if (draft.taxes.length > 1) features.add('two_taxes');
  if (draft.discounts.length > 0) features.add('discount');
  if (draft.credits.length > 0) features.add('applied_balance');
  if (lines.some((line) => line.amount < 0n)) features.add('negative_line');
  if (lines.some((line) => line.amount === 0n)) features.add('zero_line');
  if (lines.some((line) => line.kind === 'proration')) features.add('proration');
  if (lines.some((line) => line.kind === 'prepaid_purchase')) features.add('prepaid_purchase');
  if (lines.some((line) => line.period)) features.add('line_period');
}
