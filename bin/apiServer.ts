import type { Server } from 'node:http';
import { createPageReaders } from '../adapters/billing/locateRows.js';
import { BodyReader } from '../adapters/ingestBodies/bodyReader.js';
import * as otlp from '../adapters/otlp/protobuf.js';
import { deliverWebhookBy } from '../adapters/outbound/deliverWebhook.js';
import { renderClaimPdf } from '../adapters/typst/claimPdf.js';
import { Renderer } from '../adapters/typst/renderer.js';
import { createApp } from '../api/app.js';
import { AuthFailures } from '../api/pipeline/authFailures.js';
import { NO_CHANGES } from '../db/changeFeed.js';
import type { ClaimEvidence } from '../domain/claims/evidence/claimEvidence.js';
import { MICROS_PER_DAY, microsFromDate, microsOfDay } from '../domain/period.js';
import { createMetrics } from '../platform/metrics.js';
import { HSTS_MAX_AGE_SECONDS, TRUEUP_VERSION } from '../platform/serverLimits.js';
import { closeHttpServer } from '../platform/shutdown.js';
import { IngestWriter } from '../usecases/events/ingestWriter.js';
import { PriceBookHolder } from '../usecases/pricing/priceBookHolder.js';
import type { ApiServerOptions } from './startup/apiOptions.js';
import { makeHttpServer, makeRequestLimits } from './startup/httpServer.js';
import { storageStatusOf } from './startup/storageStatus.js';

/** Oldest event time that is taken where no retention is set. */
const OLDEST_DAY = '2020-01-01';
/** Connections that store events; more only wait for each other. */
const INGEST_CONNECTIONS = 8;

const nowMicros = () => microsFromDate(new Date());

/** The API wired to its database, not listening yet. `close` stops taking requests and waits for those under way. */
export async function createApiServer(
  options: ApiServerOptions,
): Promise<{ server: Server; close(): Promise<void> }> {
  const { database, logger, eventRetentionDays } = options;
  const metrics = createMetrics();
  const prices = await PriceBookHolder.open(database, {
    nowMs: () => performance.now(),
    onFailure: (error) => logger.warn({ err: error }, 'prices not refreshed'),
  });
  const ingest = new IngestWriter(database, prices, INGEST_CONNECTIONS, {
    queueRows: (rows) => metrics.ingestQueueRows.set(rows),
    batchRows: (rows) => metrics.ingestBatchRows.observe(rows),
    alert: (policy_type) => metrics.policyAlerts.inc({ policy_type }),
    unjudged: (policy_type, reason) => metrics.policiesUnjudged.inc({ policy_type, reason }),
    skippedPatterns: (patterns) => metrics.regexesSkipped.inc(patterns),
  });
  const limits = makeRequestLimits(options, metrics);
  const oldestEventMicros = () =>
    eventRetentionDays === undefined
      ? microsOfDay(OLDEST_DAY)
      : nowMicros() - BigInt(eventRetentionDays) * MICROS_PER_DAY;
  const settings = {
    ...options,
    oldestEventMicros,
    version: TRUEUP_VERSION,
    allowedHosts: options.allowedHosts ?? [],
    corsOrigins: new Set(options.corsOrigins),
    hstsMaxAgeSeconds: options.hstsMaxAgeSeconds ?? HSTS_MAX_AGE_SECONDS,
  };
  const renderer = new Renderer();
  const bodies = new BodyReader();
  const deps = {
    changes: NO_CHANGES,
    storageStatus: storageStatusOf(database, undefined),
    ...options,
    prices,
    ingest,
    bodies,
    otlp,
    pages: createPageReaders(options.connectors),
    renderClaim: (evidence: ClaimEvidence) => renderClaimPdf(renderer, evidence),
    deliverWebhook: deliverWebhookBy(options.outbound, { nowMicros, nowMs: () => performance.now() }),
    nowMicros,
    metrics,
    limits,
    settings,
  };
  const failures = new AuthFailures(deps.database, deps.logger);
  const app = createApp(deps, options.endpoints, failures);
  const server = makeHttpServer(app.callback(), options);
  const close = async () => {
    if (server.listening) await closeHttpServer(server);
    await Promise.all([bodies.close(), failures.settle(), prices.settle()]);
  };
  return { server, close };
}
