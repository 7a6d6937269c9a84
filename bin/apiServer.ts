import { createServer, type Server } from 'node:http';
import type { Logger } from 'pino';
import * as otlp from '../adapters/otlp/protobuf.js';
import { createApp } from '../api/app.js';
import type { ApiDeps } from '../api/deps.js';
import type { Endpoint } from '../api/endpoint.js';
import { RequestLimits } from '../api/requestLimits.js';
import { type Changes, NO_CHANGES } from '../db/changeFeed.js';
import type { Database } from '../db/client.js';
import { IngestWriter } from '../db/ingestWriter.js';
import { PriceBookHolder } from '../db/priceBookHolder.js';
import type { LimitRules } from '../domain/limits/rate.js';
import { MICROS_PER_DAY, microsFromDate, microsOfDay } from '../domain/period.js';
import { answerBrokenRequests } from '../platform/brokenRequests.js';
import { createMetrics } from '../platform/metrics.js';
import {
  CONNECTIONS_MAX,
  HSTS_MAX_AGE_SECONDS,
  HTTP_LIMITS,
  TRUEUP_VERSION,
} from '../platform/serverLimits.js';
import { closeHttpServer } from '../platform/shutdown.js';

export interface ApiServerOptions
  extends Pick<ApiDeps, 'kickDispatcher' | 'engineStatus' | 'connectors' | 'secretKeys'> {
  database: Database;
  /** What is served; the whole surface where nothing is said. */
  endpoints?: readonly Endpoint[];
  /** Absent: what is remembered of keys is trusted for its few seconds. */
  changes?: Changes;
  logger: Logger;
  checkResponses: boolean;
  baseUrl: string;
  loopback: boolean;
  metricsToken: string | undefined;
  ingestMaxBodyBytes: number;
  eventRetentionDays: number | undefined;
  /** Absent: no rate and no number of runs or exports is limited. */
  limits?: LimitRules | undefined;
  /** The clock of the limits, milliseconds that only grow; the process's own when absent. */
  limitsNowMs?: () => number;
  /** Longest wait for the limits that instances share, milliseconds; a quarter of a second when absent. */
  limitsStoreMs?: number;
  /** Requests under way at once; as the service has it when absent. */
  requestsMax?: Record<'ingest' | 'other', number>;
  /** Others than those of platform/serverLimits.ts. */
  httpLimits?: Partial<Record<keyof typeof HTTP_LIMITS, number>>;
  /** Addresses and networks whose X-Forwarded-For is believed; none when absent. */
  trustedProxies?: readonly string[];
  /** Origins whose pages may call the API from a browser; none when absent. */
  corsOrigins?: readonly string[];
  /** Default: a year. */
  hstsMaxAgeSeconds?: number;
}

/** Oldest event time that is taken where no retention is set (decisions.md 14). */
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
  });
  const limits = new RequestLimits({
    rules: options.limits,
    trustedProxies: options.trustedProxies ?? [],
    database,
    metrics,
    storeLimitMs: options.limitsStoreMs,
    requestsMax: options.requestsMax,
    nowMs: options.limitsNowMs ?? (() => performance.now()),
    onStoreFailure: (error) => logger.warn({ err: error }, 'limits are not shared with other instances'),
  });
  const oldestEventMicros = () =>
    eventRetentionDays === undefined
      ? microsOfDay(OLDEST_DAY)
      : nowMicros() - BigInt(eventRetentionDays) * MICROS_PER_DAY;
  const settings = {
    ...options,
    oldestEventMicros,
    version: TRUEUP_VERSION,
    corsOrigins: new Set(options.corsOrigins),
    hstsMaxAgeSeconds: options.hstsMaxAgeSeconds ?? HSTS_MAX_AGE_SECONDS,
  };
  const app = createApp(
    {
      changes: NO_CHANGES,
      ...options,
      prices,
      ingest,
      otlp,
      nowMicros,
      metrics,
      limits,
      settings,
    },
    options.endpoints,
  );
  const httpLimits = { ...HTTP_LIMITS, ...options.httpLimits };
  const server = createServer(httpLimits, app.callback());
  server.headersTimeout = httpLimits.headersTimeout;
  server.maxConnections = CONNECTIONS_MAX;
  answerBrokenRequests(server);
  const close = async () => {
    if (server.listening) await closeHttpServer(server);
    await prices.settle();
  };
  return { server, close };
}
