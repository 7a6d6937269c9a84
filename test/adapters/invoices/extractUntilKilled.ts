/** Starts to read the PDF that is named, for a test that kills this process meanwhile. */
import { createInvoiceExtractor } from '../../../adapters/invoices/extractor.js';

const extractor = createInvoiceExtractor({ engines: ['text'] });
setTimeout(() => process.stdout.write('reading\n'), 3_000);
await extractor.extract(process.argv[2] ?? '').catch(() => undefined);
