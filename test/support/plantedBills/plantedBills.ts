import { AWS_BILLS } from './awsBills.js';
import { AZURE_BILLS } from './azureBills.js';
import { DOCUMENT_BILLS } from './documentBills.js';
import { FOCUS_BILLS } from './focusBills.js';
import { GOOGLE_BILLS } from './googleBills.js';
import { PLAIN_BILLS } from './plainBills.js';
import type { PlantedBill } from './planted.js';

/**
 * A generated bill of every file format, with the columns that its issuer documents and with everything that can
 * falsify a total: credits, refunds, tax, purchases, negative lines, split lines, usage at amount zero, lines of an
 * earlier day at the end, several currencies, other services, missing optional columns, a byte order mark, quoted
 * newlines, scientific notation, twelve fraction digits.
 */
export const PLANTED_BILLS: readonly PlantedBill[] = [
  ...AWS_BILLS,
  ...AZURE_BILLS,
  ...FOCUS_BILLS,
  ...GOOGLE_BILLS,
  ...PLAIN_BILLS,
  ...DOCUMENT_BILLS,
];
