import type { Bill } from './bill.js';
import { writtenDate } from './calendar.js';
import type { Chance } from './chance.js';
import { type GridRow, grid, type Slot } from './grid.js';
import { GREY, type Paper } from './paper.js';
import {
  cells,
  keepTogether,
  money,
  pair,
  percent,
  type Shows,
  smallPrint,
  spanOf,
  stack,
} from './shared.js';

export function cardShows(bill: Bill): Shows {
  return {
    subtotal: true,
    balance: bill.kind === 'invoice',
    paid: bill.paid !== null,
    period: false,
    due: bill.due !== null,
  };
}

/** The invoice of a payment service, as most suppliers send it. */
export function drawCard(paper: Paper, bill: Bill, chance: Chance): void {
  const left = 30;
  const right = paper.width - 30;
  const { seller, buyer } = bill;
  const day = (text: string) => writtenDate(text, 'long');
  const withCode = (value: bigint) =>
    bill.money.sign ? `${money(bill, value)} ${bill.money.code}` : money(bill, value);
  const hasTax = bill.taxes.length === 1 && chance.yes(0.6);
  for (const item of bill.items) item.taxPercent = hasTax ? (bill.taxes[0]?.percent ?? null) : null;
  paper.area(left, 30, 26, 26, seller.tint);
  paper.put(seller.name, left + 34, 47, { size: 12, bold: true });
  paper.put({ invoice: 'Invoice', receipt: 'Receipt', credit_note: 'Credit note' }[bill.kind], right, 48, {
    size: 20,
    bold: true,
    to: 'right',
  });

  paper.y = 84;
  const fact = (name: string, value: string, field: string) => {
    paper.put(name, left, paper.y, { tint: GREY });
    paper.put(value, left + 108, paper.y, { field });
    paper.y += 14.5;
  };
  if (bill.kind === 'credit_note') {
    fact('Credit note number', bill.number, 'number');
    fact('Invoice number', bill.replaces as string, 'replaces');
  } else fact('Invoice number', bill.number, 'number');
  if (bill.kind === 'receipt') {
    fact('Receipt number', `${chance.digits(4)}-${chance.digits(4)}`, 'receipt');
    fact('Date paid', day(bill.issued), 'issueDate');
    fact('Payment method', `Mastercard - ${chance.digits(4)}`, 'method');
  } else fact('Date of issue', day(bill.issued), 'issueDate');
  if (bill.due) fact('Date due', day(bill.due), 'dueDate');
  if (chance.yes(0.2)) fact('PO number', `PO-${chance.digits(6)}`, 'order');

  const top = paper.y + 18;
  const first = stack(paper, [seller.name], left, top, { bold: true, field: 'issuer' });
  stack(paper, [seller.street, seller.city, seller.mail], left, first);
  const second = stack(paper, ['Bill to'], left + 250, top, { bold: true });
  stack(
    paper,
    [buyer.name, buyer.street, buyer.city, buyer.taxId && `Tax ID ${buyer.taxId}`],
    left + 250,
    second,
  );
  paper.y = top + 92;
  const headline = {
    invoice:
      bill.paid === null
        ? `${withCode(bill.balance)} due ${day(bill.due ?? bill.issued)}`
        : `${withCode(bill.balance)} due - paid on ${day(bill.issued)}`,
    receipt: `${withCode(bill.total)} paid on ${day(bill.issued)}`,
    credit_note: `${withCode(bill.total)} credited on ${day(bill.issued)}`,
  }[bill.kind];
  paper.put(headline, left, paper.y, { size: 13, bold: true });
  paper.y += 26;
  items(paper, bill, left, right, hasTax);
  sums(paper, bill, { from: left + 262, to: right, withCode });
  if (bill.kind === 'receipt') payments(paper, bill, left, right, chance);
  if (bill.taxes.some((tax) => tax.reverse))
    smallPrint(paper, ['Tax to be paid on reverse charge basis'], left);
  if (bill.money.code === 'USD' && (bill.taxes[0]?.value ?? 0n) > 0n && chance.yes(0.4)) {
    bill.marks.add('second_currency');
    smallPrint(
      paper,
      [`VAT amount converted at 1 USD = 0.9214 EUR as published by the European Central Bank`],
      left,
    );
  }
}

function items(paper: Paper, bill: Bill, left: number, right: number, hasTax: boolean): void {
  const edge = right - 84;
  const taxEdge = hasTax ? edge - 46 : edge;
  const slots: Slot[] = [
    { head: 'Description', from: left - 3, to: taxEdge - 160, side: 'left', breaks: true },
    { head: 'Qty', from: taxEdge - 160, to: taxEdge - 84, side: 'right' },
    { head: 'Unit price', from: taxEdge - 84, to: taxEdge, side: 'right' },
    ...(hasTax ? [{ head: 'Tax', from: taxEdge, to: edge, side: 'right' } as const] : []),
    { head: 'Amount', from: edge, to: right + 3, side: 'right' },
  ];
  const rows = bill.items.map((item): GridRow => {
    const { text, count, rate, tax, net } = cells(bill, item);
    return { entries: [text, count, rate, ...(hasTax ? [tax] : []), net], under: spanOf(bill, item) };
  });
  grid(paper, slots, rows, {
    size: 9,
    pad: 5,
    boxed: false,
    headFill: null,
    headTint: GREY,
    striped: false,
    middle: false,
    headAgain: bill.seller.id !== 'xai',
    top: 46,
    bottom: paper.height - 62,
  });
}

function sums(
  paper: Paper,
  bill: Bill,
  { from, to, withCode }: { from: number; to: number; withCode: (value: bigint) => string },
): void {
  keepTogether(paper, 18 * (5 + bill.rebates.length + bill.taxes.length + bill.applied.length));
  paper.y += 18;
  const place = { from, to, ruled: true };
  pair(paper, 'Subtotal', money(bill, bill.subtotal), { ...place, field: 'subtotal' });
  for (const [at, { name, value }] of bill.rebates.entries())
    pair(paper, name, money(bill, value), { ...place, field: `discounts.${at + 1}` });
  if (bill.taxes[0]) pair(paper, 'Total excluding tax', money(bill, bill.taxes[0].base), place);
  for (const [at, tax] of bill.taxes.entries())
    pair(
      paper,
      `${tax.name} (${percent(bill, tax.percent)} on ${money(bill, tax.base)})`,
      money(bill, tax.value),
      { ...place, field: `taxes.${at + 1}` },
    );
  pair(paper, 'Total', money(bill, bill.total), { ...place, field: 'total' });
  for (const [at, { name, value }] of bill.applied.entries())
    pair(paper, name, money(bill, value), { ...place, field: `credits.${at + 1}` });
  if (bill.paid !== null)
    pair(paper, 'Amount paid', bill.kind === 'receipt' ? withCode(bill.paid) : money(bill, bill.paid), {
      ...place,
      field: 'amountPaid',
      bold: bill.kind === 'receipt',
    });
  if (bill.kind === 'invoice')
    pair(paper, 'Amount due', withCode(bill.balance), { ...place, bold: true, field: 'amountDue' });
}

function payments(paper: Paper, bill: Bill, left: number, right: number, chance: Chance): void {
  bill.marks.add('two_tables');
  keepTogether(paper, 80);
  paper.y += 20;
  paper.put('Payment history', left, paper.y, { size: 11, bold: true });
  paper.y += 10;
  const width = (right - left) / 4;
  const slots = ['Payment method', 'Date', 'Amount paid', 'Receipt number'].map(
    (head, at): Slot => ({
      head,
      from: left - 3 + width * at,
      to: left - 3 + width * (at + 1),
      side: at < 2 ? 'left' : 'right',
    }),
  );
  const texts = [
    `Mastercard - ${chance.digits(4)}`,
    writtenDate(bill.issued, 'long'),
    money(bill, bill.paid ?? 0n),
    `${chance.digits(4)}-${chance.digits(4)}`,
  ];
  grid(paper, slots, [{ entries: texts.map((text) => ({ text })) }], {
    size: 9,
    pad: 5,
    boxed: false,
    headFill: null,
    headTint: GREY,
    striped: false,
    middle: false,
    headAgain: true,
    top: 46,
    bottom: paper.height - 62,
  });
}
