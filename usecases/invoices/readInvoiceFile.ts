import { listKnownAccounts } from '../../db/billing/billingSources.js';
import { replaceInvoiceLines } from '../../db/invoices/invoiceLines.js';
import { type InvoiceRun, recordRunStage } from '../../db/invoices/invoiceRuns.js';
import {
  findInvoice,
  type InvoiceContents,
  listReferring,
  listSameNumber,
  lockInvoice,
  lockInvoiceNumber,
  recordContents,
  recordInvoiceAtWork,
  recordSameNumber,
  type StoredInvoice,
} from '../../db/invoices/invoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { isValueRefused } from '../../db/pgErrors.js';
import { DEFAULT_ACCOUNT } from '../../domain/billing/billedRow.js';
import { DomainError } from '../../domain/errors.js';
import { checkInvoice, isAccepted } from '../../domain/invoices/checkInvoice.js';
import { effectiveLine } from '../../domain/invoices/correctLine.js';
import { INVOICE_OPEN_STATUSES, normaliseNumber } from '../../domain/invoices/invoice.js';
import type { InvoiceReading, ReadField, Scaled } from '../../domain/invoices/invoiceReading.js';
import { INVOICE_ENGINES, type InvoiceExtraction } from '../../domain/invoices/pageWords.js';
import { readInvoice } from '../../domain/invoices/readInvoice.js';
import { toStored } from '../../domain/invoices/storedReading.js';
import { parseInstant } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import { getOpenInvoiceRun } from './extractInvoiceFile.js';
import { type InvoiceDeps, readBlob } from './invoiceDeps.js';
import { rematchInvoice } from './reviewInvoice.js';

/**
 * Reads the extracted words as an invoice and stores it with all its lines, in place of an earlier reading. A repeat
 * stores the same. Errors: no_line_items; invalid_pdf for a reading that cannot be stored; not_found for a run that has
 * ended.
 */
export async function readInvoiceFile(
  { blobs, nowMicros }: InvoiceDeps & { nowMicros(): bigint },
  orgDb: OrgDb,
  runId: string,
): Promise<void> {
  const run = await getOpenInvoiceRun(orgDb, runId);
  if (run.extractionKey === null) throw new Error(`nothing is extracted of the run ${runId}`);
  const bytes = await readBlob(blobs, run.extractionKey);
  const extraction = JSON.parse(bytes.toString()) as InvoiceExtraction;
  const invoice = await findInvoice(orgDb, run.invoiceId);
  if (!invoice) throw new DomainError('not_found', 'the invoice was deleted');
  const reading = readInvoice(extraction, invoice);
  if (!reading || reading.lines.length === 0)
    throw new DomainError(
      'no_line_items',
      'no line was found in the document: upload the invoice itself, with its lines',
    );
  try {
    await orgDb.transaction(async (inside) => {
      await lockInvoiceNumber(inside, invoice.provider);
      await storeReading(inside, run, { extraction, reading, nowMicros: nowMicros() });
    });
  } catch (error) {
    if (!isValueRefused(error)) throw error;
    throw new DomainError('invalid_pdf', 'the document has a number or a date that no invoice can have', {
      cause: error,
    });
  }
}

async function storeReading(
  inside: OrgDb,
  { id: runId, invoiceId }: InvoiceRun,
  {
    extraction,
    reading,
    nowMicros,
  }: { extraction: InvoiceExtraction; reading: InvoiceReading; nowMicros: bigint },
): Promise<void> {
  const seen = await lockInvoice(inside, invoiceId);
  if (!seen) throw new DomainError('not_found', 'the invoice was deleted');
  const { lines, ...fields } = reading;
  const checks = checkInvoice(reading);
  const account = await resolveAccount(inside, seen, reading);
  const contents = contentsOf(reading, extraction, account, isAccepted(checks));
  await recordContents(inside, invoiceId, { contents, fields: toStored(fields), checks: toStored(checks) });
  await replaceInvoiceLines(
    inside,
    invoiceId,
    lines.map((line) => {
      const extracted = toStored(line);
      const effective = { ...effectiveLine(line, null), description: extracted.description.value };
      const { periodStart, periodEnd } = effective;
      return {
        ...effective,
        periodStart: dayOrNull(periodStart),
        periodEnd: dayOrNull(periodEnd),
        extracted,
      };
    }),
  );
  await linkSameNumber(inside, { ...seen, ...contents }, reading, nowMicros);
  await recordInvoiceAtWork(inside, invoiceId, 'matching');
  await recordRunStage(inside, runId, 'matching');
}

/** As declared, else as printed where bills name it so, else the provider's only account; null where several are known. */
async function resolveAccount(
  inside: OrgDb,
  { provider, declaredAccount }: { provider: Provider; declaredAccount: string | null },
  { account }: InvoiceReading,
): Promise<string | null> {
  if (declaredAccount !== null) return declaredAccount;
  const known = await listKnownAccounts(inside, provider);
  const printed = account ? toStored(account.value) : null;
  if (printed !== null && known.includes(printed)) return printed;
  if (known.length === 1) return known[0] ?? null;
  return known.length === 0 ? (printed ?? DEFAULT_ACCOUNT) : null;
}

const textOf = (field: ReadField<string> | null): string | null => (field ? toStored(field.value) : null);
const sumOf = (fields: readonly ReadField<Scaled>[]): Scaled =>
  fields.reduce((sum, { value }) => sum + value, 0n);

/** A day that is one; what is printed stays in the field. */
function dayOrNull(day: string | null): string | null {
  return day !== null && parseInstant(day)?.dateOnly ? day : null;
}

function contentsOf(
  reading: InvoiceReading,
  { pages }: InvoiceExtraction,
  providerAccountId: string | null,
  arithmeticOk: boolean,
): InvoiceContents {
  const { lines, taxes, number, total } = reading;
  const amounts = [...lines.map(({ amount }) => amount), ...(total ? [total] : [])];
  return {
    pages: pages.length,
    // Of several the one that is furthest from the file's own text.
    engine: INVOICE_ENGINES.findLast((engine) => pages.some((page) => page.engine === engine)) ?? null,
    documentKind: reading.kind,
    layout: reading.layout,
    number: textOf(number),
    numberNormalised: number ? normaliseNumber(number.value) : null,
    issuer: textOf(reading.issuer),
    account: textOf(reading.account),
    providerAccountId,
    issueDate: dayOrNull(textOf(reading.issueDate)),
    dueDate: dayOrNull(textOf(reading.dueDate)),
    periodStart: dayOrNull(textOf(reading.periodStart)),
    periodEnd: dayOrNull(textOf(reading.periodEnd)),
    currency: textOf(reading.currency),
    subtotal: reading.subtotal?.value ?? null,
    discounts: sumOf(reading.discounts),
    tax: sumOf(taxes.filter(({ isReverseCharge }) => !isReverseCharge).map(({ amount }) => amount)),
    credits: sumOf(reading.credits),
    total: total?.value ?? null,
    amountPaid: reading.amountPaid?.value ?? null,
    amountDue: reading.amountDue?.value ?? null,
    arithmeticOk,
    extractionConfidence: Math.min(1, ...amounts.map(({ confidence }) => confidence)),
  };
}

/**
 * Of several files of one invoice the first that was uploaded counts; one that replaces another by its own words counts
 * in its place. Those whose part changes thereby are compared again.
 */
async function linkSameNumber(
  inside: OrgDb,
  invoice: StoredInvoice,
  reading: InvoiceReading,
  nowMicros: bigint,
): Promise<void> {
  const { id, provider, providerAccountId, numberNormalised, documentKind, createdAtMicros } = invoice;
  const changed = new Set<string>();
  const link = async (one: string, links: { duplicateOf: string | null; replaces: string | null }) => {
    if (await recordSameNumber(inside, one, links)) changed.add(one);
  };
  for (const other of await listReferring(inside, id))
    await link(other.id, {
      duplicateOf: other.duplicateOf === id ? null : other.duplicateOf,
      replaces: other.replaces === id ? null : other.replaces,
    });
  const isCounted = documentKind !== null && documentKind !== 'receipt';
  const sameKind = async (number: string | null) =>
    isCounted && number !== null
      ? (await listSameNumber(inside, id, { provider, providerAccountId, numberNormalised: number })).filter(
          (other) => other.documentKind === documentKind,
        )
      : [];
  const replacedNumber = reading.replaces && normaliseNumber(reading.replaces.value);
  const replaced =
    documentKind === 'invoice' ? (await sameKind(replacedNumber)).find((one) => !one.duplicateOf) : undefined;
  const same = replaced ? [] : await sameKind(numberNormalised);
  const isBefore = (one: { id: string; createdAtMicros: bigint }) =>
    one.createdAtMicros < createdAtMicros || (one.createdAtMicros === createdAtMicros && one.id < id);
  const first = same.find(isBefore);
  await link(id, { duplicateOf: first?.duplicateOf ?? first?.id ?? null, replaces: replaced?.id ?? null });
  for (const later of same)
    if (!first && !later.replaces) await link(later.id, { duplicateOf: id, replaces: null });
  if (replaced) changed.add(replaced.id);
  changed.delete(id);
  for (const one of changed) {
    const other = await lockInvoice(inside, one);
    if (other && other.status !== 'failed' && !INVOICE_OPEN_STATUSES.has(other.status))
      await rematchInvoice(inside, other, { requestedBy: 'system', nowMicros });
  }
}
