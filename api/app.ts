import Router, { type RouterContext } from '@koa/router';
import Koa, { type Context } from 'koa';
import type { Logger } from 'pino';
import { OrgDb } from '../db/orgDb.js';
import { DomainError } from '../domain/errors.js';
import { auditEndpoints } from './audit/endpoints.js';
import { Authenticator, assertAllowed } from './auth.js';
import { billingEndpoints } from './billing/endpoints.js';
import { syncEndpoints } from './billingSyncs/endpoints.js';
import { IncomingBody, JSON_BODY_BYTES_MAX, parseStorableJson } from './body.js';
import { callCostEndpoints } from './callCost/endpoints.js';
import { compressAnswer } from './compression.js';
import { connectionEndpoints } from './connections/endpoints.js';
import { dashboardEndpoints } from './dashboard/endpoints.js';
import type { ApiDeps } from './deps.js';
import { docsRoutes } from './docs.js';
import { type Caller, type Endpoint, type EndpointResponse, problemsOf } from './endpoint.js';
import { eventEndpoints } from './events/endpoints.js';
import { gapRunEndpoints } from './gapRuns/endpoints.js';
import { healthRoutes } from './health.js';
import { ingestEndpoints } from './ingest/endpoints.js';
import { buildOpenApi } from './openapi.js';
import { ownPriceEndpoints } from './ownPrices/endpoints.js';
import { periodEndpoints } from './periods/endpoints.js';
import { pricingEndpoints } from './pricing/endpoints.js';
import { presentProblem } from './problem.js';
import { providerKeyEndpoints } from './providerKeys/endpoints.js';
import { readQuery, validate } from './query.js';
import { reconciliationEndpoints } from './reconciliation/endpoints.js';
import { repricingEndpoints } from './repricing/endpoints.js';
import { requestContext, requestIdFrom } from './requestContext.js';
import { statementEndpoints } from './statement/endpoints.js';
import { usageEndpoints } from './usage/endpoints.js';

/** Longest address that is read (decisions.md 108). */
const URL_BYTES_MAX = 8_192;

/** The whole HTTP surface. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...ingestEndpoints,
  ...eventEndpoints,
  ...callCostEndpoints,
  ...usageEndpoints,
  ...dashboardEndpoints,
  ...pricingEndpoints,
  ...repricingEndpoints,
  ...periodEndpoints,
  ...ownPriceEndpoints,
  ...billingEndpoints,
  ...connectionEndpoints,
  ...syncEndpoints,
  ...providerKeyEndpoints,
  ...gapRunEndpoints,
  ...reconciliationEndpoints,
  ...statementEndpoints,
  ...auditEndpoints,
];

/** The application: every endpoint behind one error writer, one authentication and one log line a request. */
export function createApp(deps: ApiDeps): Koa {
  const app = new Koa();
  app.silent = true;
  // Only a body that broke off under way comes here: the answer had begun, so nothing else can tell of it.
  app.on('error', (error, ctx: Context) =>
    deps.logger.warn({ err: error, path: ctx.path.slice(0, 256) }, 'a transfer broke off'),
  );
  const authenticator = new Authenticator(deps.database, deps.nowMicros);
  const router = new Router();
  const fixed: FixedRoutes = new Map();
  for (const endpoint of ENDPOINTS) mount(router, fixed, endpoint, deps, authenticator);
  healthRoutes(router, deps);
  docsRoutes(router, buildOpenApi(ENDPOINTS, deps.settings));
  // A request's line holds nothing but what is written here, so it needs no search for secrets.
  const lines = deps.logger.child({}, { redact: [] });
  app.use((ctx, next) => answer(ctx, next, deps, lines));
  app.use((ctx, next) => fixed.get(`${ctx.method} ${ctx.path}`)?.(ctx) ?? next());
  app.use(router.routes());
  app.use((ctx) => {
    const allowed = allowedMethods(router, ctx.path);
    if (allowed.length === 0)
      throw new DomainError('route_not_found', `there is nothing at ${ctx.path.slice(0, 200)}`);
    ctx.set('Allow', allowed.join(', '));
    if (ctx.method === 'OPTIONS') {
      ctx.status = 204;
      return;
    }
    throw new DomainError(
      'method_not_allowed',
      `${ctx.method} is not possible here; use ${allowed.join(' or ')}`,
    );
  });
  return app;
}

/** Wraps a request: id, context, log line, metrics, and the only writer of error bodies. */
async function answer(
  ctx: Context,
  next: () => Promise<unknown>,
  deps: ApiDeps,
  lines: Logger,
): Promise<void> {
  const started = process.hrtime.bigint();
  const requestId = requestIdFrom(ctx.headers['x-request-id'], Number(deps.nowMicros() / 1000n));
  ctx.state.requestId = requestId;
  ctx.set('X-Request-Id', requestId);
  ctx.set('Cache-Control', 'no-store');
  ctx.set('X-Content-Type-Options', 'nosniff');
  await requestContext.run({ requestId }, async () => {
    try {
      if (Buffer.byteLength(ctx.url) > URL_BYTES_MAX) {
        throw new DomainError('uri_too_long', `the address is longer than ${URL_BYTES_MAX} bytes`);
      }
      await next();
    } catch (error) {
      writeProblem(ctx, error, requestId, deps);
    }
    await compressAnswer(ctx);
    const seconds = Number(process.hrtime.bigint() - started) / 1e9;
    const operation = String(ctx.state.operation ?? 'none');
    deps.metrics.httpDuration.observe({ operation, status: String(ctx.status) }, seconds);
    lines.info(
      {
        method: ctx.method,
        path: ctx.path.slice(0, 256),
        status: ctx.status,
        ms: Math.round(seconds * 1000),
      },
      'request',
    );
  });
}

function writeProblem(ctx: Context, error: unknown, requestId: string, deps: ApiDeps): void {
  const problem = presentProblem(error, requestId);
  if (problem.status === 500)
    deps.logger.error({ err: error, path: ctx.path.slice(0, 256) }, 'request failed: this is a bug');
  else if (problem.status >= 503) deps.logger.warn({ err: error }, 'request refused for now');
  ctx.status = problem.status;
  if (problem.status === 401) ctx.set('WWW-Authenticate', 'Bearer realm="api", error="invalid_token"');
  if (problem.status === 415) ctx.set('Accept-Encoding', 'gzip, deflate');
  const retryAfter = error instanceof DomainError ? error.retryAfterSeconds : undefined;
  if (problem.status === 503 || problem.status === 429) ctx.set('Retry-After', String(retryAfter ?? 2));
  ctx.set('Content-Type', 'application/problem+json');
  ctx.body = JSON.stringify(problem);
}

/** Handlers of addresses without parameters: found at once, where the router tries one pattern after the other. */
type FixedRoutes = Map<string, (ctx: Context) => Promise<void>>;

function mount(
  router: Router,
  fixed: FixedRoutes,
  endpoint: Endpoint,
  deps: ApiDeps,
  authenticator: Authenticator,
): void {
  const served = (ctx: Context) => serve(ctx as RouterContext, endpoint, deps, authenticator);
  const handler = deps.settings.checkResponses ? withDeclaredProblems(endpoint, served) : served;
  for (const path of [endpoint.path, ...(endpoint.aliases ?? [])]) {
    const pattern = path.replace(/\{(\w+)\}/g, ':$1');
    router[endpoint.method](pattern, handler);
    if (pattern === path) fixed.set(`${endpoint.method.toUpperCase()} ${path}`, handler);
  }
}

/** A problem that the endpoint does not list is a bug: the documents would not tell it. */
function withDeclaredProblems(endpoint: Endpoint, handler: (ctx: Context) => Promise<void>): typeof handler {
  const declared = problemsOf(endpoint);
  return async (ctx) => {
    try {
      await handler(ctx);
    } catch (error) {
      if (!(error instanceof DomainError) || declared.has(error.code)) throw error;
      throw new Error(`${endpoint.operationId} answers ${error.code}, which it does not list`, {
        cause: error,
      });
    }
  };
}

async function serve(
  ctx: RouterContext,
  endpoint: Endpoint,
  deps: ApiDeps,
  authenticator: Authenticator,
): Promise<void> {
  ctx.state.operation = endpoint.operationId;
  let caller: Caller | undefined;
  if (!('public' in endpoint.access)) {
    const basic = endpoint.authSchemes?.includes('basic') ?? false;
    caller = await authenticator.authenticate(ctx.headers.authorization, basic);
    const context = requestContext.getStore();
    if (context) context.orgId = caller.orgId;
    assertAllowed(caller, endpoint.access.scope);
  }
  const incoming = new IncomingBody(ctx.req);
  const response = await endpoint.handle(
    {
      query: endpoint.query ? validate(endpoint.query, readQuery(ctx.querystring), 'query') : {},
      params: endpoint.params ? validate(endpoint.params, ctx.params, 'path') : {},
      body: endpoint.body ? validate(endpoint.body, await readJsonBody(incoming), 'body') : undefined,
      incoming,
      header: (name) => headerOf(ctx, name),
      requestId: String(ctx.state.requestId),
      caller: caller as Caller,
      orgDb: caller ? new OrgDb(deps.database, caller.orgId) : (undefined as unknown as OrgDb),
      get signal() {
        return signalOf(ctx);
      },
    },
    deps,
  );
  send(ctx, endpoint, response, deps);
}

/** Aborts when the client goes away before it has its answer. Made when asked for: most requests end too soon to care. */
function signalOf(ctx: RouterContext): AbortSignal {
  const abort = new AbortController();
  const end = () => {
    if (!ctx.res.writableFinished) abort.abort();
  };
  if (ctx.res.destroyed) end();
  else ctx.res.once('close', end);
  return abort.signal;
}

function headerOf(ctx: RouterContext, name: string): string | undefined {
  const value = ctx.headers[name.toLowerCase()];
  return Array.isArray(value) ? value[0] : value;
}

async function readJsonBody(incoming: IncomingBody): Promise<unknown> {
  const type = incoming.mediaType;
  if (type !== '' && type !== 'application/json' && !type.endsWith('+json')) {
    throw new DomainError(
      'unsupported_media_type',
      `content-type: ${type.slice(0, 60)} is not read here; send application/json`,
    );
  }
  return parseStorableJson(await incoming.bytes(JSON_BODY_BYTES_MAX));
}

function send(ctx: RouterContext, endpoint: Endpoint, response: EndpointResponse, deps: ApiDeps): void {
  for (const [name, value] of Object.entries(response.headers ?? {})) ctx.set(name, value);
  ctx.status = response.status;
  if (response.content) {
    ctx.set('Content-Type', response.content.type);
    ctx.body = response.content.data;
    return;
  }
  if (response.body === undefined) {
    ctx.body = null;
    ctx.status = response.status;
    return;
  }
  const schema = endpoint.responses[response.status]?.schema;
  if (deps.settings.checkResponses) {
    if (!schema)
      throw new Error(`${endpoint.operationId} answered ${response.status}, which it does not declare`);
    schema.parse(response.body);
  }
  const next = nextPage(ctx, response.body);
  if (next !== undefined) ctx.set('Link', `<${next}>; rel="next"`);
  ctx.set('Content-Type', 'application/json');
  ctx.body = JSON.stringify(response.body);
}

/** The address of the page after this one; undefined where the answer is no list or its last page. */
function nextPage(ctx: RouterContext, body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('next_cursor' in body)) return undefined;
  if (typeof body.next_cursor !== 'string') return undefined;
  const query = new URLSearchParams(ctx.querystring);
  query.delete('offset');
  query.set('cursor', body.next_cursor);
  return `${ctx.path}?${query}`;
}

function allowedMethods(router: Router, path: string): string[] {
  const methods = new Set<string>();
  for (const layer of router.stack)
    if (layer.match(path)) for (const method of layer.methods) methods.add(method);
  return [...methods];
}
