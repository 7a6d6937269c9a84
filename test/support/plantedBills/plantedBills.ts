import { AWS_BILLS } from './awsBills.js';
import { AZURE_BILLS } from './azureBills.js';
import { DOCUMENT_BILLS } from './documentBills.js';
import { FOCUS_BILLS } from './focusBills.js';
import { GOOGLE_BILLS } from './googleBills.js';
import { PLAIN_BILLS } from './plainBills.js';
import type { PlantedBill } from './planted.js';

/**
 * A generated bill of every format that is a file of charges, with the columns that its issuer documents and with what
 * makes a total go wrong: credits, refunds, tax, purchases, negative lines, split lines, use at amount zero, lines of an
 * earlier day at the end, several currencies, other services, missing optional columns, a byte order mark, quoted
 * newlines, scientific notation, twelve digits after the point.
 */
export const PLANTED_BILLS: readonly PlantedBill[] = [
  ...AWS_BILLS,
  ...AZURE_BILLS,
  ...FOCUS_BILLS,
  ...GOOGLE_BILLS,
  ...PLAIN_BILLS,
  ...DOCUMENT_BILLS,
];
