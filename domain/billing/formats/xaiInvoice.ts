import { DomainError } from '../../errors.js';
import { parseInstant } from '../../period.js';
import {
  type BilledClass,
  type BilledRow,
  type ChargeCategory,
  categoryOfLabel,
  MONTH_REPORT,
  QUANTITY_SCALE,
} from '../billedRow.js';
import {
  emptyRow,
  findScaled,
  findText,
  isPageObject,
  keepText,
  type PageObject,
  type PageValue,
  toPicoOrNull,
} from '../pageRow.js';
import type { DocumentContext, DocumentFormat } from './index.js';
import { timesOfMonth } from './tableFormat.js';

/** xAI's invoices ("Management API: billing") in whole cents; lines are monthly and appear only in the statement. */
export const xaiInvoices: DocumentFormat = {
  format: 'xai_invoices',
  name: 'an answer of xAI about invoices',
  looksLike: /"(?:coreInvoice|invoices)"\s*:/,
  isDocument: (document) => isPageObject(document.coreInvoice) || Array.isArray(document.invoices),
  read: (document, context) => ({ rows: invoicesOf(document).flatMap((one) => rowsOf(one, context)) }),
};

interface Invoice {
  content: PageObject;
  month: string;
}

function invoicesOf(document: PageObject): Invoice[] {
  if (isPageObject(document.coreInvoice)) {
    const month = monthOf(document) ?? monthOf(document.coreInvoice);
    if (month === undefined)
      throw new DomainError(
        'invalid_billing_file',
        'billingCycle must name the year and month of the invoice',
      );
    return [{ content: document.coreInvoice, month }];
  }
  return (document.invoices as PageValue[]).map((invoice, at) => {
    if (!isPageObject(invoice))
      throw new DomainError('invalid_billing_file', `invoices[${at}] must be an object`);
    const content = isPageObject(invoice.coreInvoice) ? invoice.coreInvoice : invoice;
    const month = monthOf(invoice) ?? monthOf(content) ?? monthOfCreation(invoice);
    if (month === undefined)
      throw new DomainError(
        'invalid_billing_file',
        `invoices[${at}] must have a billingCycle or a createTime`,
      );
    return { content, month };
  });
}

function monthOf({ billingCycle }: PageObject): string | undefined {
  if (!isPageObject(billingCycle)) return undefined;
  const year = findScaled(billingCycle.year, 0);
  const month = findScaled(billingCycle.month, 0);
  if (year === undefined || month === undefined) return undefined;
  if (year < 2000n || year > 2099n || month < 1n || month > 12n) return undefined;
  return `${year}-${String(month).padStart(2, '0')}`;
}

/** An invoice without a billing cycle (a purchase, a subscription) belongs to the month of its creation. */
function monthOfCreation(invoice: PageObject): string | undefined {
  const text = findText(invoice.createTime) ?? '';
  return /^20/.test(text) && parseInstant(text) ? text.slice(0, 7) : undefined;
}

/** Fields beside the lines that are charges. Prepaid credits are a means of payment, not a charge. */
const BESIDE: readonly [field: string, category: ChargeCategory, label: string][] = [
  ['vatCost', 'tax', 'VAT'],
  ['defaultCreditsIssued', 'credit', 'default credits'],
  ['autoCreditsIssued', 'credit', 'automatic credits'],
];

function rowsOf({ content, month }: Invoice, { fxRate }: DocumentContext): BilledRow[] {
  const lines = Array.isArray(content.lines) ? content.lines : [];
  const rows = lines.map((line, at) => {
    if (!isPageObject(line)) throw new DomainError('invalid_billing_file', `lines[${at}] must be an object`);
    return lineRow(line, month, at);
  });
  for (const [field, category, label] of BESIDE) {
    const cents = centsOf(content[field]);
    if (cents === undefined || cents === 0n) continue;
    // A credit reduces the bill with either sign of its amount.
    const amount = category === 'credit' && cents > 0n ? -cents : cents;
    rows.push({ ...rowOfMonth(month), chargeCategory: category, lineItem: label, originalAmount: amount });
  }
  return rows.map((row) => ({ ...row, amountPico: toPicoOrNull(row.originalAmount ?? 0n, 'USD', fxRate) }));
}

/** Whole or fractional cents, a number or its text, alone or as `{val}` → 1e-12 dollars. */
function centsOf(value: PageValue | undefined): bigint | undefined {
  return findScaled(isPageObject(value) ? value.val : value, QUANTITY_SCALE - 2);
}

function lineRow(line: PageObject, month: string, at: number): BilledRow {
  const amount = centsOf(line.amount);
  if (amount === undefined)
    throw new DomainError('invalid_billing_file', `lines[${at}].amount must be a number of cents`);
  const description = findText(line.description) ?? '';
  const unitType = findText(line.unitType) ?? '';
  const label = [description, unitType].filter((text) => text !== '').join(', ') || '(no description)';
  const { model, tokenClass, isBatch, isSubscription } = parseLine(description, unitType);
  const units = findScaled(line.numUnits, QUANTITY_SCALE);
  const category = isSubscription ? 'purchase' : categoryOfLabel(label, model !== null, amount);
  return {
    ...rowOfMonth(month),
    chargeCategory: category,
    lineItem: keepText(label),
    model,
    tokenClass,
    isBatch,
    quantity: units === undefined || units < 0n ? null : units,
    quantityUnit: units === undefined ? null : tokenClass === 'other' ? keepText(unitType) : 'tokens',
    originalAmount: amount,
  };
}

const MODEL = /\bgrok-[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\b/i;
const SUBSCRIPTION = /\b(?:subscription|licen[cs]es?|seats?)\b/i;

/** A line's model and class by its words; an unrecognised line is `other`. */
function parseLine(description: string, unitType: string) {
  const text = `${description} ${unitType}`;
  const model = MODEL.exec(text)?.[0]?.toLowerCase() ?? null;
  const isBatch = /\bbatch\b/i.test(text) ? true : null;
  const isSubscription = model === null && SUBSCRIPTION.test(text);
  const tokenClass = model === null ? undefined : classOf(text);
  if (tokenClass === undefined) return { model: null, tokenClass: 'other' as const, isBatch, isSubscription };
  return { model, tokenClass, isBatch, isSubscription };
}

function classOf(text: string): BilledClass | undefined {
  if (/\b(?:image|audio|video|search)\b/i.test(text)) return undefined;
  if (/\bcached?\b/i.test(text)) return 'cache_read';
  if (/\b(?:completion|output|reasoning|generated)\b/i.test(text)) return 'output';
  return /\b(?:prompt|input)\b/i.test(text) ? 'input' : undefined;
}

function rowOfMonth(month: string): BilledRow {
  const { periodStartMicros, periodEndMicros } = timesOfMonth(month);
  const times = { startMicros: periodStartMicros, endMicros: periodEndMicros };
  return { ...emptyRow({ feed: 'cost', report: MONTH_REPORT }, times), currency: 'USD' };
}
