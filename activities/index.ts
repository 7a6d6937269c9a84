import { createBillingImportActivities } from './billingImport.js';
import { createBillingSyncActivities } from './billingSync.js';
import { createClaimActivities } from './claims.js';
import type { ActivityDeps } from './deps.js';
import { createGapRunActivities } from './gapRun.js';
import { createInvoiceActivities } from './invoices.js';
import { createPriceFeedActivities } from './priceFeeds.js';
import { createReportActivities } from './reports.js';
import { createRepricingActivities } from './repricing.js';
import { createRetentionActivities } from './retention.js';
import { createSavingsRunActivities } from './savingsRun.js';
import { createWebhookActivities } from './webhookDelivery.js';
import { createWeightActivities } from './weights.js';

export type { ActivityDeps } from './deps.js';

/** All activities, bound to their dependencies. */
export function createActivities(deps: ActivityDeps) {
  return {
    ...createGapRunActivities(deps),
    ...createBillingImportActivities(deps),
    ...createBillingSyncActivities(deps),
    ...createRepricingActivities(deps),
    ...createRetentionActivities(deps),
    ...createWebhookActivities(deps),
    ...createSavingsRunActivities(deps),
    ...createWeightActivities(deps),
    ...createClaimActivities(deps),
    ...createInvoiceActivities(deps),
    ...createReportActivities(deps),
    ...createPriceFeedActivities(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;
