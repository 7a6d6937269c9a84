import type { BilledRow, ChargeCategory } from '../billedRow.js';
import type { PageObject } from '../exactNumber.js';
import type { FxRate } from '../pageRow.js';
import type { BillingFormat } from '../sources.js';
import { awsCostExplorer } from './awsCostExplorer.js';
import { azureQuery } from './azureQuery.js';
import { mistralUsage } from './mistralUsage.js';
import type { LeftOut } from './tableFormat.js';
import { xaiInvoices } from './xaiInvoice.js';

/** What the documents of one file have in common while they are read one after the other. */
export interface DocumentContext {
  /** Given with the file; a rate on the bill itself goes before it. */
  fxRate: FxRate;
  /** The same for one day of the bill, where what was given differs by the day. */
  fxRateOn(day: string): FxRate;
  /** What the answers were asked for, where a connection asked and they do not say it themselves. */
  asked: ChargeCategory | undefined;
  /** Names of what was told already, kept by the format as it likes. */
  seen: Set<string>;
}

/** A kind of bill that comes as JSON documents, each of which makes sense as a whole. */
export interface DocumentFormat {
  readonly format: BillingFormat;
  /** With its article, for sentences. */
  readonly name: string;
  /** Whether the beginning of a file, whose documents may be cut, looks like this format. */
  readonly looksLike: RegExp;
  isDocument(document: PageObject): boolean;
  /** Error invalid_billing_file naming the field. */
  read(document: PageObject, context: DocumentContext): { rows: BilledRow[]; leftOut?: LeftOut[] };
}

/** Every kind of bill that comes as JSON documents. */
export const DOCUMENT_FORMATS: readonly DocumentFormat[] = [
  azureQuery,
  awsCostExplorer,
  mistralUsage,
  xaiInvoices,
];
