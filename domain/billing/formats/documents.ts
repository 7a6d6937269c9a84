import { awsCostExplorer } from './awsCostExplorer.js';
import { azureQuery } from './azureQuery.js';
import type { DocumentFormat } from './documentFormat.js';
import { mistralUsage } from './mistralUsage.js';
import { xaiInvoices } from './xaiInvoice.js';

/** Every kind of bill that comes as JSON documents. */
export const DOCUMENT_FORMATS: readonly DocumentFormat[] = [
  azureQuery,
  awsCostExplorer,
  mistralUsage,
  xaiInvoices,
];
