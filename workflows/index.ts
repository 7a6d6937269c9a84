/** The entry of the workflow bundle: every workflow, exported under the name that starts it. */
export { billingImport } from './billingImport.js';
export { billingSync } from './billingSync.js';
export { claimLifecycle } from './claimLifecycle.js';
export { gapRun } from './gapRun.js';
export { invoicePipeline } from './invoicePipeline.js';
export { managementReport } from './managementReport.js';
export { priceFeeds } from './priceFeeds.js';
export { repricing } from './repricing.js';
export { retention } from './retention.js';
export { savingsRun } from './savingsRun.js';
export { scheduledReport } from './scheduledReport.js';
export { scheduledSync } from './scheduledSync.js';
export { webhookDelivery } from './webhookDelivery.js';
export { weightRecompute } from './weightRecompute.js';
