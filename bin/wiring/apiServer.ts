import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { BodyReader } from '../../adapters/ingestBodies/bodyReader.js';
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
import type { Database } from '../../db/client.js';
import type { LimitRules } from '../../domain/access/rate.js';
import type { ClaimEvidence } from '../../domain/claims/evidence/claimEvidence.js';
import { MICROS_PER_DAY, microsFromDate, microsOfDay } from '../../domain/period.js';
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
    renderReport: reportRendererOf(renderer),
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

export interface ApiServerOptions
  extends Pick<
    ApiDeps,
    | 'kickDispatcher'
    | 'engineStatus'
    | 'moveClaim'
    | 'connectors'
    | 'outbound'
    | 'secretKeys'
    | 'blobs'
    | 'renderInvoicePage'
  > {
  database: Database;
  /** Asks Postgres alone when absent. */
  storageStatus?: ApiDeps['storageStatus'];
  /** What is served; the whole surface where nothing is said. */
  endpoints?: readonly Endpoint[];
  /** Absent: what is remembered of keys is trusted for its few seconds. */
  changes?: Changes;
  logger: Logger;
  checkResponses: boolean;
  baseUrl: () => string;
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
  /** Host names besides that of `baseUrl` under which requests are answered; none when absent. */
  allowedHosts?: readonly string[];
  /** Origins whose pages may call the API from a browser; none when absent. */
  corsOrigins?: readonly string[];
  /** Default: a year. */
  hstsMaxAgeSeconds?: number;
  /** How long a request waits for its report, milliseconds; a minute when absent. */
  reportWaitMs?: number;
  /** How long a key's row is trusted while no change of it is reported; a few seconds when absent. */
  keyCacheMs?: number;
}

/** The server with its limits, not listening yet. */
function makeHttpServer(listener: RequestListener, options: ApiServerOptions): Server {
  const limits = { ...HTTP_LIMITS, ...options.httpLimits };
  // The application refuses a request without Host itself, as a problem; expectations other than 100-continue are passed over.
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
function makeRequestLimits(options: ApiServerOptions, metrics: Metrics): RequestLimits {
  return new RequestLimits({
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
 * Takes requests at the address of the settings; resolves with the port.
 * @throws StartError when the address cannot be had.
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

/** The feed of changes, not started yet; it says when it is lost and when it is back. */
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

/** The workflow engine as the API asks it. */
export interface ApiEngine extends Pick<ApiDeps, 'moveClaim'> {
  /** Where it is now; undefined where nobody has said so. */
  address(): string | undefined;
  close(): Promise<void>;
}

/** At the address that the settings name, and at each that the supervisor sends later: an embedded engine may move. */
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
    // What is under way there fails by itself; its caller asks again.
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

/** How long an answer about the workflow engine is good for. */
const ENGINE_STATUS_MS = 2_000;

/** Asks the engine, wherever it is now, at most every two seconds, however often /readyz is read. */
export function engineStatus(address: () => string | undefined): () => Promise<'up' | 'degraded'> {
  let asked = Number.NEGATIVE_INFINITY;
  let answer: Promise<'up' | 'degraded'> = Promise.resolve('degraded');
  return () => {
    const temporalAddress = address();
    if (temporalAddress !== undefined && performance.now() - asked > ENGINE_STATUS_MS) {
      asked = performance.now();
      answer = isTemporalServing(temporalAddress).then((serving) => (serving ? 'up' : 'degraded'));
    }
    return answer;
  };
}
