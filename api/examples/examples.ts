import { BILL_EXAMPLES } from './bills.js';
import { CALL_EXAMPLES } from './calls.js';
import { CLAIM_EXAMPLES } from './claims.js';
import type { OperationExample } from './example.js';
import { ORGANIZATION_EXAMPLES } from './organization.js';

/** The example request of each operation, by operationId. */
export const EXAMPLES: Readonly<Record<string, OperationExample>> = {
  ...CALL_EXAMPLES,
  ...BILL_EXAMPLES,
  ...CLAIM_EXAMPLES,
  ...ORGANIZATION_EXAMPLES,
};
