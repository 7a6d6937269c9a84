import type { Logger } from 'pino';
import type { BillingConnectors } from '../adapters/billing/connectors.js';
import type { BillingFileReader } from '../adapters/billing/file.js';
import type { BlobStore } from '../adapters/blobs/blobStore.js';
import type { InvoiceExtractor } from '../adapters/invoices/extractor.js';
import type { DeliverMail } from '../adapters/mail/smtpMailer.js';
import type { DeliverWebhook } from '../adapters/outbound/deliverWebhook.js';
import type { RetentionLimits } from '../domain/installation/retention.js';
import type { SecretKeys } from '../platform/secretKeys.js';
import type { SyncPace } from '../usecases/billing/fetchChunk.js';
import type { EvidenceDeps } from '../usecases/claims/freezeEvidence.js';
import type { Prices } from '../usecases/pricing/priceBookHolder.js';
import type { PriceFeedDeps } from '../usecases/pricing/priceFeeds.js';
import type { ReportDeps } from '../usecases/reports/makeReport.js';
import type { UseCaseDeps } from '../usecases/useCaseDeps.js';
import type { WebhookPace } from '../usecases/webhooks/sendDueWebhooks.js';

/** Dependencies of the activities; bin/ wires them. */
export interface ActivityDeps extends UseCaseDeps {
  prices: Prices;
  /** Reads bills: adapters/billing/file.ts. */
  readBillingFile: BillingFileReader;
  /** Reads stored pages of bills again, for the evidence of claims: adapters/billing/locateRows.ts. */
  pages: EvidenceDeps['pages'];
  connectors: BillingConnectors;
  /** Public price lists that are fetched daily, and how. */
  priceFeeds: PriceFeedDeps['priceFeeds'];
  fetchPriceFile: PriceFeedDeps['fetchPriceFile'];
  readPriceCollection: PriceFeedDeps['readPriceCollection'];
  /** Storage of uploaded files. */
  blobs: BlobStore;
  /** Extracts and renders the pages of invoices, in separate processes: adapters/invoices/extractor.ts. */
  extractInvoice: InvoiceExtractor['extract'];
  renderInvoicePage: InvoiceExtractor['renderPage'];
  /** Sets a management report, in a process of its own: adapters/typst/reportPdf.ts. */
  renderReport: ReportDeps['renderReport'];
  /** The address of this installation for texts that leave it, without a slash at its end. */
  baseUrl(): string;
  /** Starts a process that waits for the next invoice; absent: each starts with its invoice. */
  prepareExtraction?: InvoiceExtractor['prepare'];
  /** Sends one message to a webhook endpoint: adapters/outbound/deliverWebhook.ts. */
  deliverWebhook: DeliverWebhook;
  /** Sends one mail; undefined: no mail server is set. */
  deliverMail?: DeliverMail | undefined;
  /** Timing of deliveries; absent: the product's default. */
  webhookPace?: WebhookPace;
  /** Decrypts stored credentials. */
  secretKeys: SecretKeys;
  /** Connection string of the tables' owner without a pooler, for dropping partitions. */
  directUrl: string;
  retention: RetentionLimits;
  /** Waits of a sync for a provider; absent: the product's default. */
  syncPace?: SyncPace;
  /** Duration of one activity of a re-pricing, milliseconds; absent: the product's default. */
  repricePassMs?: number;
  /** Calls that a savings run reads at once; absent: the product's default. */
  replayPageCalls?: number;
  /** The present time, microseconds since 1970. */
  nowMicros(): bigint;
  logger: Logger;
}
