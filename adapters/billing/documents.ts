import { isPageObject } from '../../domain/billing/exactNumber.js';
import type { DocumentFormat } from '../../domain/billing/formats/documentFormat.js';
import { DOCUMENT_FORMATS } from '../../domain/billing/formats/documents.js';
import type { LeftOut } from '../../domain/billing/formats/tableFormat.js';
import { assertPlausible } from '../../domain/billing/rowBounds.js';
import { type BillingFormat, factsOfFormat } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { type BillingFileOptions, type BillingFileSummary, Notes, type TaggedRow } from './fileSummary.js';
import { type JsonDocument, readJsonDocuments } from './jsonDocuments.js';
import { faultAt } from './jsonEvents.js';

/** Whether a file of this format, or one that begins so where no format is named, holds documents. */
export function holdsDocuments(head: string, format: BillingFormat | undefined): boolean {
  return DOCUMENT_FORMATS.some((known) =>
    format === undefined ? known.looksLike.test(head) : known.format === format,
  );
}

/** Bills that are JSON documents, one after the other; as `readBillingFile`. */
export async function* readDocuments(
  chunks: AsyncIterable<Buffer>,
  options: BillingFileOptions,
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const notes = new Notes();
  const { fxRate, fxRateOn = () => fxRate, asked } = options;
  const context = { fxRate, fxRateOn, asked, seen: new Set<string>() };
  const leftOut: LeftOut[] = [];
  let chosen: DocumentFormat | undefined;
  for await (const document of readJsonDocuments(chunks)) {
    const { rows, leftOut: others = [] } = placed(document, () => {
      chosen = formatOf(document, options, chosen);
      const read = isPageObject(document.value) ? chosen.read(document.value, context) : { rows: [] };
      for (const row of read.rows) assertPlausible(row);
      return read;
    });
    addLeftOut(leftOut, others);
    for (const row of rows) {
      notes.row(row);
      notes.cover({ day: row.day, feed: row.feed, report: row.report, account: row.account });
    }
    if (rows.length > 0) yield rows.map((row) => ({ row, copy: 0 }));
  }
  const format = chosen?.format ?? options.format;
  if (format === undefined || (!chosen && !options.mayBeEmpty))
    throw faultAt({ line: 1, column: 1 }, 'the file holds no document');
  return notes.summary(format, new Set(), leftOut);
}

/** Error invalid_billing_file: none of the formats, another than the first document's, or another provider's. */
function formatOf(
  { value }: JsonDocument,
  options: BillingFileOptions,
  chosen: DocumentFormat | undefined,
): DocumentFormat {
  const candidates = chosen
    ? [chosen]
    : DOCUMENT_FORMATS.filter(({ format }) => options.format === undefined || format === options.format);
  const format = isPageObject(value) ? candidates.find((known) => known.isDocument(value)) : undefined;
  if (!format) {
    throw new DomainError(
      'invalid_billing_file',
      `the document is not ${candidates.map(({ name }) => name).join(' or ')}`,
    );
  }
  const { provider } = factsOfFormat(format.format);
  if (provider === undefined || provider === options.provider) return format;
  throw new DomainError(
    'invalid_billing_file',
    `this is ${format.name}, a bill of ${provider}, but the file was given as ${options.provider}'s`,
  );
}

/** Adds where the document begins to a fault that a format tells of it. */
function placed<T>({ place }: JsonDocument, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof DomainError) throw faultAt(place, error.message);
    throw error;
  }
}

function addLeftOut(sums: LeftOut[], more: readonly LeftOut[]): void {
  for (const charge of more) {
    const known = sums.find(
      (sum) => sum.chargeCategory === charge.chargeCategory && sum.currency === charge.currency,
    );
    if (!known) sums.push({ ...charge });
    else {
      known.rows += charge.rows;
      known.amount += charge.amount;
    }
  }
}
