import { awsCostExplorer } from './awsCostExplorer.js';
import { azureQuery } from './azureQuery.js';
import type { DocumentFormat } from './documentFormat.js';

/** Every kind of bill that comes as JSON documents. */
export const DOCUMENT_FORMATS: readonly DocumentFormat[] = [azureQuery, awsCostExplorer];
