import type { GeneratedInvoice, InvoiceTruth } from '../invoiceTruth.js';
import type { Bill } from './bill.js';
import { cardShows, drawCard } from './card.js';
import { Chance } from './chance.js';
import { composeBill, PLOTS, type Plot } from './compose.js';
import { plain } from './figures.js';
import {
  AMAZON_SHOWS,
  drawAmazon,
  drawFrench,
  drawGoogle,
  drawMicrosoft,
  FRENCH_SHOWS,
  GOOGLE_SHOWS,
  MICROSOFT_SHOWS,
} from './forms.js';
import { GREY, type Manner, Paper } from './paper.js';
import { type Form, SELLERS, type Seller } from './sellers.js';
import type { Shows } from './shared.js';
import { spoil } from './spoil.js';

const SPOILED = 0.22;

function mannerOf(bill: Bill, chance: Chance): Manner {
  const turned = chance.yes(0.04);
  const landscape = !turned && chance.yes(0.05);
  const manner: Manner = {
    family: chance.one(['helvetica', 'helvetica', 'times', 'courier']),
    landscape,
    turned,
    order: chance.one(['reading', 'reading', 'shuffled', 'by_column']),
    pieces: chance.yes(0.2),
    dashes: chance.yes(0.3) ? chance.one(['nul', 'space', 'soft_hyphen']) : 'kept',
    letter: chance.yes(0.4),
    title: bill.number,
    made: bill.issued,
  };
  // Courier is too wide for the columns of the portrait page.
  if (manner.family === 'courier' && !landscape) manner.family = 'times';
  if (turned) bill.marks.add('turned_page');
  if (landscape) bill.marks.add('landscape');
  if (manner.pieces) bill.marks.add('pieces');
  if (manner.order !== 'reading') bill.marks.add('out_of_order');
  if (manner.dashes !== 'kept') bill.marks.add('lost_glyphs').add(`lost_${manner.dashes}`);
  return manner;
}

function showsOf(form: Form, bill: Bill): Shows {
  return {
    card: cardShows(bill),
    amazon: AMAZON_SHOWS,
    microsoft: MICROSOFT_SHOWS,
    google: GOOGLE_SHOWS,
    french: FRENCH_SHOWS,
  }[form];
}

function draw(form: Form, paper: Paper, bill: Bill, chance: Chance): void {
  if (form === 'card') drawCard(paper, bill, chance);
  else if (form === 'amazon') drawAmazon(paper, bill);
  else if (form === 'microsoft') drawMicrosoft(paper, bill, chance);
  else if (form === 'google') drawGoogle(paper, bill);
  else drawFrench(paper, bill);
}

function markFigures({
  marks,
  items,
  money,
  notation,
  rebates,
  applied,
  taxes,
  kind,
  contradictions,
}: Bill): void {
  marks.add(kind).add(`currency_${money.code}`);
  if (notation.comma) marks.add('decimal_comma');
  if (rebates.length > 0) marks.add('discount');
  if (applied.length > 0) marks.add('applied_balance');
  if (taxes.some(({ value }) => value !== 0n)) marks.add('vat');
  if (items.some(({ net }) => net < 0n)) marks.add('negative_line');
  if (items.some(({ net }) => net === 0n)) marks.add('zero_line');
  if (items.some(({ kind: of }) => of === 'proration')) marks.add('proration');
  if (items.some(({ kind: of }) => of === 'prepaid_purchase')) marks.add('prepaid_purchase');
  if (items.some(({ from }) => from !== null)) marks.add('line_period');
  if (contradictions.length === 0) marks.delete('contradiction');
}

function truthOf(bill: Bill, shows: Shows, paper: Paper): InvoiceTruth {
  const maybe = (value: bigint | null) => (value === null ? null : plain(value));
  return {
    supplier: bill.seller.id,
    features: [...bill.marks].sort(),
    pages: paper.pages,
    kind: bill.kind,
    number: bill.number,
    issuer: bill.seller.name,
    account: bill.account,
    issueDate: bill.issued,
    dueDate: shows.due ? bill.due : null,
    periodStart: shows.period ? bill.from : null,
    periodEnd: shows.period ? bill.to : null,
    currency: bill.money.code,
    lines: bill.items.map(({ text, count, rate, net, taxPercent, from, to, kind }) => ({
      description: text,
      quantity: maybe(count),
      unitPrice: maybe(rate),
      amount: plain(net),
      taxRate: maybe(taxPercent),
      periodStart: from,
      periodEnd: to,
      kind,
    })),
    subtotal: shows.subtotal ? plain(bill.subtotal) : null,
    discounts: bill.rebates.map(({ value }) => plain(value)),
    taxes: bill.taxes.map(({ name, percent, base, value, reverse }) => ({
      name,
      rate: plain(percent),
      base: plain(base),
      amount: plain(value),
      isReverseCharge: reverse,
    })),
    credits: bill.applied.map(({ value }) => plain(value)),
    total: plain(bill.total),
    amountPaid: shows.paid ? maybe(bill.paid) : null,
    amountDue: shows.balance ? plain(bill.balance) : null,
    replaces: bill.replaces,
    contradictions: bill.contradictions,
    boxes: paper.boxes,
  };
}

async function make(seller: Seller, plot: Plot, chance: Chance, name: string): Promise<GeneratedInvoice> {
  const form: Form = seller.form === 'french' && chance.yes(0.4) ? 'card' : seller.form;
  const bill = composeBill({ seller, form, plot }, chance);
  const shows = showsOf(form, bill);
  if (chance.yes(SPOILED)) spoil(bill, shows, chance);
  const paper = await Paper.open(mannerOf(bill, chance), chance);
  if (chance.yes(0.04)) {
    bill.marks.add('stamp');
    paper.stamp('COPY');
  }
  paper.onPageEnd((page) => {
    paper.rule(40, paper.width - 40, paper.height - 46);
    paper.put(`${bill.number} - page ${page}`, paper.width / 2, paper.height - 32, {
      size: 7.5,
      tint: GREY,
      to: 'middle',
    });
  });
  draw(form, paper, bill, chance);
  if (paper.pages > 1) bill.marks.add('several_pages');
  markFigures(bill);
  const pdf = await paper.close();
  return { name, pdf, truth: truthOf(bill, shows, paper) };
}

/** Invoices of the eight suppliers in turn; the same seed makes the same bytes. */
export async function* generateInvoicesSecond(seed: number, count = 80): AsyncIterable<GeneratedInvoice> {
  for (let at = 0; at < count; at += 1) {
    const turn = at % SELLERS.length;
    const seller = SELLERS[turn] as Seller;
    const plot = PLOTS[(Math.floor(at / SELLERS.length) * 3 + turn * 7) % PLOTS.length] as Plot;
    yield await make(seller, plot, new Chance(seed, at), `second-${seed}-${String(at).padStart(3, '0')}`);
  }
}
