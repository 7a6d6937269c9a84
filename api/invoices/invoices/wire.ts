import { z } from 'zod';
import type { StoredInvoice } from '../../../db/invoices/invoices.js';
import { publicId } from '../../../domain/ids.js';
import {
  INVOICE_FAILURES,
  INVOICE_STATUSES,
  INVOICE_TIE_REASONS,
  REVIEW_REASONS,
} from '../../../domain/invoices/invoice.js';
import { INVOICE_KINDS } from '../../../domain/invoices/invoiceReading.js';
import { INVOICE_ENGINES } from '../../../domain/invoices/pageWords.js';
import { TIES } from '../../../domain/invoices/tieOut.js';
import { usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { PROVIDERS } from '../../../domain/providers.js';
import type { InvoiceWithRun, WholeInvoice } from '../../../usecases/invoices/storedInvoice.js';
import { csvList } from '../../csv.js';
import { offsetParameters, pageFields } from '../../paging.js';
import { filterParameter, monthParameter, wordParameter } from '../../query.js';
import {
  amountField,
  CHARS_MAX,
  confidence,
  INVOICES_PATH,
  invoiceParams,
  lineSchema,
  maybeAmount,
  maybeText,
  numberOrNull,
  presentAmount,
  presentLine,
  textField,
} from '../lines/wire.js';
import { invoiceRunSchema, presentInvoiceRun } from '../runs/wire.js';

/** The form of an upload, for the documents; the handler reads it as it streams. */
export const invoiceForm = z
  .strictObject({
    file: z.string().meta({ format: 'binary', description: 'The invoice as a PDF' }),
    provider: z.enum(PROVIDERS),
    account: z
      .string()
      .optional()
      .meta({ description: 'The account at the provider, where the document does not name it as bills do' }),
    fx_rate: z.string().optional().meta({ description: 'US dollars for one unit of the invoice’s currency' }),
  })
  .meta({ id: 'InvoiceForm' });

export const listInvoicesQuery = z.object({
  status: wordParameter(INVOICE_STATUSES).optional(),
  provider: filterParameter.optional(),
  period: monthParameter.optional().meta({
    description:
      'UTC month, YYYY-MM: invoices whose service period has days in it, else whose issue date has',
  }),
  ...offsetParameters(),
});

const status = z.enum(INVOICE_STATUSES);

const uploadedFields = {
  invoice_id: z.string(),
  status,
  provider: z.string(),
  filename: z.string(),
  sha256: z.string(),
  size_bytes: z.int(),
  created_at: z.string(),
  status_url: z.string(),
};

export const uploadedSchema = z
  .strictObject({
    ...uploadedFields,
    duplicate: z
      .literal(true)
      .optional()
      .meta({ description: 'The same file of the provider was uploaded before: this is that invoice' }),
  })
  .meta({ id: 'UploadedInvoice' });

const taxSchema = z.strictObject({
  name: z.string(),
  rate: z.number().nullable().meta({ description: 'Percent' }),
  base: z.number().nullable(),
  amount: amountField,
  is_reverse_charge: z.boolean(),
});

const fieldsSchema = z
  .strictObject({
    number: textField.nullable(),
    issuer: textField.nullable(),
    account: textField.nullable(),
    issue_date: textField.nullable(),
    due_date: textField.nullable(),
    period_start: textField.nullable(),
    period_end: textField.nullable(),
    currency: textField.nullable(),
    subtotal: amountField.nullable(),
    discounts: z.array(amountField),
    taxes: z.array(taxSchema),
    credits: z.array(amountField),
    total: amountField.nullable(),
    amount_paid: amountField.nullable(),
    amount_due: amountField.nullable(),
    replaces: textField.nullable(),
  })
  .meta({ id: 'InvoiceFields' });

const checkSchema = z
  .strictObject({
    check: z.string(),
    line: z.int().nullable().meta({ description: 'Null: the document as a whole' }),
    ok: z.boolean(),
    expected: z.number().nullable(),
    found: z.number().nullable(),
    difference: z.number().nullable(),
    message: z.string(),
  })
  .meta({ id: 'InvoiceCheck' });

const tieSchema = z
  .strictObject({
    tie: z.enum(TIES),
    reason: z.enum(INVOICE_TIE_REASONS).nullable().meta({ description: 'Why it is not comparable' }),
    currency: z.string().nullable(),
    invoiced: z.number().nullable().meta({ description: 'Of the charges that a bill can show' }),
    billed: z.number().nullable(),
    difference: z.number().nullable(),
  })
  .nullable()
  .meta({ description: 'The comparison with the provider’s bill of the period; null before it' });

const listedFields = {
  id: z.string().meta({ example: 'inv_0199f3a2c4d57e3a8f00112233445566' }),
  ...uploadedFields,
  provider_account_id: z
    .string()
    .nullable()
    .meta({ description: 'As bills name it; null until it is known' }),
  fx_rate: z.number().nullable(),
  failure_code: z.enum(INVOICE_FAILURES).nullable(),
  failure_message: z.string().nullable(),
  review_reasons: z.array(z.enum(REVIEW_REASONS)),
  pages: z.int().nullable(),
  engine: z.enum(INVOICE_ENGINES).nullable(),
  extraction_confidence: confidence.nullable().meta({ description: 'The lowest of its amounts' }),
  document_kind: z.enum(INVOICE_KINDS).nullable(),
  number: z.string().nullable(),
  issuer: z.string().nullable(),
  account: z.string().nullable().meta({ description: 'As printed' }),
  issue_date: z.string().nullable(),
  due_date: z.string().nullable(),
  period_start: z.string().nullable(),
  period_end: z.string().nullable().meta({ description: 'Inclusive' }),
  currency: z.string().nullable(),
  totals: z
    .strictObject({
      subtotal: z.number().nullable(),
      discounts: z.number().nullable(),
      tax: z.number().nullable(),
      credits: z.number().nullable(),
      total: z.number().nullable(),
      amount_paid: z.number().nullable(),
      amount_due: z.number().nullable(),
    })
    .meta({ description: 'As printed, in the invoice’s currency' }),
  arithmetic_ok: z.boolean().nullable().meta({ description: 'Whether every sum of the document agrees' }),
  confirmed: z
    .strictObject({ at: z.string(), by: z.string(), note: z.string().nullable() })
    .nullable()
    .meta({ description: 'Who holds the reading for right and the document for wrong' }),
  duplicate_of: z
    .string()
    .nullable()
    .meta({ description: 'The first file of the same invoice, which counts' }),
  replaces: z.string().nullable(),
  replaced_by: z.string().nullable(),
  tie_out: tieSchema,
  run: invoiceRunSchema.nullable().meta({ description: 'The newest run' }),
  processed_at: z.string().nullable(),
  file_url: z.string(),
};

export const listedInvoiceSchema = z.strictObject(listedFields).meta({ id: 'ListedInvoice' });

export const invoiceSchema = z
  .strictObject({
    ...listedFields,
    fields: fieldsSchema.nullable().meta({ description: 'Null until the file is read' }),
    checks: z.array(checkSchema),
    lines: z.array(lineSchema),
  })
  .meta({ id: 'Invoice' });

export const listInvoicesResponse = z.strictObject({
  invoices: z.array(listedInvoiceSchema),
  ...pageFields,
});

export const confirmBody = z
  .strictObject({ note: z.string().trim().max(CHARS_MAX).nullish() })
  .meta({ id: 'InvoiceConfirmation' });

export const pageParams = z.object({
  ...invoiceParams.shape,
  page: z
    .string()
    .regex(/^[1-9][0-9]{0,3}$/, { error: 'must be the number of a page, from 1' })
    .transform(Number)
    .meta({ type: 'integer', minimum: 1, example: 1 }),
});

const urlOf = (id: string) => `${INVOICES_PATH}/${publicId('inv', id)}`;
const publicOrNull = (id: string | null) => (id === null ? null : publicId('inv', id));

function presentUploaded(invoice: StoredInvoice) {
  return {
    invoice_id: publicId('inv', invoice.id),
    status: invoice.status,
    provider: invoice.provider,
    filename: invoice.filename,
    sha256: invoice.sha256,
    size_bytes: invoice.sizeBytes,
    created_at: isoFromMicros(invoice.createdAtMicros),
    status_url: urlOf(invoice.id),
  };
}

export function presentUpload(invoice: StoredInvoice, existing: boolean): z.output<typeof uploadedSchema> {
  return { ...presentUploaded(invoice), ...(existing ? { duplicate: true as const } : {}) };
}

function presentFields(fields: NonNullable<StoredInvoice['fields']>): z.output<typeof fieldsSchema> {
  return {
    number: maybeText(fields.number),
    issuer: maybeText(fields.issuer),
    account: maybeText(fields.account),
    issue_date: maybeText(fields.issueDate),
    due_date: maybeText(fields.dueDate),
    period_start: maybeText(fields.periodStart),
    period_end: maybeText(fields.periodEnd),
    currency: maybeText(fields.currency),
    subtotal: maybeAmount(fields.subtotal),
    discounts: fields.discounts.map(presentAmount),
    taxes: fields.taxes.map(({ name, rate, base, amount, isReverseCharge }) => ({
      name,
      rate: numberOrNull(rate),
      base: numberOrNull(base),
      amount: presentAmount(amount),
      is_reverse_charge: isReverseCharge,
    })),
    credits: fields.credits.map(presentAmount),
    total: maybeAmount(fields.total),
    amount_paid: maybeAmount(fields.amountPaid),
    amount_due: maybeAmount(fields.amountDue),
    replaces: maybeText(fields.replaces),
  };
}

function presentTie(invoice: StoredInvoice): z.output<typeof tieSchema> {
  const { tie, tieReason, tieCurrency, comparedAmount, billedAmount } = invoice;
  if (tie === null) return null;
  return {
    tie,
    reason: tieReason,
    currency: tieCurrency,
    invoiced: usdNumberOrNull(comparedAmount),
    billed: usdNumberOrNull(billedAmount),
    difference:
      comparedAmount === null || billedAmount === null
        ? null
        : usdNumberFromPico(comparedAmount - billedAmount),
  };
}

function presentTotals(invoice: StoredInvoice) {
  return {
    subtotal: usdNumberOrNull(invoice.subtotal),
    discounts: usdNumberOrNull(invoice.discounts),
    tax: usdNumberOrNull(invoice.tax),
    credits: usdNumberOrNull(invoice.credits),
    total: usdNumberOrNull(invoice.total),
    amount_paid: usdNumberOrNull(invoice.amountPaid),
    amount_due: usdNumberOrNull(invoice.amountDue),
  };
}

export function presentListedInvoice({ invoice, run }: InvoiceWithRun): z.output<typeof listedInvoiceSchema> {
  return {
    id: publicId('inv', invoice.id),
    ...presentUploaded(invoice),
    provider_account_id: invoice.providerAccountId ?? invoice.declaredAccount,
    fx_rate: numberOrNull(invoice.declaredFxRate),
    failure_code: invoice.failureCode,
    failure_message: invoice.failureMessage,
    review_reasons: invoice.reviewReasons,
    pages: invoice.pages,
    engine: invoice.engine,
    extraction_confidence: invoice.extractionConfidence,
    document_kind: invoice.documentKind,
    number: invoice.number,
    issuer: invoice.issuer,
    account: invoice.account,
    issue_date: invoice.issueDate,
    due_date: invoice.dueDate,
    period_start: invoice.periodStart,
    period_end: invoice.periodEnd,
    currency: invoice.currency,
    totals: presentTotals(invoice),
    arithmetic_ok: invoice.arithmeticOk,
    confirmed:
      invoice.confirmedAtMicros === null
        ? null
        : {
            at: isoFromMicros(invoice.confirmedAtMicros),
            by: invoice.confirmedBy ?? '',
            note: invoice.confirmNote,
          },
    duplicate_of: publicOrNull(invoice.duplicateOf),
    replaces: publicOrNull(invoice.replaces),
    replaced_by: publicOrNull(invoice.replacedBy),
    tie_out: presentTie(invoice),
    run: run ? presentInvoiceRun(run) : null,
    processed_at: isoOrNull(invoice.processedAtMicros),
    file_url: `${urlOf(invoice.id)}/file`,
  };
}

export function presentInvoice(whole: WholeInvoice): z.output<typeof invoiceSchema> {
  const { fields, checks } = whole.invoice;
  return {
    ...presentListedInvoice(whole),
    fields: fields && presentFields(fields),
    checks: checks.map(({ check, line, ok, expected, found, difference, message }) => ({
      check,
      line,
      ok,
      expected: numberOrNull(expected),
      found: numberOrNull(found),
      difference: numberOrNull(difference),
      message,
    })),
    lines: whole.lines.map(presentLine),
  };
}

/** The list as CSV. */
export const invoicesCsv = csvList('invoices', 'invoices', listedInvoiceSchema);
