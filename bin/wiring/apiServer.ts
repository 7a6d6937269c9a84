import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { BodyReader } from '../../adapters/ingestBodies/bodyReader.js';
import { createLogoRenderer } from '../../adapters/logos/logoRenderer.js';
import { type MoveAnswer, TemporalOrchestrator } from '../../adapters/orchestrator.js';
import * as otlp from '../../adapters/otlp/protobuf.js';
import { deliverWebhookBy } from '../../adapters/outbound/deliverWebhook.js';
import { renderClaimPdf } from '../../adapters/typst/claimPdf.js';
import { Renderer } from '../../adapters/typst/renderer.js';
import { reportRendererOf } from '../../adapters/typst/reportPdf.js';
import { createApp } from '../../api/app.js';
import type { ApiDeps } from '../../api/deps.js';
import type { Endpoint } from '../../api/endpoint.js';
import { RequestLimits } from '../../api/limits/requestLimits.js';
import { presentBrokenRequest } from '../../api/pipeline/requestHead.js';
import { ChangeFeed, type Changes, NO_CHANGES } from '../../db/changeFeed.js';
import { type Database, openDatabase } from '../../db/client.js';
import type { LimitRules } from '../../domain/access/rate.js';
import type { ClaimEvidence } from '../../domain/claims/evidence/claimEvidence.js';
import { MICROS_PER_DAY, microsFromDate, microsOfDay } from '../../domain/period.js';
import { type ApiPeers, findPeers } from '../../platform/apiPeers.js';
import { answerBrokenRequests, closeQueuedAnswers } from '../../platform/brokenRequests.js';
import type { Config } from '../../platform/config.js';
import { isTemporalServing } from '../../platform/embedded/temporalHealth.js';
import { createMetrics, type Metrics } from '../../platform/metrics.js';
import {
  CONNECTIONS_MAX,
  HSTS_MAX_AGE_SECONDS,
  HTTP_LIMITS,
  TRUEUP_VERSION,
} from '../../platform/serverLimits.js';
import { closeHttpServer, rememberConnections } from '../../platform/shutdown.js';
import { StartError } from '../../platform/startError.js';
import { AuthFailures } from '../../usecases/access/keyUses.js';
import { IngestWriter } from '../../usecases/events/ingestWriter.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { ENGINE_MESSAGE } from '../service/service.js';
import { storageStatusOf } from './storageStatus.js';

/** Oldest accepted event time without a retention setting. */
const OLDEST_MICROS = microsOfDay('2020-01-01');
/** Most connections that store events, unless set; more would only wait for each other. */
const INGEST_CONNECTIONS = 8;

/** Connections to Postgres of one process at most, and of all processes together. */
const POOL_MAX = 16;
const CONNECTIONS_OF_ALL = 64;
const STATEMENT_TIMEOUT_MS = 5_000;

const nowMicros = () => microsFromDate(new Date());

/**
 * Builds the API with its database, not listening yet. `close` stops accepting requests and waits for those in
 * progress.
 */
export async function createApiServer(
  options: ApiServerOptions,
): Promise<{ server: Server; close(): Promise<void> }> {
  const { database, logger, eventRetentionDays } = options;
  const metrics = createMetrics();
  const prices = await PriceBookHolder.open(database, {
    nowMs: () => performance.now(),
    onFailure: (error) => logger.warn({ err: error }, 'prices not refreshed'),
  });
  const ingest = new IngestWriter(database, prices, options.ingestConnections ?? INGEST_CONNECTIONS, {
    queueRows: (rows) => metrics.ingestQueueRows.set(rows),
    batchRows: (rows) => metrics.ingestBatchRows.observe(rows),
    alert: (policy_type) => metrics.policyAlerts.inc({ policy_type }),
    unjudged: (policy_type, reason) => metrics.policiesUnjudged.inc({ policy_type, reason }),
    skippedPatterns: (patterns) => metrics.regexesSkipped.inc(patterns),
  });
  const peers = findPeers(metrics.registry);
  const limits = makeRequestLimits(options, metrics, peers);
  const oldestEventMicros = () =>
    eventRetentionDays === undefined
      ? OLDEST_MICROS
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
    priceFeeds: [],
    changes: NO_CHANGES,
    storageStatus: storageStatusOf(database, undefined),
    ...options,
    prices,
    ingest,
    bodies,
    otlp,
    pages: createPageReaders(options.connectors),
    renderClaim: (evidence: ClaimEvidence) => renderClaimPdf(renderer, evidence),
    renderReport: reportRendererOf(renderer),
    renderLogo: createLogoRenderer(),
    deliverWebhook: deliverWebhookBy(options.outbound, { nowMicros, nowMs: () => performance.now() }),
    nowMicros,
    metrics,
    peers,
    limits,
    settings,
  };
  const failures = new AuthFailures(deps.database, deps.logger);
  const server = makeHttpServer(createApp(deps, options.endpoints, failures), options);
  const close = async () => {
    if (server.listening) await closeHttpServer(server);
    await Promise.all([bodies.close(), failures.settle(), prices.settle()]);
  };
  return { server, close };
}

export interface ApiServerOptions
  extends Pick<
    ApiDeps,
    | 'kickDispatcher'
    | 'temporalStatus'
    | 'moveClaim'
    | 'connectors'
    | 'outbound'
    | 'secretKeys'
    | 'blobs'
    | 'renderInvoicePage'
    | 'deliverMail'
    | 'demo'
    | 'identity'
  > {
  database: Database;
  /** Connections that store events; absent: eight. */
  ingestConnections?: number;
  /** Absent: none are read. */
  priceFeeds?: ApiDeps['priceFeeds'];
  /** Absent: only Postgres is queried. */
  storageStatus?: ApiDeps['storageStatus'];
  /** The served endpoints; absent: all. */
  endpoints?: readonly Endpoint[];
  /** Absent: keys are cached for their few seconds. */
  changes?: Changes;
  logger: Logger;
  checkResponses: boolean;
  baseUrl: () => string;
  loopback: boolean;
  metricsToken: string | undefined;
  ingestMaxBodyBytes: number;
  eventRetentionDays: number | undefined;
  /** Absent: no limits on rates, runs and exports. */
  limits?: LimitRules | undefined;
  /** The limits' monotonic clock, milliseconds; absent: the process's clock. */
  limitsNowMs?: () => number;
  /** Longest wait for the limits that instances share, milliseconds; absent: a quarter of a second. */
  limitsStoreMs?: number;
  /** Requests in progress at once; absent: the service's default. */
  requestsMax?: Record<'ingest' | 'other', number>;
  /** Overrides platform/serverLimits.ts. */
  httpLimits?: Partial<Record<keyof typeof HTTP_LIMITS, number>>;
  /** Addresses and networks whose X-Forwarded-For is trusted; absent: none. */
  trustedProxies?: readonly string[];
  /** Host names that are answered besides the one of `baseUrl`; absent: none. */
  allowedHosts?: readonly string[];
  /** Origins whose pages may call the API from a browser; absent: none. */
  corsOrigins?: readonly string[];
  /** Default: a year. */
  hstsMaxAgeSeconds?: number;
  /** The time that a request waits for its report, milliseconds; a minute when absent. */
  reportWaitMs?: number;
  /** Longest time for which a key's row is cached while no change of it is reported; absent: a few seconds. */
  keyCacheMs?: number;
}

/** The server with its limits, not listening yet. */
function makeHttpServer(listener: RequestListener, options: ApiServerOptions): Server {
  const limits = { ...HTTP_LIMITS, ...options.httpLimits };
  // The application itself refuses a request without Host, as a problem; expectations other than 100-continue are
  // ignored.
  const server = createServer({ ...limits, requireHostHeader: false }, listener);
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.headersTimeout = limits.headersTimeout;
  server.maxConnections = CONNECTIONS_MAX;
  answerBrokenRequests(server, presentBrokenRequest);
  closeQueuedAnswers(server);
  rememberConnections(server);
  return server;
}

/** The limits of requests. A failure of their store is logged and refuses no request. */
function makeRequestLimits(options: ApiServerOptions, metrics: Metrics, peers: ApiPeers): RequestLimits {
  return new RequestLimits({
    peers,
    rules: options.limits,
    trustedProxies: options.trustedProxies ?? [],
    database: options.database,
    metrics,
    storeLimitMs: options.limitsStoreMs,
    requestsMax: options.requestsMax,
    nowMs: options.limitsNowMs ?? (() => performance.now()),
    onStoreFailure: (error) =>
      options.logger.warn({ err: error }, 'limits are not shared with other instances'),
  });
}

/**
 * Listens at the configured address; resolves with the port.
 * @throws StartError when the address is unavailable.
 */
export function listen(server: Server, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        new StartError(
          `The API cannot listen on ${config.host}:${config.port} (${error.code}): set PORT or HOST.`,
          { cause: error },
        ),
      );
    });
    server.listen(config.port, config.host, () => resolve((server.address() as AddressInfo).port));
  });
}

/** The API's database, for one of so many processes; `ingestConnections` of its connections store events. */
export function openApiDatabase(
  url: string,
  processes: number,
): { database: Database; ingestConnections: number } {
  const poolMax = Math.min(POOL_MAX, Math.floor(CONNECTIONS_OF_ALL / processes));
  const database = openDatabase({
    url,
    poolMax,
    applicationName: 'trueup-api',
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  return { database, ingestConnections: Math.floor(poolMax / 2) };
}

/** The feed of changes, not started yet; it logs when it is lost and when it is back. */
export function openChangeFeed(directUrl: string, logger: Logger): ChangeFeed {
  return new ChangeFeed({
    directUrl,
    onLost: (error) =>
      logger.warn(
        { err: error },
        'changes of keys are not received; a revocation takes effect after five seconds at most',
      ),
    onBack: () => logger.info('changes of keys are received again'),
  });
}

/** The API's interface to Temporal. */
export interface ApiEngine extends Pick<ApiDeps, 'moveClaim'> {
  /** Its present address; undefined: unknown. */
  address(): string | undefined;
  close(): Promise<void>;
}

/**
 * Connects to the configured address, and to each one that the supervisor sends later, because an embedded server may
 * move.
 */
export function openApiEngine({ temporalAddress, temporalNamespace: namespace }: Config): ApiEngine {
  const open = (at: string) =>
    new TemporalOrchestrator({ address: at, namespace, nowMs: () => performance.now() });
  let address = temporalAddress;
  let orchestrator = address === undefined ? undefined : open(address);
  const moveTo = (message: unknown) => {
    if (typeof message !== 'string' || !message.startsWith(ENGINE_MESSAGE)) return;
    const told = message.slice(ENGINE_MESSAGE.length);
    if (told === address) return;
    address = told;
    // Calls in progress fail, and their callers retry.
    void orchestrator?.close().catch(() => undefined);
    orchestrator = open(told);
  };
  process.on('message', moveTo);
  return {
    address: () => address,
    moveClaim: async (input, command): Promise<MoveAnswer> =>
      orchestrator ? orchestrator.moveClaim(input, command) : { kind: 'unsent' },
    async close() {
      process.off('message', moveTo);
      await orchestrator?.close();
    },
  };
}

/** Milliseconds for which the state of Temporal is cached. */
const TEMPORAL_STATUS_MS = 2_000;

/** Queries Temporal at its present address, at most every two seconds, however often /readyz is read. */
export function temporalStatus(address: () => string | undefined): () => Promise<'up' | 'degraded'> {
  let asked = Number.NEGATIVE_INFINITY;
  let answer: Promise<'up' | 'degraded'> = Promise.resolve('degraded');
  return () => {
    const temporalAddress = address();
    if (temporalAddress !== undefined && performance.now() - asked > TEMPORAL_STATUS_MS) {
      asked = performance.now();
      answer = isTemporalServing(temporalAddress).then((serving) => (serving ? 'up' : 'degraded'));
    }
    return answer;
  };
}
