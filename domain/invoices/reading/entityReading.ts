import { picoFromDecimal } from '../../money.js';
import { parseInstant } from '../../period.js';
import type { InvoiceReading, Maybe, ReadField, Scaled, TaxReading } from '../invoiceReading.js';
import type { ExtractedEntity } from '../pageWords.js';
import type { DraftLine } from './draftLines.js';
import { currenciesIn, type DecimalMark, ONE, parseNumber } from './printedNumber.js';

/** An invoice as read from Document AI's own fields. Its words are read like those of any other engine. */
export interface EntityReading {
  lines: DraftLine[];
  fields: Pick<InvoiceReading, 'number' | 'issuer' | 'issueDate' | 'dueDate' | 'currency'>;
  sums: Pick<InvoiceReading, 'subtotal' | 'taxes' | 'total' | 'amountPaid' | 'amountDue'>;
}

export function readEntities(
  entities: readonly ExtractedEntity[],
  mark: DecimalMark | undefined,
): EntityReading | undefined {
  const found = (type: string) => entities.find((entity) => entity.type === type);
  const amount = (type: string) => amountOf(found(type), mark);
  const text = (type: string) => textOf(found(type));
  const lines = entities
    .filter((entity) => entity.type === 'line_item')
    .flatMap((item) => lineOf(item, mark));
  if (lines.length === 0) return undefined;
  return {
    lines,
    fields: {
      number: text('invoice_id'),
      issuer: text('supplier_name'),
      issueDate: dayOf(found('invoice_date')),
      dueDate: dayOf(found('due_date')),
      currency: currencyOf(found('currency') ?? found('total_amount')),
    },
    sums: {
      subtotal: amount('net_amount'),
      taxes: taxesOf(entities, mark),
      total: amount('total_amount'),
      amountPaid: amount('amount_paid_since_last_invoice'),
      amountDue: null,
    },
  };
}

function lineOf(item: ExtractedEntity, mark: DecimalMark | undefined): DraftLine[] {
  const part = (name: string) => item.properties.find((property) => property.type === `line_item/${name}`);
  const amount = amountOf(part('amount'), mark);
  if (amount === null) return [];
  const described = part('description') ?? part('product_code') ?? item;
  return [
    {
      description: fieldOf(described, described.text.replace(/\s+/g, ' ').trim()),
      quantity: amountOf(part('quantity'), mark),
      unitPrice: amountOf(part('unit_price'), mark),
      amount,
      taxRate: null,
      periodStart: null,
      periodEnd: null,
      group: null,
    },
  ];
}

/** Each tax with its parts, or the total tax amount if no parts are stated. */
function taxesOf(entities: readonly ExtractedEntity[], mark: DecimalMark | undefined): TaxReading[] {
  const taxes = entities
    .filter((entity) => entity.type === 'vat')
    .flatMap((entity): TaxReading[] => {
      const part = (name: string) => entity.properties.find((property) => property.type === `vat/${name}`);
      const amount = amountOf(part('tax_amount'), mark);
      const rate = amountOf(part('tax_rate'), mark);
      const base = amountOf(part('amount'), mark);
      const name = entity.text.replace(/\s+/g, ' ').trim();
      return amount
        ? [{ name, rate: rate?.value ?? null, base: base?.value ?? null, amount, isReverseCharge: false }]
        : [];
    });
  if (taxes.length > 0) return taxes;
  const total = entities.find((entity) => entity.type === 'total_tax_amount');
  const amount = amountOf(total, mark);
  return amount ? [{ name: 'Tax', rate: null, base: null, amount, isReverseCharge: false }] : [];
}

function fieldOf<T>(entity: ExtractedEntity, value: T): ReadField<T> {
  return {
    value,
    text: entity.text.trim(),
    box: entity.box,
    confidence: entity.confidence,
    engine: 'document_ai',
  };
}

/** The printed number; the engine's own decimal if the print is ambiguous or no number. */
function amountOf(entity: ExtractedEntity | undefined, mark: DecimalMark | undefined): Maybe<Scaled> {
  if (!entity) return null;
  const printed = parseNumber(entity.text.trim(), mark);
  const stated = entity.normalized === null ? undefined : picoFromDecimal(entity.normalized);
  const value = printed && !printed.isAmbiguous ? printed.value : (stated ?? printed?.value);
  return value === undefined || value > MOST ? null : fieldOf(entity, value);
}

/** No invoice has a larger amount: the number is an account's. */
const MOST: Scaled = 10n ** 15n * ONE;

function textOf(entity: ExtractedEntity | undefined): Maybe<string> {
  const text = entity?.text.replace(/\s+/g, ' ').trim() ?? '';
  return entity && text !== '' ? fieldOf(entity, text) : null;
}

function dayOf(entity: ExtractedEntity | undefined): Maybe<string> {
  const day = entity?.normalized ?? '';
  return entity && parseInstant(day)?.dateOnly ? fieldOf(entity, day) : null;
}

function currencyOf(entity: ExtractedEntity | undefined): Maybe<string> {
  if (!entity) return null;
  const stated = /^[A-Z]{3}$/.exec(entity.normalized ?? '')?.[0];
  const code =
    stated ??
    /\b[A-Z]{3}\b/.exec(entity.text)?.[0] ??
    currenciesIn(`${entity.text.trim()}1`)[0] ??
    currenciesIn(entity.text)[0];
  return code === undefined ? null : fieldOf(entity, code);
}
