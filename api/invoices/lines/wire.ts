import { z } from 'zod';
import type { StoredLine } from '../../../db/invoices/invoiceLines.js';
import { LINE_KINDS, type ReadField, type Scaled } from '../../../domain/invoices/invoiceReading.js';
import { INVOICE_ENGINES } from '../../../domain/invoices/pageWords.js';
import type { Stored } from '../../../domain/invoices/storedReading.js';
import { LINE_MATCHES } from '../../../domain/invoices/tieOut.js';
import { picoFromDecimal, usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { isoOrNull } from '../../../domain/period.js';
import { publicIdText } from '../../query.js';

export const UPLOAD_PATH = '/api/v1/reconciliation/invoice';
export const INVOICES_PATH = '/api/v1/reconciliation/invoices';

export const INVOICE_READ = { scope: 'billing:read', workspace: 'refused' } as const;
export const INVOICE_WRITE = { scope: 'billing:write', workspace: 'refused' } as const;
export const INVOICE_TAG = 'Invoices';

export const invoiceParams = z.object({
  id: publicIdText('an invoice').meta({ example: 'inv_0199f3a2c4d57e3a8f00112233445566' }),
});

const boxSchema = z
  .strictObject({
    page: z.int(),
    x: z.number(),
    y: z.number(),
    width: z.number(),
    height: z.number(),
  })
  .nullable()
  .meta({ description: 'In points (1/72 inch) from the upper left corner of the upright page' });

export const confidence = z.number().min(0).max(1);

const fieldOf = <S extends z.ZodType>(value: S) =>
  z.strictObject({
    value,
    text: z.string().meta({ description: 'As printed' }),
    box: boxSchema,
    confidence,
    engine: z.enum(INVOICE_ENGINES),
  });
export const textField = fieldOf(z.string()).meta({ id: 'InvoiceTextField' });
export const amountField = fieldOf(z.number()).meta({ id: 'InvoiceAmountField' });

export const lineSchema = z
  .strictObject({
    line: z.int().meta({ description: 'From 1, in the order of the document' }),
    description: z.string(),
    quantity: z.number().nullable(),
    unit_price: z.number().nullable(),
    amount: z.number().meta({ description: 'Before tax, with its sign' }),
    tax: z.number().nullable().meta({ description: 'As a person wrote it' }),
    period_start: z.string().nullable(),
    period_end: z.string().nullable().meta({ description: 'Inclusive' }),
    kind: z.enum(LINE_KINDS),
    model: z.string().nullable(),
    token_class: z.string().nullable(),
    extracted: z
      .strictObject({
        description: textField,
        quantity: amountField.nullable(),
        unit_price: amountField.nullable(),
        amount: amountField,
        tax_rate: amountField.nullable(),
        period_start: textField.nullable(),
        period_end: textField.nullable(),
      })
      .meta({ description: 'As it was read' }),
    corrected: z
      .strictObject({
        description: z.string().optional(),
        quantity: z.number().nullable().optional(),
        unit_price: z.number().nullable().optional(),
        amount: z.number().optional(),
        tax: z.number().nullable().optional(),
      })
      .nullable()
      .meta({ description: 'What a person wrote instead, by field; it counts' }),
    corrected_at: z.string().nullable(),
    corrected_by: z.string().nullable(),
    match_status: z.enum(LINE_MATCHES).nullable().meta({ description: 'Null: not compared' }),
    matched_amount: z
      .number()
      .nullable()
      .meta({ description: 'Billed for the line, in the tie-out’s currency' }),
    difference: z.number().nullable(),
    observed_tokens: z.number().nullable().meta({ description: 'Of our calls that the line charges for' }),
  })
  .meta({ id: 'InvoiceLine' });

export const CHARS_MAX = 2_000;
const NUMBER_MAX = 1e15;
const amountInput = z
  .number()
  .min(-NUMBER_MAX, { error: `must be ${-NUMBER_MAX} at least` })
  .max(NUMBER_MAX, { error: `must be ${NUMBER_MAX} at most` });

export const lineParams = z.object({
  ...invoiceParams.shape,
  line: z
    .string()
    .regex(/^[1-9][0-9]{0,5}$/, { error: 'must be the number of a line, from 1' })
    .transform(Number)
    .meta({ type: 'integer', minimum: 1, example: 1 }),
});

export const correctLineBody = z
  .strictObject({
    description: z.string().trim().min(1, { error: 'must not be empty' }).max(CHARS_MAX).optional(),
    quantity: amountInput.nullable().optional(),
    unit_price: amountInput.nullable().optional(),
    amount: amountInput.optional().meta({ description: 'Before tax, with its sign' }),
    tax: amountInput.nullable().optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { error: 'must name what is corrected' })
  .meta({ id: 'InvoiceLineCorrection', description: 'Fields that are left out stay as they are' });

const numberOf = (decimal: string): number => usdNumberFromPico(picoFromDecimal(decimal) ?? 0n);
export const numberOrNull = (decimal: string | null): number | null =>
  decimal === null ? null : numberOf(decimal);

type StoredAmount = Stored<ReadField<Scaled>>;

function presentText({ value, text, box, confidence: certain, engine }: Stored<ReadField<string>>) {
  return { value, text, box, confidence: certain, engine };
}
export const maybeText = (field: Stored<ReadField<string>> | null) => field && presentText(field);
export const presentAmount = ({ value, ...field }: StoredAmount) =>
  presentField({ ...field, value: numberOf(value) });
const presentField = ({ value, text, box, confidence: certain, engine }: ReadField<number>) => ({
  value,
  text,
  box,
  confidence: certain,
  engine,
});
export const maybeAmount = (field: StoredAmount | null) => field && presentAmount(field);

function presentCorrected(corrected: NonNullable<StoredLine['corrected']>) {
  const { description, quantity, unitPrice, amount, tax } = corrected;
  return {
    ...(description === undefined ? {} : { description }),
    ...(quantity === undefined ? {} : { quantity: numberOrNull(quantity) }),
    ...(unitPrice === undefined ? {} : { unit_price: numberOrNull(unitPrice) }),
    ...(amount === undefined ? {} : { amount: numberOf(amount) }),
    ...(tax === undefined ? {} : { tax: numberOrNull(tax) }),
  };
}

export function presentLine(line: StoredLine): z.output<typeof lineSchema> {
  const { extracted } = line;
  return {
    line: line.line,
    description: line.description,
    quantity: usdNumberOrNull(line.quantity),
    unit_price: usdNumberOrNull(line.unitPrice),
    amount: usdNumberFromPico(line.amount),
    tax: usdNumberOrNull(line.tax),
    period_start: line.periodStart,
    period_end: line.periodEnd,
    kind: line.kind,
    model: line.model,
    token_class: line.tokenClass,
    extracted: {
      description: presentText(extracted.description),
      quantity: maybeAmount(extracted.quantity),
      unit_price: maybeAmount(extracted.unitPrice),
      amount: presentAmount(extracted.amount),
      tax_rate: maybeAmount(extracted.taxRate),
      period_start: maybeText(extracted.periodStart),
      period_end: maybeText(extracted.periodEnd),
    },
    corrected: line.corrected && presentCorrected(line.corrected),
    corrected_at: isoOrNull(line.correctedAtMicros),
    corrected_by: line.correctedBy,
    match_status: line.matchStatus,
    matched_amount: usdNumberOrNull(line.matchedAmount),
    difference: usdNumberOrNull(line.difference),
    observed_tokens: usdNumberOrNull(line.observedTokens),
  };
}
