import { startOpenAiBilling } from '../../fakes/billing/openAiBilling.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { testConnectors } from '../../support/connectors.js';
import { ADMIN_KEYS, openaiTruth } from '../../support/fetchedBills.js';
import { ALERT_OPERATIONS } from './operations/alerts.js';
import { ASK_OPERATIONS } from './operations/ask.js';
import { BILL_OPERATIONS } from './operations/bills.js';
import { CALL_OPERATIONS } from './operations/calls.js';
import { CLAIM_ANSWER_OPERATIONS } from './operations/claimAnswers.js';
import { CLAIM_OPERATIONS } from './operations/claims.js';
import { DEMO_OPERATIONS } from './operations/demo.js';
import { DRAFT_OPERATIONS } from './operations/drafts.js';
import { ENFORCEMENT_OPERATIONS } from './operations/enforcement.js';
import { EVIDENCE_OPERATIONS } from './operations/evidence.js';
import { FINANCIAL_OPERATIONS } from './operations/financial.js';
import { INVOICE_OPERATIONS } from './operations/invoices.js';
import type { Operation, OperationsPlace } from './operations/operation.js';
import { ORGANIZATION_OPERATIONS } from './operations/organization.js';
import { POLICY_OPERATIONS } from './operations/policies.js';
import { PERIOD_OPERATIONS, PRICE_OPERATIONS } from './operations/prices.js';
import { RECONCILIATION_OPERATIONS } from './operations/reconciliation.js';
import { REPORT_OPERATIONS } from './operations/reports.js';
import { SAVINGS_OPERATIONS } from './operations/savings.js';
import { SESSION_OPERATIONS } from './operations/sessions.js';
import { WEBHOOK_OPERATIONS } from './operations/webhooks.js';

/**
 * Every operation of openapi.json by its operationId: how to build a valid request, who may send it, and its answer.
 * Tests of all operations use them; one without an entry fails the access matrix.
 */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  ...CALL_OPERATIONS,
  ...PRICE_OPERATIONS,
  ...PERIOD_OPERATIONS,
  ...BILL_OPERATIONS,
  ...RECONCILIATION_OPERATIONS,
  ...ORGANIZATION_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...ENFORCEMENT_OPERATIONS,
  ...SAVINGS_OPERATIONS,
  ...ALERT_OPERATIONS,
  ...FINANCIAL_OPERATIONS,
  ...DRAFT_OPERATIONS,
  ...CLAIM_OPERATIONS,
  ...CLAIM_ANSWER_OPERATIONS,
  ...EVIDENCE_OPERATIONS,
  ...INVOICE_OPERATIONS,
  ...REPORT_OPERATIONS,
  ...SESSION_OPERATIONS,
  ...DEMO_OPERATIONS,
  ...ASK_OPERATIONS,
};

/** The API with a loopback provider behind its connections. */
export async function startOperationsPlace(
  options: Parameters<typeof startTestApi>[0] = {},
): Promise<OperationsPlace & { close(): Promise<void> }> {
  const openai = await startOpenAiBilling({ truth: openaiTruth('org-loop'), adminKey: ADMIN_KEYS.openai });
  const api: TestApi = await startTestApi({
    connectors: testConnectors({ openai: openai.origin }),
    // Who may see a page does not depend on how it is drawn.
    renderInvoicePage: async () => Buffer.from('PNG'),
    ...options,
  });
  return {
    api,
    openai,
    close: async () => {
      await api.close();
      await openai.close();
    },
  };
}
