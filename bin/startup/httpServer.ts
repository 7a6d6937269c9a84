import { createServer, type RequestListener, type Server } from 'node:http';
import { RequestLimits } from '../../api/limits/requestLimits.js';
import { presentBrokenRequest } from '../../api/pipeline/requestHead.js';
import { answerBrokenRequests } from '../../platform/brokenRequests.js';
import type { Metrics } from '../../platform/metrics.js';
import { closeQueuedAnswers } from '../../platform/queuedAnswers.js';
import { CONNECTIONS_MAX, HTTP_LIMITS } from '../../platform/serverLimits.js';
import { rememberConnections } from '../../platform/shutdown.js';
import type { ApiServerOptions } from './apiOptions.js';

/** The server with its limits, not listening yet. */
export function makeHttpServer(listener: RequestListener, options: ApiServerOptions): Server {
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

/** The limits of requests. A failing store of theirs is told in the log, and stops nobody. */
export function makeRequestLimits(options: ApiServerOptions, metrics: Metrics): RequestLimits {
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
