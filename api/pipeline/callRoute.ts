import type { IncomingMessage, RequestListener } from 'node:http';
import type { Logger } from 'pino';
import type { OrgDb } from '../../db/orgDb.js';
import { DomainError } from '../../domain/errors.js';
import { orgDbOf } from '../../usecases/useCaseDeps.js';
import type { ApiDeps } from '../deps.js';
import {
  acceptsSessions,
  type Caller,
  type Endpoint,
  type EndpointRequest,
  problemsOf,
} from '../endpoint.js';
import { writeRateLimitFields } from '../limits/rateLimitFields.js';
import { observeAnswer, writeProblem } from './answer.js';
import { type Authenticator, assertAllowed } from './auth.js';
import { IncomingBody } from './body.js';
import { isHostKnown } from './hostCheck.js';
import { CallContext } from './pipelineContext.js';
import { loggerOf, requestIdFrom } from './requestLog.js';
import { setTransportSecurity } from './securityHeaders.js';
import { contentOf, headerOf, judgeAgain, signalOf, takesBasic } from './serve.js';

/** The parts that serve requests which store calls. */
export interface CallRouteParts {
  endpoints: readonly Endpoint[];
  deps: ApiDeps;
  authenticator: Authenticator;
  /** The writer of one line a request. */
  lines: Logger;
  hostNames(): ReadonlySet<string>;
  /** Serves every other request. */
  others: RequestListener;
}

/**
 * Serves requests that store calls by the steps that they need of the pipeline, in its order: admission, key, limits,
 * body, handler, one line and one metric. Koa's context, router and middleware cost more than reading and mapping a
 * call. The other listener serves every other request: another path or method, a query, no key, an
 * unknown host, and all where pages of other origins may call.
 */
export function callRoute(parts: CallRouteParts): RequestListener {
  const { endpoints, deps, others } = parts;
  const routes = new Map<string, Endpoint>();
  for (const endpoint of endpoints)
    if (storesCalls(endpoint))
      for (const path of [endpoint.path, ...(endpoint.aliases ?? [])]) routes.set(path, endpoint);
  const isOpen = deps.settings.corsOrigins.size > 0;
  return (req, res) => {
    const endpoint = req.method === 'POST' && !isOpen ? routes.get(req.url ?? '') : undefined;
    if (endpoint === undefined || !isOrdinary(req, parts.hostNames())) return others(req, res);
    const ctx = new CallContext(req, res, req.url ?? '');
    res.once('error', (error) =>
      loggerOf(ctx, deps).warn({ err: error, path: ctx.path }, 'a transfer broke off'),
    );
    void answerCalls(ctx, endpoint, parts);
  };
}

/** Whether an endpoint only reads a body of calls with a key. */
function storesCalls(endpoint: Endpoint): boolean {
  const { method, access, idempotency, streams, query, params, body, csv, deprecated } = endpoint;
  if (method !== 'post' || 'public' in access || access.scope !== 'ingest') return false;
  if (idempotency !== 'ignored' || streams === undefined || acceptsSessions(endpoint)) return false;
  return [query, params, body, csv, deprecated].every((part) => part === undefined);
}

function isOrdinary(req: IncomingMessage, hostNames: ReadonlySet<string>): boolean {
  const { authorization, host } = req.headers;
  return authorization !== undefined && host !== undefined && isHostKnown(req, hostNames);
}

/** Wraps a request as `answer` does. */
async function answerCalls(ctx: CallContext, endpoint: Endpoint, parts: CallRouteParts): Promise<void> {
  const { deps, lines } = parts;
  const started = process.hrtime.bigint();
  const requestId = requestIdFrom(ctx.headers['x-request-id'], Number(deps.nowMicros() / 1000n));
  ctx.state.requestId = requestId;
  ctx.state.operation = endpoint.operationId;
  ctx.set('X-Request-Id', requestId);
  setTransportSecurity(ctx, deps.settings.hstsMaxAgeSeconds);
  try {
    await serveCalls(ctx, endpoint, parts);
  } catch (error) {
    writeProblem(ctx, declared(endpoint, error, deps), requestId, deps);
  }
  writeRateLimitFields(ctx);
  ctx.send();
  observeAnswer(ctx, started, deps, lines);
}

/** In tests an undeclared problem is an error, as it is behind Koa. */
function declared(endpoint: Endpoint, error: unknown, { settings }: ApiDeps): unknown {
  if (!settings.checkResponses || !(error instanceof DomainError)) return error;
  if (problemsOf(endpoint).has(error.code)) return error;
  return new Error(`${endpoint.operationId} answers ${error.code}, which it does not list`, { cause: error });
}

async function serveCalls(
  ctx: CallContext,
  endpoint: Endpoint,
  { deps, authenticator }: CallRouteParts,
): Promise<void> {
  const { limits } = deps;
  limits.enter(ctx);
  let caller: Caller;
  try {
    const sender = () => limits.senderOf(ctx);
    caller = await authenticator.authenticate(ctx.headers.authorization, takesBasic(endpoint), sender);
  } catch (error) {
    throw limits.afterFailedAuthentication(ctx, error);
  }
  ctx.state.orgId = caller.orgId;
  const charged = limits.chargeKey(ctx, caller, endpoint);
  if (charged) await charged;
  if (!('public' in endpoint.access)) assertAllowed(caller, endpoint.access);
  const incoming = new IncomingBody(ctx.req, {
    whenRead: judgeAgain(ctx, endpoint, authenticator, undefined),
    hold: (bytes) => limits.holdBody(ctx, bytes),
  });
  const request = new CallRequest(ctx, { deps, caller, incoming });
  const response = await endpoint.handle(request, deps);
  ctx.status = response.status;
  const content = contentOf(endpoint, response, deps);
  for (const [name, value] of Object.entries(response.headers ?? {})) ctx.set(name, value);
  if (content) {
    ctx.set('Content-Type', content.type);
    ctx.body = content.data as string | Buffer;
  }
}

/**
 * A request as an endpoint that stores calls sees it. It is a class because V8 makes a hidden class for each object
 * literal with getters, in the old generation, which keeps the whole request until a full collection.
 */
class CallRequest implements EndpointRequest<unknown, unknown, unknown> {
  readonly query = {};
  readonly params = {};
  readonly body = undefined;
  readonly runLimit = undefined;
  readonly incoming: IncomingBody;
  readonly caller: Caller;
  readonly identify = notHere;
  readonly assertNotForeign = notHere;
  readonly afterCommit = notHere;
  readonly settle = notHere;
  readonly #ctx: CallContext;
  readonly #deps: ApiDeps;

  constructor(ctx: CallContext, { deps, caller, incoming }: RequestParts) {
    this.#ctx = ctx;
    this.#deps = deps;
    this.caller = caller;
    this.incoming = incoming;
  }

  get requestId(): string {
    return String(this.#ctx.state.requestId);
  }

  get orgDb(): OrgDb {
    return orgDbOf(this.#deps, this.caller.orgId, this.caller.workspace?.projectId);
  }

  get signal(): AbortSignal {
    return signalOf(this.#ctx);
  }

  header(name: string): string | undefined {
    return headerOf(this.#ctx, name);
  }

  chargeItems(count: number): void | Promise<void> {
    return this.#deps.limits.chargeItems(this.#ctx, this.caller, count);
  }
}

interface RequestParts {
  deps: ApiDeps;
  caller: Caller;
  incoming: IncomingBody;
}

function notHere(): never {
  throw new TypeError('an endpoint that stores calls uses nothing else of the pipeline');
}
