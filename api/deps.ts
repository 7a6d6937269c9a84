import type { Logger } from 'pino';
import type { BillingConnectors } from '../adapters/billing/connectors.js';
import type { BlobStore } from '../adapters/blobs/blobStore.js';
import type { BodyReader } from '../adapters/ingestBodies/bodyReader.js';
import type { InvoiceExtractor } from '../adapters/invoices/extractor.js';
import type { Orchestrator } from '../adapters/orchestrator.js';
import type * as otlp from '../adapters/otlp/protobuf.js';
import type { DeliverWebhook } from '../adapters/outbound/deliverWebhook.js';
import type { SafeFetch } from '../adapters/outbound/safeFetch.js';
import type { Changes } from '../db/changeFeed.js';
import type { Database } from '../db/client.js';
import type { ClaimEvidence } from '../domain/claims/evidence/claimEvidence.js';
import type { Metrics } from '../platform/metrics.js';
import type { SecretKeys } from '../platform/secretKeys.js';
import type { EvidenceDeps } from '../usecases/claims/freezeEvidence.js';
import type { IngestWriter } from '../usecases/events/ingestWriter.js';
import type { Prices } from '../usecases/pricing/priceBookHolder.js';
import type { RequestLimits } from './limits/requestLimits.js';

/** What the handlers are given; made in bin/, where everything is wired. */
export interface ApiDeps {
  database: Database;
  /** What other processes have changed of that which this one remembers. */
  changes: Changes;
  /** The prices in force, refreshed in the background. */
  prices: Prices & {
    /** Takes up a change of an organization's own prices that has just been stored. */
    reload(orgId: string): Promise<void>;
  };
  ingest: IngestWriter;
  /** Reads bodies of calls. */
  bodies: Pick<BodyReader, 'read'>;
  /** Writes answers in OTLP protobuf. */
  otlp: Pick<typeof otlp, 'encodeTraceResponse'>;
  /** Reads stored pages of bills again, for the evidence of claims. */
  pages: EvidenceDeps['pages'];
  /** Sets the document of a claim, in a process of its own. Error document_failed. */
  renderClaim(evidence: ClaimEvidence): Promise<Buffer>;
  /** Where uploaded files are kept. */
  blobs: BlobStore;
  /** Draws a page of an invoice, in a process of its own. */
  renderInvoicePage: InvoiceExtractor['renderPage'];
  connectors: BillingConnectors;
  /** The only way to addresses that users set. */
  outbound: SafeFetch;
  /** One attempt to deliver a webhook over it. */
  deliverWebhook: DeliverWebhook;
  /** Seal and open stored credentials. */
  secretKeys: SecretKeys;
  /** The time now, microseconds since 1970. */
  nowMicros(): bigint;
  logger: Logger;
  metrics: Metrics;
  /** How much of what may be asked for. */
  limits: RequestLimits;
  /** Wakes the dispatcher after a commit that left something in the outbox; best effort. */
  kickDispatcher(): void;
  /** Has the workflow of a claim carry a move out. */
  moveClaim: Orchestrator['moveClaim'];
  /** Health of what runs beside the API, for /readyz. */
  engineStatus(): Promise<'up' | 'degraded'>;
  /** How the database's disk is, and what to do where it is full. */
  storageStatus(): Promise<{ storage: 'ok' | 'low' | 'full'; reason?: string }>;
  settings: ApiSettings;
}

export interface ApiSettings {
  ingestMaxBodyBytes: number;
  /** Oldest event time that is accepted now, microseconds. */
  oldestEventMicros(): bigint;
  metricsToken: string | undefined;
  /** /metrics needs no token when the service listens on loopback only. */
  loopback: boolean;
  /** Check each response against its schema, and each problem against the list of its endpoint: on in tests. */
  checkResponses: boolean;
  /** The address of this installation for texts that leave it, without a slash at its end. */
  baseUrl(): string;
  version: string;
  /** Host names besides that of `baseUrl` under which requests are answered. */
  allowedHosts: readonly string[];
  /** Origins whose pages may call the API from a browser. */
  corsOrigins: ReadonlySet<string>;
  /** How long browsers insist on TLS after an answer by TLS; 0 makes them forget it. */
  hstsMaxAgeSeconds: number;
  /** How long a key's row is trusted while no change of it is reported; the authenticator's own time when absent. */
  keyCacheMs?: number;
}
