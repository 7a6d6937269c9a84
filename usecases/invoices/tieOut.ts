import { listCountedCopies } from '../../db/billing/billCoverage.js';
import { type BilledCharge, listBilledCharges, listBilledSpans } from '../../db/billing/billedPeriod.js';
import { listObservedModelDays, type ObservedModelDay } from '../../db/billing/billingCells.js';
import { listPeerInvoices } from '../../db/invoices/comparedInvoices.js';
import type { StoredLine } from '../../db/invoices/invoiceLines.js';
import type { InvoiceTie, StoredInvoice } from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findBilledClass, QUANTITY_ONE } from '../../domain/billing/billedRow.js';
import { compare } from '../../domain/compare.js';
import { TOKEN_CLASSES, type TokenClass } from '../../domain/events/event.js';
import type { ReviewReason } from '../../domain/invoices/invoice.js';
import type { Scaled } from '../../domain/invoices/invoiceReading.js';
import {
  type BilledSum,
  convert,
  type ObservedSum,
  type PeerInvoice,
  type TiedLine,
  type TieOut,
  type TieOutLine,
  tieOut,
} from '../../domain/invoices/tieOut.js';
import { PICO_PER_USD, picoFromDecimal } from '../../domain/money.js';
import { listDays, MICROS_PER_DAY, microsOfDay, shiftDay } from '../../domain/period.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';

/** The result of a comparison. */
export interface InvoiceComparison {
  tie: InvoiceTie;
  lines: readonly TiedLine[];
  reviewReasons: readonly ReviewReason[];
  /** The whole of it; null where there was nothing to compare. */
  tieOut: TieOut | null;
  /** Dollars for one unit of the currency that was compared in. */
  comparedRate: Scaled;
  /** The provider may still restate the bill of some of the days. */
  isProvisional: boolean;
}

/** An invoice that can be compared: its account and period are known. */
export type ComparableInvoice = StoredInvoice & {
  providerAccountId: string;
  periodStart: string;
  periodEnd: string;
};

const USD = 'USD';

/**
 * Compares an invoice with the provider's bill of its days, with the other invoices of the same days, and with our calls:
 * in dollars if the invoice is in dollars or names an exchange rate, else in the bill's currency. Call it in the
 * transaction that stores the result.
 */
export async function tieOutInvoice(
  inside: OrgDb,
  invoice: ComparableInvoice,
  lines: readonly StoredLine[],
  { book, nowMicros }: { book: PriceBook; nowMicros: bigint },
): Promise<InvoiceComparison> {
  const period = {
    provider: invoice.provider,
    accountId: invoice.providerAccountId,
    fromDay: lines.reduce((first, { periodStart }) => earliest(first, periodStart), invoice.periodStart),
    toDay: lines.reduce((last, { periodEnd }) => latest(last, periodEnd), invoice.periodEnd),
  };
  const charges = await listBilledCharges(inside, period);
  const money = moneyOf(invoice, charges);
  if (!money) return withoutRate(invoice, lines);
  const nameOf = (model: string) => book.canonicalModel(invoice.provider, model);
  const spans = await listBilledSpans(inside, period);
  const observed = await listObservedModelDays(inside, period);
  const result = tieOut({
    number: numberOf(invoice),
    fromDay: invoice.periodStart,
    toDay: invoice.periodEnd,
    lines: lines.map((line) => lineOf(line, invoice, money.rate, nameOf)),
    discounts: convert(invoice.discounts ?? 0n, money.rate),
    bill: {
      rows: charges.map((charge) => rowOf(charge, money.amountOf(charge), nameOf)),
      missingDays: listDays(invoice.periodStart, shiftDay(invoice.periodEnd, 1)).filter(
        (day) => !spans.some(({ fromDay, toDay }) => fromDay <= day && day <= toDay),
      ),
    },
    observed: observed.flatMap((one) => observedOf(one, nameOf)),
    peers: await peersOf(inside, invoice, money.rate),
  });
  const copies = await listCountedCopies(inside, {
    provider: period.provider,
    fromDay: period.fromDay,
    toDay: shiftDay(period.toDay, 1),
  });
  return {
    ...{ tieOut: result, lines: result.lines, comparedRate: money.comparedRate },
    tie: {
      ...{ tie: result.tie, reason: result.reason, currency: money.currency },
      ...{ compared: result.invoiced, billed: result.billed },
    },
    reviewReasons: reviewReasonsOf(result),
    isProvisional: copies.some(
      ({ accountId, day, provisionalDays }) =>
        accountId === period.accountId &&
        nowMicros < microsOfDay(day) + BigInt(provisionalDays) * MICROS_PER_DAY,
    ),
  };
}

/** As the document names itself. */
export const numberOf = ({ number, filename }: Pick<StoredInvoice, 'number' | 'filename'>): string =>
  number ?? filename;

const earliest = (one: string, other: string | null) => (other !== null && other < one ? other : one);
const latest = (one: string, other: string | null) => (other !== null && other > one ? other : one);

interface Money {
  /** The currency in which invoice and bill are compared. */
  currency: string;
  /** Units of `currency` for one unit of the invoice's currency. */
  rate: Scaled;
  /** Dollars for one unit of `currency`. */
  comparedRate: Scaled;
  amountOf(charge: BilledCharge): Scaled | null;
}

/** Undefined where invoice and bill have no currency in common. */
function moneyOf(
  { currency, declaredFxRate }: StoredInvoice,
  charges: readonly BilledCharge[],
): Money | undefined {
  const rate = currency === USD ? PICO_PER_USD : picoFromDecimal(declaredFxRate ?? '');
  if (rate !== undefined)
    return { currency: USD, rate, comparedRate: PICO_PER_USD, amountOf: ({ amountPico }) => amountPico };
  const isOwn = currency !== null && charges.length > 0 && charges.every((one) => one.currency === currency);
  if (!isOwn) return undefined;
  const dollars = charges.reduce((sum, { amountPico }) => sum + (amountPico ?? 0n), 0n);
  const own = charges.reduce((sum, { originalAmount }) => sum + originalAmount, 0n);
  return {
    ...{ currency, rate: PICO_PER_USD, amountOf: ({ originalAmount }) => originalAmount },
    // As the bill was converted; nothing is claimed in dollars where it was not.
    comparedRate: own === 0n ? 0n : (dollars * PICO_PER_USD) / own,
  };
}

function withoutRate({ currency }: StoredInvoice, lines: readonly StoredLine[]): InvoiceComparison {
  const usage = lines.filter(({ kind }) => kind === 'usage');
  const compared = usage.reduce((sum, { amount }) => sum + amount, 0n);
  const reason = usage.length === 0 ? 'no_usage' : 'no_rate';
  return {
    tie: { tie: 'not_comparable', reason, currency, compared, billed: null },
    reviewReasons: usage.length === 0 ? [] : ['no_rate'],
    ...{ lines: [], tieOut: null, comparedRate: 0n, isProvisional: false },
  };
}

/** The differences that a person has to review. A document without usage, and one of several whose last carries the difference, need no review. */
function reviewReasonsOf({ tie, reason }: TieOut): ReviewReason[] {
  if (tie === 'contradicts') return ['contradiction'];
  return reason === 'no_bill' || reason === 'incomplete_bill' || reason === 'no_rate' ? [reason] : [];
}

function lineOf(
  line: StoredLine,
  { periodStart, periodEnd }: ComparableInvoice,
  rate: Scaled,
  nameOf: (model: string) => string,
): TieOutLine {
  return {
    ...{ line: line.line, kind: line.kind, description: line.description, quantity: line.quantity },
    model: line.model === null ? null : nameOf(line.model),
    tokenClass: line.tokenClass === null ? null : (findBilledClass(line.tokenClass) ?? null),
    unitPrice: line.unitPrice,
    amount: convert(line.amount, rate),
    fromDay: line.periodStart ?? periodStart,
    toDay: line.periodEnd ?? line.periodStart ?? periodEnd,
  };
}

function rowOf(charge: BilledCharge, amount: Scaled | null, nameOf: (model: string) => string): BilledSum {
  const { accountId, day, category, model, tokenClass, quantity } = charge;
  return {
    ...{ accountId, day, category, tokenClass, quantity, amount: amount ?? 0n },
    model: model === null ? null : nameOf(model),
  };
}

const TOKENS_OF: Record<TokenClass, (one: ObservedModelDay) => bigint> = {
  input: (one) => one.inputTokens,
  cache_read: (one) => one.cacheRead,
  cache_write_5m: (one) => one.cacheWrite5m,
  cache_write_1h: (one) => one.cacheWrite1h,
  output: (one) => one.outputTokens,
  input_audio: (one) => one.inputAudio,
  output_audio: (one) => one.outputAudio,
};

function observedOf(one: ObservedModelDay, nameOf: (model: string) => string): ObservedSum[] {
  return TOKEN_CLASSES.flatMap((tokenClass) => {
    const tokens = TOKENS_OF[tokenClass](one) * QUANTITY_ONE;
    return tokens === 0n ? [] : [{ day: one.day, model: nameOf(one.model), tokenClass, tokens }];
  });
}

/** Invoices of the same days that count beside this one. */
async function peersOf(inside: OrgDb, invoice: ComparableInvoice, rate: Scaled): Promise<PeerInvoice[]> {
  const peers = await listPeerInvoices(inside, {
    ...{ id: invoice.id, provider: invoice.provider, providerAccountId: invoice.providerAccountId },
    ...{ fromDay: invoice.periodStart, toDay: invoice.periodEnd, currency: invoice.currency },
  });
  return peers.map((peer) => ({
    ...{ id: peer.id, number: numberOf(peer), fromDay: peer.periodStart, toDay: peer.periodEnd },
    usage: convert(peer.usage, rate),
    repeated: convert(peer.repeated, rate),
    isEarlier: isBefore(peer, invoice),
  }));
}

/** Orders invoices by day of issue, then by number, then by time of upload. */
function isBefore(one: OrderedInvoice, other: OrderedInvoice): boolean {
  return (
    (compare(one.issueDate ?? '', other.issueDate ?? '') ||
      compare(one.numberNormalised ?? '', other.numberNormalised ?? '') ||
      compare(one.createdAtMicros, other.createdAtMicros) ||
      compare(one.id, other.id)) < 0
  );
}

type OrderedInvoice = Pick<StoredInvoice, 'id' | 'issueDate' | 'numberNormalised' | 'createdAtMicros'>;
