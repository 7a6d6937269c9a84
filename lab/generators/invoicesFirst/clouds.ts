import type { Supplier } from './catalog.js';
import { longDate, rangeText, shortDate, slashDate } from './dates.js';
import { decimalText, sum } from './decimal.js';
import type { DraftInvoice, DraftLine, Printed } from './draft.js';
import { moneyText, quantityText } from './numberStyle.js';
import type { Random } from './random.js';
import type { Sheet } from './sheet.js';
import { type Column, drawSum, drawTable, type Row, type TableLook } from './table.js';

const GREY = '#5f6368';

function look(sheet: Sheet, left: number, right: number, more: Partial<TableLook> = {}): TableLook {
  return {
    size: 8.5,
    gap: 6,
    headColour: GREY,
    headBold: true,
    left,
    right,
    top: 60,
    bottom: sheet.height - 70,
    repeatsHead: true,
    ...more,
  };
}

function address(
  sheet: Sheet,
  x: number,
  y: number,
  who: { name: string; address: string[] },
  field?: string,
): number {
  for (const [at, row] of [who.name, ...who.address].entries())
    sheet.text(row, x, y + at * 12, { size: 8.5, bold: at === 0, field: at === 0 ? field : undefined });
  return y + (who.address.length + 1) * 12;
}

/** Amazon prints services with their charges and tax; only its usage reports have quantities. */
export function prepareAws(draft: DraftInvoice, random: Random): Printed {
  const usage = draft.lines.filter((line) => line.kind === 'usage');
  const others: DraftLine[] = random.chance(0.5)
    ? ['Amazon Simple Storage Service', 'AWS Data Transfer', 'AWS Key Management Service'].map(
        (description, at) => ({
          ...(usage[0] as DraftLine),
          description,
          amount: ((usage[at % usage.length]?.amount ?? 0n) / 700_000_000_000n) * 10_000_000_000n,
          kind: 'other',
        }),
      )
    : [];
  if (draft.features.has('subject_long_usage')) {
    draft.features.add('aws_detail');
    for (const line of draft.lines) line.taxRate = null;
    return { subtotal: false, amountDue: false, amountPaid: false, period: true, dueDate: true };
  }
  const bedrock = {
    ...(usage[0] as DraftLine),
    description: 'Amazon Bedrock',
    amount: sum(usage.map((line) => line.amount)),
  };
  const credits = draft.lines.filter((line) => line.amount < 0n);
  draft.lines = [bedrock, ...others.filter((line) => line.amount > 0n)].map((line) => ({
    ...line,
    quantity: null,
    unitPrice: null,
    taxRate: null,
    period: null,
  }));
  for (const { amount } of credits) draft.discounts.push({ name: 'Credits', amount });
  draft.credits = [];
  return { subtotal: false, amountDue: false, amountPaid: false, period: true, dueDate: true };
}

export function drawAws(sheet: Sheet, draft: DraftInvoice): void {
  const left = 40;
  const right = sheet.width - 40;
  const money = (value: bigint) => moneyText(value, draft.style, draft.currency);
  const { start, end } = draft.period as { start: string; end: string };
  sheet.text('aws', left, 28, { size: 24, bold: true, colour: '#232f3e' });
  sheet.text(`${draft.issuer.name} Invoice`, right, 30, {
    size: 13,
    bold: true,
    align: 'right',
    field: 'issuer',
  });
  sheet.text(
    'Email or talk to us about your AWS account or bill, visit aws.amazon.com/contact-us/',
    right,
    48,
    { size: 7.5, align: 'right', colour: GREY },
  );
  const fact = (name: string, value: string, field: string) => {
    sheet.text(name, left + 290, sheet.y, { size: 8.5 });
    sheet.text(value, right, sheet.y, { size: 8.5, align: 'right', field });
    sheet.y += 14;
  };
  sheet.text('Account number:', left, 84, { size: 8.5, bold: true });
  sheet.text(draft.account as string, left, 97, { size: 9, field: 'account' });
  sheet.text('Bill to Address:', left, 118, { size: 8.5, bold: true });
  address(sheet, left, 131, draft.customer);
  sheet.block(left + 280, 80, right - left - 280, 17, '#eaeded');
  sheet.text('Invoice Summary', left + 286, 84, { bold: true });
  sheet.y = 103;
  fact('Invoice Number:', draft.number, 'number');
  fact('Invoice Date:', longDate(draft.issueDate), 'issueDate');
  sheet.block(left + 280, sheet.y - 2, right - left - 280, 16, '#f7dfc4');
  fact(`TOTAL AMOUNT DUE ON ${longDate(draft.dueDate as string)}`, money(draft.total), 'total');
  sheet.y = 208;
  sheet.text(`This invoice is for the billing period ${rangeText(start, end, ' - ')}`, left, sheet.y, {
    size: 11,
    bold: true,
    field: 'period',
  });
  sheet.y += 20;
  sheet.text(
    'Greetings from Amazon Web Services, we are writing to provide you with an electronic invoice for your use of AWS',
    left,
    sheet.y,
    { size: 8 },
  );
  sheet.text(
    'services. Additional information about your bill, individual service charge details, and your account history are',
    left,
    sheet.y + 11,
    { size: 8 },
  );
  sheet.text('available on the Account Activity Page.', left, sheet.y + 22, { size: 8 });
  sheet.y += 48;

  const charges = sum(draft.lines.map((line) => line.amount));
  sheet.block(left, sheet.y - 4, right - left, 17, '#eaeded');
  sheet.text('Summary', left + 6, sheet.y, { bold: true });
  sheet.y += 20;
  const place = { left: left + 6, right: right - 6, size: 8.5, rule: false };
  const taxes = sum(draft.taxes.map(({ amount }) => amount));
  const after = charges + sum(draft.discounts.map(({ amount }) => amount)) + taxes;
  drawSum(sheet, 'AWS Service Charges', money(after), { ...place, bold: true });
  drawSum(sheet, '   Charges', money(charges), place);
  for (const [at, { name, amount }] of draft.discounts.entries())
    drawSum(sheet, `   ${name}`, money(amount), { ...place, field: `discounts.${at + 1}` });
  for (const [at, tax] of draft.taxes.entries())
    drawSum(
      sheet,
      `   ${tax.name}${tax.isReverseCharge ? ' (reverse charge)' : ` (${decimalText(tax.rate ?? 0n)}%)`}`,
      money(tax.amount),
      { ...place, field: `taxes.${at + 1}` },
    );
  drawSum(sheet, 'Total for this invoice', money(draft.total), { ...place, bold: true });
  sheet.y += 14;

  sheet.block(left, sheet.y - 4, right - left, 17, '#eaeded');
  sheet.text('Detail', left + 6, sheet.y, { bold: true });
  sheet.y += 22;
  if (draft.features.has('aws_detail')) awsUsage(sheet, draft, left, right, money);
  else {
    const share = (line: DraftLine) => (charges === 0n ? 0n : line.amount);
    for (const [at, line] of draft.lines.entries()) {
      if (sheet.y > sheet.height - 110) {
        sheet.newPage();
        sheet.y = 50;
      }
      sheet.text(line.description, place.left, sheet.y, {
        size: 9,
        bold: true,
        field: `lines.${at + 1}.description`,
      });
      sheet.text(money(share(line)), place.right, sheet.y, { size: 9, bold: true, align: 'right' });
      sheet.y += 15;
      drawSum(sheet, '   Charges', money(line.amount), { ...place, field: `lines.${at + 1}.amount` });
    }
  }
  sheet.footers((page) => {
    sheet.text('* May include estimated US sales tax, VAT, ST, GST and CT.', left, sheet.height - 52, {
      size: 7,
      colour: GREY,
    });
    sheet.text('** This is not a VAT invoice.', left, sheet.height - 43, { size: 7, colour: GREY });
    sheet.text(`${page}`, right, sheet.height - 43, { size: 7, colour: GREY, align: 'right' });
  });
}

function awsUsage(
  sheet: Sheet,
  draft: DraftInvoice,
  left: number,
  right: number,
  money: (value: bigint) => string,
): void {
  draft.features.add('two_tables');
  const columns: Column[] = [
    { title: 'Amazon Bedrock usage', x: left + 6, align: 'left', width: right - left - 240 },
    { title: 'Usage quantity', x: right - 160, align: 'right' },
    { title: 'Rate', x: right - 76, align: 'right' },
    { title: 'Amount', x: right - 6, align: 'right' },
  ];
  const rows = draft.lines.map((line, at): Row => lineRow(line, at, draft, money));
  drawTable(sheet, columns, rows, look(sheet, left, right, { gap: 5 }));
}

function lineRow(line: DraftLine, at: number, draft: DraftInvoice, money: (value: bigint) => string): Row {
  const path = `lines.${at + 1}`;
  return {
    cells: [
      { text: line.description, field: `${path}.description` },
      line.quantity === null
        ? null
        : { text: quantityText(line.quantity, draft.style), field: `${path}.quantity` },
      line.unitPrice === null ? null : { text: money(line.unitPrice), field: `${path}.unitPrice` },
      { text: money(line.amount), field: `${path}.amount` },
    ],
    below: line.period
      ? [{ text: rangeText(line.period.start, line.period.end, ' - '), field: `${path}.period` }]
      : [],
  };
}

/** Microsoft prints each line with its tax rate and the gross amount. */
export function prepareAzure(draft: DraftInvoice): Printed {
  for (const line of draft.lines) {
    line.period = null;
    line.unitPrice = null;
    if (line.kind !== 'usage') line.quantity = null;
  }
  return { subtotal: true, amountDue: false, amountPaid: false, period: true, dueDate: true };
}

export function drawAzure(sheet: Sheet, draft: DraftInvoice, supplier: Supplier): void {
  const left = 36;
  const right = sheet.width - 36;
  const money = (value: bigint) => moneyText(value, draft.style, draft.currency);
  const { start, end } = draft.period as { start: string; end: string };
  for (const [at, colour] of ['#f25022', '#7fba00', '#00a4ef', '#ffb900'].entries())
    sheet.block(left + (at % 2) * 11, 30 + Math.floor(at / 2) * 11, 10, 10, colour);
  sheet.text('Microsoft', left + 30, 32, { size: 15, bold: true, colour: '#737373' });
  sheet.text('Invoice', right, 30, { size: 18, align: 'right', colour: supplier.colour });
  address(sheet, left, 72, draft.issuer, 'issuer');
  sheet.text('Sold to', left, 150, { size: 9, bold: true, colour: supplier.colour });
  address(sheet, left, 163, draft.customer);
  sheet.y = 72;
  const fact = (name: string, value: string, field: string) => {
    sheet.text(name, left + 290, sheet.y, { size: 8.5, bold: true });
    sheet.text(value, right, sheet.y, { size: 8.5, align: 'right', field });
    sheet.y += 14;
  };
  fact('Invoice number', draft.number, 'number');
  fact('Invoice date', slashDate(draft.issueDate), 'issueDate');
  fact('Due date', slashDate(draft.dueDate as string), 'dueDate');
  fact('Billing period', `${slashDate(start)} - ${slashDate(end)}`, 'period');
  fact('Billing profile ID', draft.account as string, 'account');
  sheet.y = 236;
  sheet.text(`Billing summary (${draft.currency.code})`, left, sheet.y, {
    size: 12,
    bold: true,
    colour: supplier.colour,
  });
  sheet.y += 22;
  const place = { left: left + 250, right, size: 9 };
  const positive = sum(draft.lines.filter((line) => line.amount > 0n).map((line) => line.amount));
  const negative = sum(draft.lines.filter((line) => line.amount < 0n).map((line) => line.amount));
  drawSum(sheet, 'Charges', money(positive), place);
  drawSum(sheet, 'Credits', money(negative), place);
  drawSum(sheet, 'Subtotal', money(draft.subtotal), { ...place, field: 'subtotal' });
  for (const [at, { name, amount }] of draft.discounts.entries())
    drawSum(sheet, name, money(amount), { ...place, field: `discounts.${at + 1}` });
  for (const [at, tax] of draft.taxes.entries()) {
    const note = tax.isReverseCharge ? 'reverse charge' : `${decimalText(tax.rate ?? 0n)}%`;
    drawSum(sheet, `${tax.name} (${note})`, money(tax.amount), { ...place, field: `taxes.${at + 1}` });
  }
  drawSum(sheet, 'Total', money(draft.total), { ...place, bold: true, field: 'total' });
  sheet.y += 10;
  sheet.text('Details by invoice section', left, sheet.y, { size: 12, bold: true, colour: supplier.colour });
  sheet.text(`Service Period: ${slashDate(start)} - ${slashDate(end)}`, right, sheet.y + 2, {
    size: 8,
    align: 'right',
    colour: GREY,
  });
  sheet.y += 24;
  const columns: Column[] = [
    { title: 'Product', x: left, align: 'left', width: 190 },
    { title: 'Quantity', x: left + 276, align: 'right' },
    { title: 'Charges/Credits', x: left + 364, align: 'right' },
    { title: 'Tax rate', x: left + 414, align: 'right' },
    { title: 'Total', x: right, align: 'right' },
  ];
  const rows = draft.lines.map((line, at): Row => {
    const path = `lines.${at + 1}`;
    const withTax = line.amount + (line.amount * (line.taxRate ?? 0n)) / 100_000_000_000_000n;
    const step = draft.currency.digits === 0 ? 10n ** 12n : 10n ** 10n;
    return {
      cells: [
        { text: line.description, field: `${path}.description` },
        line.quantity === null
          ? null
          : { text: quantityText(line.quantity, draft.style), field: `${path}.quantity` },
        { text: money(line.amount), field: `${path}.amount` },
        line.taxRate === null ? null : { text: `${decimalText(line.taxRate)}%`, field: `${path}.taxRate` },
        { text: money((withTax / step) * step) },
      ],
    };
  });
  drawTable(
    sheet,
    columns,
    rows,
    look(sheet, left, right, { headFill: '#f2f2f2', ruleColour: '#e1e1e1', gap: 8 }),
  );
  if (draft.taxes.some((tax) => tax.isReverseCharge))
    sheet.text(
      'VAT is to be accounted for by the recipient under the reverse charge procedure.',
      left,
      sheet.y + 4,
      { size: 8, colour: GREY },
    );
  sheet.footers((page, pages) => {
    sheet.text(`Invoice ${draft.number}`, left, sheet.height - 36, { size: 7.5, colour: GREY });
    sheet.text(`Page ${page} of ${pages}`, right, sheet.height - 36, {
      size: 7.5,
      colour: GREY,
      align: 'right',
    });
  });
}

/** Google prints a summary on the first page and the lines from the second on. */
export function prepareGoogle(draft: DraftInvoice): Printed {
  for (const line of draft.lines) {
    line.unitPrice = null;
    line.taxRate = null;
    if (line.kind !== 'usage') line.quantity = null;
  }
  return { subtotal: true, amountDue: false, amountPaid: false, period: true, dueDate: false };
}

export function drawGoogle(sheet: Sheet, draft: DraftInvoice, supplier: Supplier): void {
  const left = 48;
  const right = sheet.width - 48;
  const money = (value: bigint) => moneyText(value, draft.style, draft.currency);
  const { code } = draft.currency;
  const { start, end } = draft.period as { start: string; end: string };
  sheet.text('Google', left, 40, { size: 22, bold: true, colour: supplier.colour });
  sheet.text('Invoice', right, 40, { size: 22, align: 'right' });
  sheet.text(`Invoice number: ${draft.number}`, right, 68, { size: 10, align: 'right', field: 'number' });
  let y = address(sheet, left, 100, draft.issuer, 'issuer') + 16;
  sheet.text('Bill to', left, y, { size: 10, bold: true });
  y = address(sheet, left, y + 15, draft.customer);
  sheet.text('Details', left + 270, 100, { size: 10, bold: true });
  sheet.y = 116;
  for (const [name, value, field] of [
    ['Invoice number', draft.number, undefined],
    ['Invoice date', shortDate(draft.issueDate), 'issueDate'],
    ['Billing ID', draft.account as string, 'account'],
    ['Currency', code, 'currency'],
  ] as const) {
    sheet.text(`${name}`, left + 270, sheet.y, { size: 8.5, colour: GREY });
    sheet.text(value, right, sheet.y, { size: 8.5, align: 'right', field });
    sheet.line(left + 270, right, sheet.y + 13);
    sheet.y += 17;
  }
  sheet.y = Math.max(y, 250) + 16;
  sheet.text('Google Cloud', left, sheet.y, { size: 14, bold: true, colour: supplier.colour });
  sheet.text(`Total in ${code}`, left + 270, sheet.y, { size: 9, colour: GREY });
  sheet.text(money(draft.total), right, sheet.y - 6, { size: 18, align: 'right', field: 'total' });
  sheet.y += 34;
  sheet.text(`Summary for ${rangeText(start, end, ' - ')}`, left, sheet.y, {
    size: 11,
    bold: true,
    field: 'period',
  });
  sheet.y += 26;
  const place = { left, right, size: 9.5 };
  drawSum(sheet, `Subtotal in ${code}`, money(draft.subtotal), { ...place, field: 'subtotal' });
  for (const [at, { name, amount }] of draft.discounts.entries())
    drawSum(sheet, name, money(amount), { ...place, field: `discounts.${at + 1}` });
  if (draft.taxes.length === 0) drawSum(sheet, 'Tax (0%)', money(0n), place);
  for (const [at, tax] of draft.taxes.entries())
    drawSum(sheet, `${tax.name} (${decimalText(tax.rate ?? 0n)}%)`, money(tax.amount), {
      ...place,
      field: `taxes.${at + 1}`,
    });
  drawSum(sheet, `Total in ${code}`, money(draft.total), { ...place, bold: true });
  if (draft.taxes.some((tax) => tax.isReverseCharge)) {
    sheet.text(
      'Services subject to the reverse charge - VAT to be accounted for by the recipient as per Article 196',
      left,
      sheet.y + 6,
      { size: 8, colour: GREY },
    );
    sheet.text('of Council Directive 2006/112/EC', left, sheet.y + 17, { size: 8, colour: GREY });
  }
  sheet.newPage();
  sheet.y = 60;
  sheet.text('Vertex AI', left, sheet.y - 22, { size: 12, bold: true });
  const columns: Column[] = [
    { title: 'Description', x: left, align: 'left', width: 205 },
    { title: 'Interval', x: left + 214, align: 'left' },
    { title: 'Quantity', x: right - 84, align: 'right' },
    { title: `Amount(${code})`, x: right, align: 'right' },
  ];
  const rows = draft.lines.map((line, at): Row => {
    const path = `lines.${at + 1}`;
    const period = line.period
      ? rangeText(line.period.start, line.period.end, ' - ').replaceAll(/, \d+/g, '')
      : '';
    return {
      cells: [
        { text: line.description, field: `${path}.description` },
        line.period ? { text: period, field: `${path}.period` } : null,
        line.quantity === null
          ? null
          : { text: quantityText(line.quantity, draft.style), field: `${path}.quantity` },
        { text: money(line.amount), field: `${path}.amount` },
      ],
    };
  });
  drawTable(sheet, columns, rows, look(sheet, left, right, { gap: 7, ruleColour: '#eeeeee' }));
  sheet.footers((page, pages) => {
    sheet.text(`Page ${page} of ${pages}`, right, sheet.height - 40, {
      size: 8,
      colour: GREY,
      align: 'right',
    });
  });
}
