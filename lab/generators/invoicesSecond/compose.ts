import type { Bill, Item } from './bill.js';
import { iso, later } from './calendar.js';
import type { Chance } from './chance.js';
import { figure, type Money, type Notation, share, times, toDecimals, total } from './figures.js';
import { BUYERS, type Buyer, type Form, type Seller } from './sellers.js';

export const PLOTS = [
  'usage',
  'ahead',
  'seats',
  'change',
  'long',
  'precise',
  'receipt',
  'credit_note',
  'rebate',
  'two_groups',
] as const;
export type Plot = (typeof PLOTS)[number];

const MONEY: Record<string, Money> = {
  USD: { code: 'USD', decimals: 2, sign: '$' },
  EUR: { code: 'EUR', decimals: 2, sign: '€' },
  GBP: { code: 'GBP', decimals: 2, sign: '£' },
  CHF: { code: 'CHF', decimals: 2, sign: null },
  CAD: { code: 'CAD', decimals: 2, sign: 'CA$' },
  AUD: { code: 'AUD', decimals: 2, sign: 'A$' },
  SEK: { code: 'SEK', decimals: 2, sign: 'kr' },
  JPY: { code: 'JPY', decimals: 0, sign: '¥' },
};

const NOTATIONS: Record<Form, Notation[]> = {
  card: [
    { thousands: ',', comma: false, place: 'before', negative: 'minus_first' },
    { thousands: ',', comma: false, place: 'before', negative: 'minus_first' },
    { thousands: '.', comma: true, place: 'after', negative: 'minus_first' },
  ],
  amazon: [
    { thousands: ',', comma: false, place: 'before_spaced', negative: 'minus_after_sign' },
    { thousands: ',', comma: false, place: 'before', negative: 'brackets' },
  ],
  microsoft: [
    { thousands: ',', comma: false, place: 'nowhere', negative: 'minus_first' },
    { thousands: '.', comma: true, place: 'nowhere', negative: 'minus_first' },
    { thousands: '.', comma: true, place: 'after', negative: 'minus_first' },
  ],
  google: [
    { thousands: ',', comma: false, place: 'before', negative: 'minus_first' },
    { thousands: '', comma: false, place: 'nowhere', negative: 'minus_first' },
    { thousands: ',', comma: false, place: 'before', negative: 'brackets' },
  ],
  french: [
    { thousands: '\u00a0', comma: true, place: 'after', negative: 'minus_first' },
    { thousands: ' ', comma: true, place: 'after', negative: 'minus_first' },
  ],
};

export interface Wish {
  seller: Seller;
  form: Form;
  plot: Plot;
}

interface Setting {
  seller: Seller;
  money: Money;
  from: string;
  to: string;
  chance: Chance;
}

/** Converts a dollar rate to this currency, with a round exchange rate. */
function scaled(rate: bigint, money: Money): bigint {
  return money.decimals === 0 ? rate * 150n : rate;
}

/** Billed services other than models. */
const OTHER_SERVICES =
  /SageMaker|CloudWatch|Data Transfer|Elastic Compute|Simple Storage|Lambda|AI Search|BigQuery|Cloud Storage/;
const REGIONS = [
  'EU (Ireland)',
  'EU (Frankfurt)',
  'US East (N. Virginia)',
  'US West (Oregon)',
  'EU (Paris)',
  'Asia Pacific (Tokyo)',
];

function usage(count: number, { seller, money, from, to, chance }: Setting): Item[] {
  const items: Item[] = [];
  const rounds = Math.ceil(count / seller.meters.length);
  const days = Number(to.slice(8));
  for (let round = 0; round < rounds; round += 1) {
    const first = later(from, Math.floor((round * days) / rounds));
    const last = later(from, Math.floor(((round + 1) * days) / rounds) - 1);
    for (const [text, dollars] of seller.meters) {
      if (items.length >= count) break;
      const rate = scaled(figure(dollars), money);
      const worth = chance.spread(0.3, 6_000);
      const isWhole = rate < figure('0.01');
      const raw = worth / (Number(figure(dollars)) / 1e10);
      const units = chance.yes(0.05)
        ? figure('0')
        : figure(isWhole ? String(Math.round(raw)) : raw.toFixed(4));
      items.push({
        text: rounds > 1 && seller.form === 'amazon' ? `${text} - ${REGIONS[round % REGIONS.length]}` : text,
        count: units,
        rate,
        net: toDecimals(times(units, rate), money.decimals),
        taxPercent: null,
        from: first,
        to: last,
        kind: OTHER_SERVICES.test(text) ? 'other' : 'usage',
        group: 'Usage charges',
      });
    }
  }
  return items;
}

function flat(text: string, net: bigint, kind: Item['kind'], group: string): Item {
  return { text, count: figure('1'), rate: net, net, taxPercent: null, from: null, to: null, kind, group };
}

function precise(count: number, { seller, money, from, to, chance }: Setting): Item[] {
  return Array.from({ length: count }, (_, at) => {
    const name =
      seller.meters[at % seller.meters.length]?.[0].split(/[,:]| input| output| tokens/)[0] ?? seller.id;
    const net = figure((chance.spread(0.01, 400) * (money.decimals === 0 ? 150 : 1)).toFixed(7));
    return { ...flat(`API usage (${name})`, net, 'usage', 'Usage charges'), from, to };
  });
}

function seats({ seller, money, from, chance }: Setting, isChange: boolean): Item[] {
  const [name, monthly] = chance.one(seller.seats);
  const rate = scaled(figure(monthly), money);
  const start = later(from, chance.int(0, 25));
  const people = chance.int(2, 240);
  const count = figure(String(people));
  const next: Item = {
    text: name,
    count,
    rate,
    net: times(count, rate),
    taxPercent: null,
    from: start,
    to: later(start, 30),
    kind: 'subscription',
    group: 'Subscriptions',
  };
  if (!isChange) return [next];
  const left = chance.int(2, 29);
  const part = (units: number, sign: bigint) =>
    toDecimals((sign * rate * BigInt(units) * BigInt(left)) / 30n, money.decimals);
  const one = (words: string, units: number, sign: bigint): Item => ({
    ...next,
    text: `${words} ${units} x ${name}`,
    count: figure(String(units)),
    rate: null,
    net: part(units, sign),
    from: later(start, -left),
    to: start,
    kind: 'proration',
  });
  const added = chance.int(1, 40);
  return [one('Unused time on', people, -1n), one('Remaining time on', people + added, 1n), next];
}

function itemsOf({ plot, form }: Wish, setting: Setting): Item[] {
  const { seller, chance, money } = setting;
  const few = () => usage(chance.int(1, 9), setting);
  const adjustment = (items: Item[]) => {
    const name = chance.one([
      'Credit for service interruption',
      'Promotional credit',
      'Committed use discount',
    ]);
    const part = share(figure(String(chance.int(2, 35))), total(items.map(({ net }) => net)));
    const kind = name.endsWith('discount') ? 'discount' : 'credit';
    return flat(name, -toDecimals(part, money.decimals), kind, 'Adjustments');
  };
  switch (plot) {
    case 'ahead':
    case 'receipt':
      if (!seller.ahead) return few();
      return [
        flat(
          seller.ahead,
          scaled(figure(chance.one(['5', '20', '100', '1000', '2500', '50000'])), money),
          'prepaid_purchase',
          'Credits',
        ),
      ];
    case 'seats':
      return seller.seats.length > 0 ? seats(setting, false) : few();
    case 'change':
      return seller.seats.length > 0 ? seats(setting, true) : few();
    case 'long':
      return usage(chance.int(34, 96), setting);
    case 'precise':
      return form === 'card' ? precise(chance.int(1, 9), setting) : few();
    case 'rebate':
    case 'two_groups': {
      const items = few();
      const others = seller.seats.length > 0 && plot === 'two_groups' ? seats(setting, false) : [];
      return [...items, ...others, adjustment(items)];
    }
    default:
      return few();
  }
}

function numberOf(form: Form, chance: Chance): string {
  switch (form) {
    case 'amazon':
      return `EUINGB${chance.int(24, 26)}-${chance.digits(7)}`;
    case 'microsoft':
      return `E0${chance.digits(8)}`;
    case 'google':
      return chance.digits(10);
    case 'french':
      return `F-2026-${chance.digits(5)}`;
    case 'card':
      return `${chance.digits(4)}${chance.one(['AB', 'F3', 'C7', 'DE'])}${chance.digits(2)}-${String(chance.int(1, 99)).padStart(4, '0')}`;
  }
}

function accountOf(form: Form, chance: Chance): string | null {
  if (form === 'amazon') return chance.digits(12);
  if (form === 'microsoft') return `${chance.digits(8)}`;
  if (form === 'google') return `01${chance.digits(4)}-${chance.digits(6)}-${chance.digits(6)}`;
  return null;
}

/** A bill whose sums are right. */
export function composeBill(wish: Wish, chance: Chance): Bill {
  const { seller, form, plot } = wish;
  const buyer: Buyer = chance.one(BUYERS);
  const money = MONEY[chance.yes(0.4) ? (form === 'french' ? 'EUR' : 'USD') : buyer.code] as Money;
  const isEuropean = money.code === 'EUR' || money.code === 'SEK';
  const notations = NOTATIONS[form].filter(({ comma }) => isEuropean || !comma || form === 'french');
  const year = chance.int(2025, 2026);
  const month = chance.int(1, 10);
  const from = iso(year, month, 1);
  const to = iso(year, month + 1, 0);
  const issued = later(to, chance.int(1, 6));
  const isCard = form === 'card';
  const kind =
    isCard && plot === 'receipt'
      ? 'receipt'
      : plot === 'credit_note' && form !== 'amazon'
        ? 'credit_note'
        : 'invoice';
  const setting = { seller, money, from, to, chance };
  const bill: Bill = {
    seller,
    buyer,
    kind,
    marks: new Set([`form_${form}`, `plot_${plot}`, `land_${buyer.land}`]),
    money,
    notation: chance.one(notations),
    dates:
      form === 'french'
        ? 'day_first'
        : form === 'card'
          ? 'short'
          : chance.one(['short', 'day_first', 'iso', 'long']),
    number: numberOf(form, chance),
    replaces: null,
    account: accountOf(form, chance),
    issued,
    due: kind === 'invoice' ? later(issued, chance.one([0, 14, 30, 45])) : null,
    from,
    to,
    items: itemsOf(wish, setting),
    subtotal: 0n,
    rebates: [],
    taxes: [],
    total: 0n,
    applied: [],
    paid: null,
    balance: 0n,
    contradictions: [],
  };
  if (kind === 'credit_note') {
    bill.replaces = bill.number;
    bill.number = isCard ? `${bill.number}-CN-01` : numberOf(form, chance);
    if (!isCard) for (const item of bill.items) negate(item);
  }
  for (const item of bill.items) keepPrinted(item, form);
  if (plot === 'precise' && isCard) bill.marks.add('unrounded');
  settle(bill, plot, chance);
  return bill;
}

/** Removes the fields that this form does not print. */
function keepPrinted(item: Item, form: Form): void {
  if (form === 'amazon' || form === 'google') item.rate = null;
  if (form === 'amazon' || (form === 'google' && item.kind !== 'usage' && item.kind !== 'other'))
    item.count = null;
  if (form !== 'card' && form !== 'french') {
    item.from = null;
    item.to = null;
  }
  if (form !== 'microsoft') item.group = 'Charges';
}

function negate(item: Item): void {
  item.net = -item.net;
  if (item.count !== null) item.count = -item.count;
}

/** Computes every sum from the items. */
export function settle(bill: Bill, plot: Plot, chance: Chance): void {
  const { money, buyer, marks } = bill;
  const round = (value: bigint) => toDecimals(value, money.decimals);
  bill.subtotal = round(total(bill.items.map(({ net }) => net)));
  if (plot === 'rebate' && bill.kind === 'invoice' && bill.subtotal > figure('5')) {
    const percent = chance.one(['5', '10', '12.5', '20']);
    bill.rebates.push({
      name: chance.one([`Partner discount (${percent}% off)`, `Discount - commitment (${percent}%)`]),
      value: -round(share(figure(percent), bill.subtotal)),
    });
  }
  const base = bill.subtotal + total(bill.rebates.map(({ value }) => value));
  if (buyer.tax) {
    const reverse = buyer.tax.reverse && chance.yes(0.65);
    const percent = reverse ? 0n : figure(buyer.tax.percent);
    bill.taxes.push({ name: buyer.tax.name, percent, base, value: round(share(percent, base)), reverse });
    if (reverse) marks.add('reverse_charge');
    if (buyer.name.startsWith('Prairie')) {
      const city = figure('2');
      bill.taxes.push({
        name: 'Austin City Tax',
        percent: city,
        base,
        value: round(share(city, base)),
        reverse: false,
      });
      marks.add('two_taxes');
    }
  }
  bill.total = base + total(bill.taxes.map(({ value }) => value));
  const isCard = marks.has('form_card');
  if (
    isCard &&
    bill.kind === 'invoice' &&
    bill.total > figure('15') &&
    chance.yes(plot === 'rebate' ? 0.9 : 0.12)
  )
    bill.applied.push({
      name: chance.one(['Applied balance', 'Customer credit applied']),
      value: -round(share(figure(String(chance.int(3, 100))), bill.total)),
    });
  bill.balance = bill.total + total(bill.applied.map(({ value }) => value));
  if (bill.kind === 'receipt') bill.paid = bill.total;
  else if (isCard && bill.kind === 'invoice' && bill.balance > 0n && chance.yes(0.15)) {
    bill.paid = bill.balance;
    bill.balance = 0n;
    marks.add('paid_invoice');
  }
}
