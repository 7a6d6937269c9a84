import type { Logger } from 'pino';
import type { BillingConnectors } from '../adapters/billing/connectors.js';
import type { BlobStore } from '../adapters/blobs/blobStore.js';
import type { IdentityProvider } from '../adapters/identity/identityProvider.js';
import type { BodyReader } from '../adapters/ingestBodies/bodyReader.js';
import type { InvoiceExtractor } from '../adapters/invoices/extractor.js';
import type { RenderLogo } from '../adapters/logos/logoRenderer.js';
import type { DeliverMail } from '../adapters/mail/smtpMailer.js';
import type { Orchestrator } from '../adapters/orchestrator.js';
import type * as otlp from '../adapters/otlp/protobuf.js';
import type { DeliverWebhook } from '../adapters/outbound/deliverWebhook.js';
import type { SafeFetch } from '../adapters/outbound/safeFetch.js';
import type { Changes } from '../db/changeFeed.js';
import type { Database } from '../db/client.js';
import type { ClaimEvidence } from '../domain/claims/evidence/claimEvidence.js';
import type { ApiPeers } from '../platform/apiPeers.js';
import type { Metrics } from '../platform/metrics.js';
import type { PriceFeed } from '../platform/priceFeeds.js';
import type { SecretKeys } from '../platform/secretKeys.js';
import type { PersonRules } from '../usecases/access/personSignIn.js';
import type { EvidenceDeps } from '../usecases/claims/freezeEvidence.js';
import type { IngestWriter } from '../usecases/events/ingestWriter.js';
import type { DemoControl } from '../usecases/installation/demoRuns.js';
import type { Prices } from '../usecases/pricing/priceBookHolder.js';
import type { ReportDeps } from '../usecases/reports/makeReport.js';
import type { RequestLimits } from './limits/requestLimits.js';

/** Dependencies of the handlers; bin/ wires them. */
export interface ApiDeps {
  database: Database;
  /** Change notices from other processes, by which this one drops stale cache entries. */
  changes: Changes;
  /** The prices in force, refreshed in the background. */
  prices: Prices & {
    /** Reloads an organization's own prices after a change of them was stored. */
    reload(orgId: string): Promise<void>;
  };
  ingest: IngestWriter;
  /** Decodes ingest bodies. */
  bodies: Pick<BodyReader, 'read'>;
  /** Writes answers in OTLP protobuf. */
  otlp: Pick<typeof otlp, 'encodeExportResponse'>;
  /** Reads stored pages of bills again, for the evidence of claims. */
  pages: EvidenceDeps['pages'];
  /** Renders a claim's document in a separate process. Error: document_failed. */
  renderClaim(evidence: ClaimEvidence): Promise<Buffer>;
  /** Sets a management report, in a process of its own. */
  renderReport: ReportDeps['renderReport'];
  /** Storage of uploaded files. */
  blobs: BlobStore;
  /** Renders a page of an invoice in a separate process. */
  renderInvoicePage: InvoiceExtractor['renderPage'];
  /** Draws an uploaded logo again in a separate process. */
  renderLogo: RenderLogo;
  connectors: BillingConnectors;
  /** The only client that may request addresses that users set. */
  outbound: SafeFetch;
  /** Makes one attempt to deliver a webhook, through `outbound`. */
  deliverWebhook: DeliverWebhook;
  /** Sends one mail; undefined: no mail server is set. */
  deliverMail?: DeliverMail | undefined;
  /** The identity provider, and who of its people gets in; undefined: none is set. */
  identity?: { provider: Pick<IdentityProvider, 'begin' | 'finish'>; rules: PersonRules } | undefined;
  /** Public price lists that are fetched daily, for showing them. */
  priceFeeds: readonly PriceFeed[];
  /** Loads and removes the demo. */
  demo: DemoControl;
  /** Encrypts and decrypts stored credentials. */
  secretKeys: SecretKeys;
  /** The present time, microseconds since 1970. */
  nowMicros(): bigint;
  logger: Logger;
  metrics: Metrics;
  /** The other API processes of this machine. */
  peers: ApiPeers;
  /** Rate and concurrency limits of requests. */
  limits: RequestLimits;
  /** Wakes the dispatcher after a commit that wrote outbox rows; best effort. */
  kickDispatcher(): void;
  /** Requests a move from the claim's workflow. */
  moveClaim: Orchestrator['moveClaim'];
  /** Health of the services beside the API, for /readyz. */
  temporalStatus(): Promise<'up' | 'degraded'>;
  /** Disk state of the database, and the remedy where the disk is full. */
  storageStatus(): Promise<{ storage: 'ok' | 'low' | 'full'; reason?: string }>;
  settings: ApiSettings;
}

export interface ApiSettings {
  ingestMaxBodyBytes: number;
  /** Oldest event time that is accepted at present, microseconds. */
  oldestEventMicros(): bigint;
  metricsToken: string | undefined;
  /** True when the service listens on loopback only; /metrics then needs no token. */
  loopback: boolean;
  /** Validates each response against its schema, and each problem against the endpoint's list: on in tests. */
  checkResponses: boolean;
  /** This installation's address for texts that leave it, without a trailing slash. */
  baseUrl(): string;
  version: string;
  /** Host names that are answered besides the one of `baseUrl`. */
  allowedHosts: readonly string[];
  /** Origins whose pages may call the API from a browser. */
  corsOrigins: ReadonlySet<string>;
  /** `max-age` of Strict-Transport-Security, seconds; 0 makes browsers forget it. */
  hstsMaxAgeSeconds: number;
  /** The time that a request waits for its report, milliseconds; a minute when absent. */
  reportWaitMs?: number;
  /**
   * Longest time for which a key's row is cached while no change of it is reported; absent: the authenticator's
   * default.
   */
  keyCacheMs?: number;
}
