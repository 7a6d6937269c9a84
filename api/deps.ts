import type { Logger } from 'pino';
import type { BillingConnectors } from '../adapters/billing/connectors.js';
import type { Orchestrator } from '../adapters/orchestrator.js';
import type * as otlp from '../adapters/otlp/protobuf.js';
import type { DeliverWebhook } from '../adapters/outbound/deliverWebhook.js';
import type { SafeFetch } from '../adapters/outbound/safeFetch.js';
import type { Changes } from '../db/changeFeed.js';
import type { EvidenceDeps } from '../db/claims/freezeEvidence.js';
import type { Database } from '../db/client.js';
import type { IngestWriter } from '../db/ingest/ingestWriter.js';
import type { Prices } from '../db/prices/priceBookHolder.js';
import type { ClaimEvidence } from '../domain/claims/evidence/claimEvidence.js';
import type { Metrics } from '../platform/metrics.js';
import type { SecretKeys } from '../platform/secretKeys.js';
import type { RequestLimits } from './limits/requestLimits.js';

/** What the handlers are given; made in bin/, where everything is wired. */
export interface ApiDeps {
  database: Database;
  /** What other processes have changed of that which this one remembers. */
  changes: Changes;
  /** The prices in force, refreshed behind the scenes. */
  prices: Prices & {
    /** Takes up a change of an organization's own prices that has just been stored. */
    reload(orgId: string): Promise<void>;
  };
  ingest: IngestWriter;
  /** The OTLP protobuf codec. */
  otlp: Pick<typeof otlp, 'decodeTraceRequest' | 'encodeTraceResponse'>;
  /** Reads stored pages of bills again, for the evidence of claims. */
  pages: EvidenceDeps['pages'];
  /** Sets the document of a claim, in a process of its own. Error document_failed. */
  renderClaim(evidence: ClaimEvidence): Promise<Buffer>;
  /** How the providers' bills are fetched. */
  connectors: BillingConnectors;
  /** The only way to addresses that users give. */
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
  /** The address that users see, without a trailing slash. */
  baseUrl: string;
  version: string;
  /** Origins whose pages may call the API from a browser. */
  corsOrigins: ReadonlySet<string>;
  /** How long browsers insist on TLS after an answer by TLS; 0 makes them forget it. */
  hstsMaxAgeSeconds: number;
  /** How long a key's row is trusted while nothing is told of it; the authenticator's own time when absent. */
  keyCacheMs?: number;
}
