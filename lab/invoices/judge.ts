import { createInvoiceExtractor } from '../../adapters/invoices/extractor.js';
import { DomainError } from '../../domain/errors.js';
import { checkInvoice } from '../../domain/invoices/checkInvoice.js';
import type { InvoiceCheck, InvoiceReading } from '../../domain/invoices/invoiceReading.js';
import { readInvoice } from '../../domain/invoices/readInvoice.js';
import type { Provider } from '../../domain/providers.js';
import { generateInvoicesFirst } from '../generators/invoicesFirst/generateInvoicesFirst.js';
import { generateInvoicesSecond } from '../generators/invoicesSecond/generateInvoicesSecond.js';
import type { GeneratedInvoice } from '../generators/invoiceTruth.js';
import { watchChildMemory } from './childMemory.js';
import { compareReading, type Verdict } from './compareReading.js';
import { scanInvoice } from './scan.js';

export const INVOICE_GENERATORS = { first: generateInvoicesFirst, second: generateInvoicesSecond };
export type InvoiceGenerator = keyof typeof INVOICE_GENERATORS;

/** Dots per inch of the scan; 0: the PDF as it is. */
export const INVOICE_KINDS = { digital: 0, scan150: 150, scan200: 200, scan300: 300 } as const;
export type InvoiceKindName = keyof typeof INVOICE_KINDS;

export interface JudgedInvoice {
  name: string;
  supplier: string;
  features: readonly string[];
  pages: number;
  verdict: Verdict;
  /** Time of extraction and reading, without generating the document. */
  ms: number;
  /** The extractor's error code; null if the document was read. */
  failure: string | null;
}

export interface JudgedSet {
  generator: InvoiceGenerator;
  kind: InvoiceKindName;
  invoices: JudgedInvoice[];
  /** Peak resident memory of one child, bytes. */
  childPeakBytes: number;
}

export interface JudgeOptions {
  generator: InvoiceGenerator;
  kind: InvoiceKindName;
  seeds: readonly number[];
  /** Documents of each seed. */
  count: number;
  onInvoice?: (invoice: JudgedInvoice) => void;
}

/** Reads generated documents one after the other, each in a child like the product, and compares them with the truth. */
export async function judgeInvoices(options: JudgeOptions): Promise<JudgedSet> {
  const { generator, kind, seeds, count } = options;
  const extractor = createInvoiceExtractor({ engines: ['text', 'tesseract'], extractionsAtOnce: 1 });
  const memory = watchChildMemory();
  const invoices: JudgedInvoice[] = [];
  for (const seed of seeds) {
    let scans = 0;
    for await (const generated of INVOICE_GENERATORS[generator](seed, count)) {
      const dpi = INVOICE_KINDS[kind];
      const pdf =
        dpi === 0 ? generated.pdf : await scanInvoice(generated.pdf, { dpi, seed: seed * 1_000 + scans });
      scans += 1;
      const judged = await judgeOne(generated, pdf, extractor);
      invoices.push(judged);
      options.onInvoice?.(judged);
    }
  }
  return { generator, kind, invoices, childPeakBytes: memory.stop() };
}

async function judgeOne(
  { name, truth }: GeneratedInvoice,
  pdf: Buffer,
  extractor: ReturnType<typeof createInvoiceExtractor>,
): Promise<JudgedInvoice> {
  const started = performance.now();
  let reading: InvoiceReading | undefined;
  let checks: InvoiceCheck[] = [];
  let failure: string | null = null;
  try {
    const extraction = await extractor.extract(new Uint8Array(pdf));
    reading = readInvoice(extraction, { provider: truth.supplier as Provider });
    if (reading) checks = checkInvoice(reading);
    else failure = 'no_line_items';
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    failure = error.code;
  }
  const ms = performance.now() - started;
  const verdict = compareReading(truth, reading, checks);
  return {
    name,
    supplier: truth.supplier,
    features: truth.features,
    pages: truth.pages,
    verdict,
    ms,
    failure,
  };
}
