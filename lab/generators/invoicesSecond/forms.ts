import type { Bill, Item } from './bill.js';
import { writtenDate, writtenSpan } from './calendar.js';
import type { Chance } from './chance.js';
import { asMoney, share, toDecimals, total } from './figures.js';
import { type GridLook, type GridRow, grid, type Slot } from './grid.js';
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

function look(paper: Paper, more: Partial<GridLook>): GridLook {
  return {
    size: 8.5,
    pad: 4.5,
    boxed: false,
    headFill: null,
    headTint: GREY,
    striped: false,
    middle: true,
    headAgain: true,
    top: 52,
    bottom: paper.height - 66,
    ...more,
  };
}

const WHOLE: Shows = { subtotal: true, balance: false, paid: false, period: true, due: false };
export const AMAZON_SHOWS: Shows = { ...WHOLE, due: true };
export const MICROSOFT_SHOWS: Shows = { ...WHOLE, due: true };
export const GOOGLE_SHOWS: Shows = WHOLE;
export const FRENCH_SHOWS: Shows = { ...WHOLE, balance: true, due: true, period: false };

/** A tax invoice with a net, tax and gross amount for each service. */
export function drawAmazon(paper: Paper, bill: Bill): void {
  const left = 44;
  const right = paper.width - 44;
  const { seller, buyer } = bill;
  const isTaxed = bill.taxes.length > 0;
  paper.put('aws', left, 54, { size: 26, bold: true, tint: seller.tint });
  paper.put(isTaxed ? 'Tax Invoice' : 'Invoice', right, 50, { size: 17, bold: true, to: 'right' });
  stack(paper, [seller.name], left, 84, { size: 8.5, bold: true, field: 'issuer' });
  stack(paper, [seller.street, seller.city], left, 96, { size: 8.5 });
  stack(
    paper,
    [
      'Bill to:',
      buyer.name,
      buyer.street,
      buyer.city,
      buyer.taxId && `Tax registration number: ${buyer.taxId}`,
    ],
    left,
    134,
    { size: 8.5 },
  );
  paper.y = 84;
  const from = left + 280;
  const fact = (name: string, value: string, field: string) =>
    pair(paper, name, value, { from, to: right, size: 8.5, field });
  fact('AWS account number', bill.account ?? '', 'account');
  fact('Invoice number', bill.number, 'number');
  fact('Invoice date', writtenDate(bill.issued, bill.dates), 'issueDate');
  fact('Due date', writtenDate(bill.due ?? bill.issued, bill.dates), 'dueDate');
  fact('Billing period', writtenSpan(bill.from, bill.to, bill.dates, ' - '), 'period');
  paper.y = 218;
  const rate = total(bill.taxes.map((tax) => tax.percent));
  const isOne = bill.taxes.length === 1;
  for (const item of bill.items) item.taxPercent = isOne ? rate : null;
  const name = bill.taxes[0]?.name.split(' ')[0] ?? 'Tax';
  const slots: Slot[] = [
    { head: 'Service', from: left, to: right - 310, side: 'left', breaks: true },
    { head: `Charges (excl. ${name})`, from: right - 310, to: right - 208, side: 'right' },
    { head: `${name} rate`, from: right - 208, to: right - 150, side: 'middle' },
    { head: `${name} amount`, from: right - 150, to: right - 80, side: 'right' },
    { head: `Total`, from: right - 80, to: right, side: 'right' },
  ];
  const rows = bill.items.map((item): GridRow => {
    const { text, net, tax } = cells(bill, item);
    const own = toDecimals(share(rate, item.net), bill.money.decimals);
    return {
      entries: [
        text,
        net,
        tax ?? { text: '-' },
        { text: money(bill, own) },
        { text: money(bill, item.net + own) },
      ],
    };
  });
  grid(paper, slots, rows, look(paper, { boxed: true, headFill: [0.93, 0.94, 0.95] }));
  keepTogether(paper, 120);
  paper.y += 20;
  const place = { from: right - 260, to: right };
  pair(paper, 'Total charges excluding tax', money(bill, bill.subtotal), { ...place, field: 'subtotal' });
  for (const [at, rebate] of bill.rebates.entries())
    pair(paper, rebate.name, money(bill, rebate.value), { ...place, field: `discounts.${at + 1}` });
  for (const [at, tax] of bill.taxes.entries())
    pair(paper, `${tax.name} at ${percent(bill, tax.percent)}`, money(bill, tax.value), {
      ...place,
      field: `taxes.${at + 1}`,
    });
  pair(paper, 'TOTAL AMOUNT', money(bill, bill.total), { ...place, bold: true, ruled: true, field: 'total' });
  if (bill.taxes.some((tax) => tax.reverse))
    smallPrint(
      paper,
      [
        'Customer to account for any VAT arising on this supply in accordance with Article 196, Council Directive 2006/112/EC',
      ],
      left,
    );
  smallPrint(
    paper,
    [
      'Charges are in the currency of this invoice. Payment terms and bank details are in the billing console.',
      `Contact: ${seller.mail}`,
    ],
    left,
  );
}

/** A summary, then tables of usage and adjustments, each with its own total. */
export function drawMicrosoft(paper: Paper, bill: Bill, chance: Chance): void {
  const left = 40;
  const right = paper.width - 40;
  const { seller, buyer } = bill;
  paper.area(0, 0, paper.width, 52, seller.tint);
  paper.put('Microsoft Azure', left, 32, { size: 16, bold: true, tint: [1, 1, 1] });
  paper.put(bill.kind === 'credit_note' ? 'Credit note' : 'Invoice', right, 32, {
    size: 16,
    to: 'right',
    tint: [1, 1, 1],
  });
  const middle = left + (right - left) / 2;
  stack(paper, [seller.name], left, 78, { bold: true, size: 8.5, field: 'issuer' });
  stack(
    paper,
    [seller.street, seller.city, '', 'Bill-to address', buyer.name, buyer.street, buyer.city, buyer.taxId],
    left,
    90,
    { size: 8.5 },
  );
  paper.y = 78;
  const fact = (name: string, value: string, field: string) =>
    pair(paper, name, value, { from: middle + 20, to: right, size: 8.5, field });
  fact(bill.kind === 'credit_note' ? 'Credit note no.' : 'Invoice no.', bill.number, 'number');
  if (bill.replaces) fact('Refers to invoice no.', bill.replaces, 'replaces');
  fact('Document date', writtenDate(bill.issued, bill.dates), 'issueDate');
  if (bill.due) fact('Payment due', writtenDate(bill.due, bill.dates), 'dueDate');
  fact('Billing period', writtenSpan(bill.from, bill.to, bill.dates, ' - '), 'period');
  fact('Billing account', bill.account ?? '', 'account');
  fact('Currency', bill.money.code, 'currency');
  paper.y = 222;
  paper.put('Invoice summary', left, paper.y, { size: 12, bold: true, tint: seller.tint });
  paper.y += 20;
  const place = { from: middle - 40, to: right };
  pair(paper, 'Net charges', money(bill, bill.subtotal), { ...place, field: 'subtotal', ruled: true });
  for (const [at, rebate] of bill.rebates.entries())
    pair(paper, rebate.name, money(bill, rebate.value), {
      ...place,
      field: `discounts.${at + 1}`,
      ruled: true,
    });
  for (const [at, tax] of bill.taxes.entries())
    pair(
      paper,
      `${tax.name} ${tax.reverse ? '(reverse charge)' : percent(bill, tax.percent)}`,
      money(bill, tax.value),
      { ...place, field: `taxes.${at + 1}`, ruled: true },
    );
  pair(paper, `Total (${bill.money.code})`, money(bill, bill.total), {
    ...place,
    bold: true,
    fill: [0.9, 0.95, 0.99],
    field: 'total',
  });
  paper.y += 14;
  const groups = [...new Set(bill.items.map((item) => item.group))];
  if (groups.length > 1) bill.marks.add('two_tables');
  const boxed = chance.yes(0.5);
  for (const group of groups) {
    const items = bill.items.filter((item) => item.group === group);
    keepTogether(paper, 90);
    paper.put(group, left, paper.y + 8, { size: 11, bold: true, tint: seller.tint });
    paper.y += 16;
    const slots: Slot[] = [
      { head: 'Service', from: left, to: right - 250, side: 'left', breaks: true },
      { head: 'Consumed units', from: right - 250, to: right - 162, side: 'right' },
      { head: 'Unit price', from: right - 162, to: right - 84, side: 'right' },
      { head: `Charges`, from: right - 84, to: right, side: 'right' },
    ];
    const rows = items.map((item): GridRow => {
      const { text, count, rate, net } = cells(bill, item);
      return { entries: [text, count, rate, net] };
    });
    const sum: GridRow = {
      entries: [
        { text: `Total ${group.toLowerCase()}` },
        null,
        null,
        { text: money(bill, total(items.map(({ net }) => net))) },
      ],
      strong: true,
    };
    grid(
      paper,
      slots,
      groups.length > 1 ? [...rows, sum] : rows,
      look(paper, { boxed, striped: !boxed, headFill: [0.94, 0.94, 0.94] }),
    );
    paper.y += 18;
  }
  if (bill.taxes.some((tax) => tax.reverse))
    smallPrint(paper, ['Reverse charge: VAT to be accounted for by the recipient of the services.'], left);
}

const PROJECTS = ['prod-inference', 'staging', 'research-eu', 'support-bot'];

/** Costs by project; savings are lines with negative costs. */
export function drawGoogle(paper: Paper, bill: Bill): void {
  const left = 46;
  const right = paper.width - 46;
  const { seller, buyer } = bill;
  paper.put('Google Cloud', left, 56, { size: 18, tint: [0.37, 0.39, 0.41] });
  paper.put(bill.kind === 'credit_note' ? 'Credit memo' : 'Invoice', left, 86, { size: 24 });
  const titled = bill.kind === 'credit_note' ? 'Credit memo number' : 'Invoice number';
  stack(paper, [seller.name], right, 50, { size: 8, to: 'right', field: 'issuer' });
  stack(paper, [seller.street, seller.city], right, 61, { size: 8, to: 'right' });
  stack(paper, ['Bill to', buyer.name, buyer.street, buyer.city], left, 118, { size: 8.5 });
  paper.y = 118;
  const fact = (name: string, value: string, field: string) =>
    pair(paper, name, value, { from: left + 260, to: right, size: 8.5, field });
  fact(titled, bill.number, 'number');
  if (bill.replaces) fact('Original invoice number', bill.replaces, 'replaces');
  fact('Issue date', writtenDate(bill.issued, bill.dates), 'issueDate');
  fact('Billing account ID', bill.account ?? '', 'account');
  fact('Usage period', writtenSpan(bill.from, bill.to, bill.dates, ' - '), 'period');
  paper.y = Math.max(paper.y, 196) + 16;
  const many = bill.items.length > 4;
  const slots: Slot[] = [
    ...(many ? [{ head: 'Project', from: left, to: left + 84, side: 'left' } as const] : []),
    { head: 'SKU', from: many ? left + 84 : left, to: right - 176, side: 'left', breaks: true },
    { head: 'Usage', from: right - 176, to: right - 88, side: 'right' },
    { head: `Cost (${bill.money.code})`, from: right - 88, to: right, side: 'right' },
  ];
  const rows = bill.items.map((item, at): GridRow => {
    const { text, count, net } = cells(bill, item);
    const project = { text: PROJECTS[Math.floor((at * PROJECTS.length) / bill.items.length)] ?? '' };
    return { entries: [...(many ? [project] : []), text, count, net] };
  });
  grid(paper, slots, rows, look(paper, { striped: true, middle: false, pad: 4 }));
  keepTogether(paper, 110);
  paper.y += 24;
  const place = { from: left + 190, to: right, size: 9.5 };
  pair(paper, 'Subtotal', money(bill, bill.subtotal), { ...place, field: 'subtotal' });
  for (const [at, rebate] of bill.rebates.entries())
    pair(paper, rebate.name, money(bill, rebate.value), { ...place, field: `discounts.${at + 1}` });
  for (const [at, tax] of bill.taxes.entries())
    pair(paper, `${tax.name} (${percent(bill, tax.percent)})`, money(bill, tax.value), {
      ...place,
      field: `taxes.${at + 1}`,
    });
  const spelled =
    bill.notation.place === 'nowhere'
      ? asMoney(bill.total, { ...bill.notation, place: 'before_spaced' }, { ...bill.money, sign: null })
      : money(bill, bill.total);
  pair(paper, 'Total', spelled, { ...place, bold: true, ruled: true, field: 'total' });
  if (bill.taxes.some((tax) => tax.reverse))
    smallPrint(paper, ['VAT reverse charge applies (Article 196 of Directive 2006/112/EC).'], left);
}

/** A bilingual French invoice with sums carried from page to page. */
export function drawFrench(paper: Paper, bill: Bill): void {
  const left = 38;
  const right = paper.width - 38;
  const { seller, buyer } = bill;
  const [tax] = bill.taxes;
  for (const item of bill.items) item.taxPercent = bill.taxes.length === 1 ? (tax?.percent ?? null) : null;
  paper.area(0, 0, 8, paper.height, seller.tint);
  paper.put(seller.name, left, 54, { size: 15, bold: true, field: 'issuer' });
  stack(paper, [seller.street, seller.city, 'SIREN 952 418 325 - TVA FR61952418325', seller.mail], left, 68, {
    size: 8,
    tint: GREY,
  });
  const isCredit = bill.kind === 'credit_note';
  paper.put(isCredit ? 'AVOIR / CREDIT NOTE' : 'FACTURE / INVOICE', right, 54, { size: 15, to: 'right' });
  paper.y = 72;
  const fact = (name: string, value: string, field: string) =>
    pair(paper, name, value, { from: left + 262, to: right, size: 8.5, field });
  fact(isCredit ? 'Avoir n° / Credit note no.' : 'Facture n° / Invoice no.', bill.number, 'number');
  if (bill.replaces) fact('Facture d’origine / Original invoice', bill.replaces, 'replaces');
  fact('Date', writtenDate(bill.issued, bill.dates), 'issueDate');
  if (bill.due) fact('Échéance / Due date', writtenDate(bill.due, bill.dates), 'dueDate');
  stack(paper, ['Client / Bill to', buyer.name, buyer.street, buyer.city, buyer.taxId], left, 144, {
    size: 9,
  });
  paper.y = 214;
  const hasTax = bill.taxes.length === 1;
  const edge = right - 88;
  const taxEdge = hasTax ? edge - 44 : edge;
  const slots: Slot[] = [
    { head: 'Désignation / Description', from: left, to: taxEdge - 158, side: 'left', breaks: true },
    { head: 'Qté / Qty', from: taxEdge - 158, to: taxEdge - 76, side: 'right' },
    { head: 'PU HT', from: taxEdge - 76, to: taxEdge, side: 'right' },
    ...(hasTax ? [{ head: 'TVA', from: taxEdge, to: edge, side: 'right' } as const] : []),
    { head: 'Montant HT', from: edge, to: right, side: 'right' },
  ];
  const rows = bill.items.map((item): GridRow => {
    const parts = cells(bill, item);
    return {
      entries: [parts.text, parts.count, parts.rate, ...(hasTax ? [parts.tax] : []), parts.net],
      under: spanOf(bill, item),
    };
  });
  const carry = (where: 'end' | 'start', done: number): GridRow => {
    bill.marks.add('carried_forward');
    const sum = money(bill, total(bill.items.slice(0, done).map((item: Item) => item.net)));
    const text = where === 'end' ? 'À reporter / Carried forward' : 'Report / Brought forward';
    return { entries: [{ text }, null, null, ...(hasTax ? [null] : []), { text: sum }], strong: true };
  };
  grid(paper, slots, rows, look(paper, { boxed: true, headFill: [0.96, 0.93, 0.9], carry }));
  keepTogether(paper, 130);
  paper.y += 22;
  const place = { from: left + 250, to: right };
  pair(
    paper,
    bill.rebates.length > 0 ? 'Sous-total HT / Subtotal' : 'Total HT / Subtotal',
    money(bill, bill.subtotal),
    { ...place, field: 'subtotal' },
  );
  for (const [at, rebate] of bill.rebates.entries())
    pair(paper, rebate.name, money(bill, rebate.value), { ...place, field: `discounts.${at + 1}` });
  for (const [at, one] of bill.taxes.entries())
    pair(
      paper,
      `${bill.taxes.length === 1 ? 'TVA / VAT' : one.name} ${percent(bill, one.percent)}`,
      money(bill, one.value),
      { ...place, field: `taxes.${at + 1}` },
    );
  pair(paper, 'Total TTC / Total', money(bill, bill.total), {
    ...place,
    bold: true,
    ruled: true,
    field: 'total',
  });
  pair(paper, 'Net à payer / Amount due', money(bill, bill.balance), {
    ...place,
    bold: true,
    fill: [0.99, 0.94, 0.9],
    field: 'amountDue',
  });
  if (bill.taxes.some((one) => one.reverse))
    smallPrint(paper, ['Autoliquidation / Reverse charge - Art. 283-2 CGI'], left);
  smallPrint(
    paper,
    [
      'Pénalités de retard : 3 fois le taux légal. Indemnité forfaitaire de recouvrement : 40,00 €.',
      'IBAN FR76 3000 4028 3798 7654 3210 943 - BIC BNPAFRPPXXX',
    ],
    left,
  );
}
