import type { Logger } from 'pino';
import type { BillingConnectors } from '../adapters/billing/connectors.js';
import type { BillingFileReader } from '../adapters/billing/file.js';
import type { BlobStore } from '../adapters/blobs/blobStore.js';
import type { InvoiceExtractor } from '../adapters/invoices/extractor.js';
import type { DeliverWebhook } from '../adapters/outbound/deliverWebhook.js';
import type { RetentionLimits } from '../domain/installation/retention.js';
import type { SecretKeys } from '../platform/secretKeys.js';
import type { SyncPace } from '../usecases/billing/fetchChunk.js';
import type { EvidenceDeps } from '../usecases/claims/freezeEvidence.js';
import type { Prices } from '../usecases/pricing/priceBookHolder.js';
import type { UseCaseDeps } from '../usecases/useCaseDeps.js';
import type { WebhookPace } from '../usecases/webhooks/sendDueWebhooks.js';

/** What the effects need of the process; made in bin/. */
export interface ActivityDeps extends UseCaseDeps {
  prices: Prices;
  /** Reads bills: adapters/billing/file.ts. */
  readBillingFile: BillingFileReader;
  /** Reads stored pages of bills again, for the evidence of claims: adapters/billing/locateRows.ts. */
  pages: EvidenceDeps['pages'];
  connectors: BillingConnectors;
  /** Where uploaded files are kept. */
  blobs: BlobStore;
  /** Reads and draws the pages of invoices, in processes of their own: adapters/invoices/extractor.ts. */
  extractInvoice: InvoiceExtractor['extract'];
  renderInvoicePage: InvoiceExtractor['renderPage'];
  /** Starts a process that waits for the next invoice; absent: each starts with its invoice. */
  prepareExtraction?: InvoiceExtractor['prepare'];
  /** Sends one message to a webhook endpoint: adapters/outbound/deliverWebhook.ts. */
  deliverWebhook: DeliverWebhook;
  /** How webhooks go out; the product's own where absent. */
  webhookPace?: WebhookPace;
  /** Open stored credentials. */
  secretKeys: SecretKeys;
  /** A connection of the tables' owner, without a pooler between: partitions are dropped over it. */
  directUrl: string;
  retention: RetentionLimits;
  /** How long a sync waits for a provider; the product's own where absent. */
  syncPace?: SyncPace;
  /** How long one effect of a re-pricing runs; the product's own where absent. */
  repricePassMs?: number;
  /** Calls that a savings run reads at once; the product's own where absent. */
  replayPageCalls?: number;
  /** The time now, microseconds since 1970. */
  nowMicros(): bigint;
  logger: Logger;
}
