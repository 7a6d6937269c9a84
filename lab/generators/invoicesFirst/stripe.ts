import type { Supplier } from './catalog.js';
import { longDate, rangeText } from './dates.js';
import { decimalText } from './decimal.js';
import type { DraftInvoice, Printed } from './draft.js';
import { moneyText, quantityText } from './numberStyle.js';
import type { Random } from './random.js';
import type { Sheet } from './sheet.js';
import { type Column, drawSum, drawTable, type Row } from './table.js';

const GREY = '#697386';
const TITLES = { invoice: 'Invoice', receipt: 'Receipt', credit_note: 'Credit note' };

export function stripePrints(draft: DraftInvoice): Printed {
  return {
    subtotal: true,
    amountDue: draft.kind === 'invoice',
    amountPaid: draft.kind === 'receipt',
    period: false,
    dueDate: draft.kind === 'invoice',
  };
}

/** Draws the Stripe layout. Without a tax column it removes the lines' tax rates from the draft. */
export function drawStripe(sheet: Sheet, draft: DraftInvoice, supplier: Supplier, random: Random): void {
  const left = 32;
  const right = sheet.width - 32;
  const money = (value: bigint) => moneyText(value, draft.style, draft.currency);
  // Stripe names the currency beside the first and the last sum.
  const named = (value: bigint) =>
    draft.style.currency.startsWith('symbol') ? `${money(value)} ${draft.currency.code}` : money(value);
  if (random.chance(0.3)) draft.features.add('no_tax_column');
  const hasTaxColumn = draft.taxes.length === 1 && !draft.features.has('no_tax_column');
  if (!hasTaxColumn) for (const line of draft.lines) line.taxRate = null;

  const title = TITLES[draft.kind];
  sheet.block(0, 0, sheet.width, 4, supplier.colour);
  sheet.text(title, left, 30, { size: 18, bold: true });
  sheet.text(supplier.issuer.name.split(/[ ,]/)[0] as string, right, 32, {
    size: 15,
    bold: true,
    align: 'right',
    colour: supplier.colour,
  });
  sheet.y = 68;
  const fact = (name: string, value: string, field: string) => {
    sheet.text(name, left, sheet.y, { bold: true });
    sheet.text(value, left + 96, sheet.y, {
      field,
      bold: name.endsWith('number') && draft.kind !== 'credit_note',
    });
    sheet.y += 14;
  };
  if (draft.kind === 'credit_note') fact('Credit note number', draft.number, 'number');
  fact(
    'Invoice number',
    draft.kind === 'credit_note' ? (draft.replaces as string) : draft.number,
    draft.kind === 'credit_note' ? 'replaces' : 'number',
  );
  if (draft.kind === 'receipt') {
    fact(
      'Receipt number',
      `${random.letters('0123456789', 4)}-${random.letters('0123456789', 4)}`,
      'receiptNumber',
    );
    fact('Date paid', longDate(draft.issueDate), 'issueDate');
    fact('Payment method', `Visa - ${random.letters('0123456789', 4)}`, 'paymentMethod');
  } else fact('Date of issue', longDate(draft.issueDate), 'issueDate');
  if (draft.kind === 'invoice') fact('Date due', longDate(draft.dueDate as string), 'dueDate');

  sheet.y += 14;
  const top = sheet.y;
  for (const [x, who, heading] of [
    [left, draft.issuer, null],
    [left + 210, draft.customer, 'Bill to'],
  ] as const) {
    sheet.y = top;
    if (heading) {
      sheet.text(heading, x, sheet.y, { bold: true });
      sheet.y += 13;
    }
    const rows = [who.name, ...who.address, ...(heading ? [] : [supplier.email])];
    for (const [at, row] of rows.entries()) {
      sheet.text(row, x, sheet.y, {
        bold: !heading && at === 0,
        field: !heading && at === 0 ? 'issuer' : undefined,
      });
      sheet.y += 13;
    }
  }
  sheet.y = top + 118;
  const headline = {
    invoice: `${named(draft.amountDue)} due ${longDate(draft.dueDate ?? draft.issueDate)}`,
    receipt: `${money(draft.total)} paid on ${longDate(draft.issueDate)}`,
    credit_note: `${named(draft.total)} credited on ${longDate(draft.issueDate)}`,
  }[draft.kind];
  sheet.text(headline, left, sheet.y, { size: 14, bold: true });
  sheet.y += 24;
  if (draft.kind === 'invoice') {
    sheet.text('Pay online', left, sheet.y, { colour: '#635bff', bold: true });
    sheet.y += 22;
  }
  if (random.chance(0.25)) {
    sheet.text(
      'Thanks for your business. Questions about this invoice? Reply to the e-mail that it came with.',
      left,
      sheet.y,
      { size: 8, colour: GREY },
    );
    sheet.y += 22;
  }

  lines(sheet, draft, { left, right, hasTaxColumn, money });
  sums(sheet, draft, { left: left + (right - left) / 2 - 6, right, money, named });
  if (draft.kind === 'receipt') payments(sheet, draft, { left, right, money, random });
  if (draft.taxes.some((tax) => tax.isReverseCharge)) {
    reserve(sheet, 30);
    sheet.y += 10;
    sheet.text('[1] Tax to be paid on reverse charge basis', left, sheet.y, { size: 8, colour: GREY });
  }
  sheet.footers((page, pages) => {
    const y = sheet.height - 34;
    sheet.line(left, right, y - 8);
    const text = draft.kind === 'invoice' ? `${draft.number} · ${headline}` : draft.number;
    sheet.text(text, left, y, { size: 7.5, colour: GREY });
    sheet.text(`Page ${page} of ${pages}`, right, y, { size: 7.5, colour: GREY, align: 'right' });
  });
}

function reserve(sheet: Sheet, height: number): void {
  if (sheet.y + height <= sheet.height - 52) return;
  sheet.newPage();
  sheet.y = 40;
}

function lines(
  sheet: Sheet,
  draft: DraftInvoice,
  {
    left,
    right,
    hasTaxColumn,
    money,
  }: { left: number; right: number; hasTaxColumn: boolean; money: (value: bigint) => string },
): void {
  const amountAt = right;
  const taxAt = right - 78;
  const priceAt = hasTaxColumn ? taxAt - 42 : right - 92;
  const quantityAt = priceAt - 84;
  const columns: Column[] = [
    { title: 'Description', x: left, align: 'left', width: quantityAt - left - 76 },
    { title: 'Qty', x: quantityAt, align: 'right' },
    { title: 'Unit price', x: priceAt, align: 'right' },
    ...(hasTaxColumn ? [{ title: 'Tax', x: taxAt, align: 'right' } as const] : []),
    { title: 'Amount', x: amountAt, align: 'right' },
  ];
  const isReverse = draft.taxes.some((tax) => tax.isReverseCharge);
  const rows = draft.lines.map((line, at): Row => {
    const path = `lines.${at + 1}`;
    const rate = line.taxRate === null ? '' : `${decimalText(line.taxRate)}%${isReverse ? ' [1]' : ''}`;
    return {
      cells: [
        { text: line.description, field: `${path}.description` },
        line.quantity === null
          ? null
          : { text: quantityText(line.quantity, draft.style), field: `${path}.quantity` },
        line.unitPrice === null ? null : { text: money(line.unitPrice), field: `${path}.unitPrice` },
        ...(hasTaxColumn ? [{ text: rate, field: `${path}.taxRate` }] : []),
        { text: money(line.amount), field: `${path}.amount` },
      ],
      below: line.period
        ? [{ text: rangeText(line.period.start, line.period.end, ' – '), field: `${path}.period` }]
        : [],
    };
  });
  drawTable(sheet, columns, rows, {
    size: 9,
    gap: 9,
    headColour: GREY,
    headBold: false,
    left,
    right,
    top: 44,
    bottom: sheet.height - 60,
    repeatsHead: !draft.features.has('no_repeated_head'),
  });
}

function sums(
  sheet: Sheet,
  draft: DraftInvoice,
  {
    left,
    right,
    money,
    named,
  }: { left: number; right: number; money: (value: bigint) => string; named: (value: bigint) => string },
): void {
  const count = 4 + draft.discounts.length + draft.taxes.length + draft.credits.length;
  reserve(sheet, count * 20);
  sheet.y += 6;
  const place = { left, right, size: 9 };
  drawSum(sheet, 'Subtotal', money(draft.subtotal), { ...place, field: 'subtotal' });
  for (const [at, { name, amount }] of draft.discounts.entries())
    drawSum(sheet, name, money(amount), { ...place, field: `discounts.${at + 1}` });
  const base = draft.taxes[0]?.base;
  if (base !== undefined && base !== null) drawSum(sheet, 'Total excluding tax', money(base), place);
  for (const [at, tax] of draft.taxes.entries()) {
    const rate = decimalText(tax.rate ?? 0n);
    const note = tax.isReverseCharge ? ' [1]' : '';
    drawSum(sheet, `${tax.name} (${rate}% on ${money(tax.base ?? 0n)})${note}`, money(tax.amount), {
      ...place,
      field: `taxes.${at + 1}`,
    });
  }
  drawSum(sheet, 'Total', money(draft.total), { ...place, field: 'total' });
  for (const [at, { name, amount }] of draft.credits.entries())
    drawSum(sheet, name, money(amount), { ...place, field: `credits.${at + 1}` });
  if (draft.kind === 'invoice')
    drawSum(sheet, 'Amount due', named(draft.amountDue), { ...place, bold: true, field: 'amountDue' });
  if (draft.kind === 'receipt')
    drawSum(sheet, 'Amount paid', named(draft.amountPaid as bigint), {
      ...place,
      bold: true,
      field: 'amountPaid',
    });
  if (draft.kind === 'credit_note')
    drawSum(sheet, 'Total amount adjusted', named(draft.total), { ...place, bold: true });
}

function payments(
  sheet: Sheet,
  draft: DraftInvoice,
  {
    left,
    right,
    money,
    random,
  }: { left: number; right: number; money: (value: bigint) => string; random: Random },
): void {
  draft.features.add('two_tables');
  reserve(sheet, 90);
  sheet.y += 16;
  sheet.text('Payment history', left, sheet.y, { size: 11, bold: true });
  sheet.y += 22;
  const columns: Column[] = [
    { title: 'Payment method', x: left, align: 'left' },
    { title: 'Date', x: left + 170, align: 'left' },
    { title: 'Amount paid', x: left + 360, align: 'right' },
    { title: 'Receipt number', x: right, align: 'right' },
  ];
  const number = `${random.letters('0123456789', 4)}-${random.letters('0123456789', 4)}`;
  const texts = [
    `Visa - ${random.letters('0123456789', 4)}`,
    longDate(draft.issueDate),
    money(draft.amountPaid as bigint),
    number,
  ];
  drawTable(sheet, columns, [{ cells: texts.map((text) => ({ text })) }], {
    size: 9,
    gap: 8,
    headColour: GREY,
    headBold: false,
    left,
    right,
    top: 44,
    bottom: sheet.height - 60,
    repeatsHead: true,
  });
}
