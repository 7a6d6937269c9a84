import type { RequestListener } from 'node:http';
import Router, { type RouterContext } from '@koa/router';
import Koa, { type Context } from 'koa';
import { DomainError } from '../domain/errors.js';
import { AuthFailures } from '../usecases/access/keyUses.js';
import { auditLogEndpoints } from './access/auditLog/endpoints.js';
import { identityRoutes } from './access/identityRoutes.js';
import { keyEndpoints } from './access/keys/endpoints.js';
import { sessionEndpoints } from './access/sessions/endpoints.js';
import { workspaceEndpoints } from './access/workspaces/endpoints.js';
import { connectionEndpoints, syncEndpoints } from './billing/connections/endpoints.js';
import { coverageEndpoints } from './billing/coverage/endpoints.js';
import { focusExportEndpoints } from './billing/focusExport/endpoints.js';
import { billingEndpoints } from './billing/imports/endpoints.js';
import { periodEndpoints } from './billing/periods/endpoints.js';
import { providerKeyEndpoints } from './billing/providerKeys/endpoints.js';
import { claimEndpoints } from './claims/claims/endpoints.js';
import { disputeEndpoints } from './claims/disputes/endpoints.js';
import { financialEndpoints, reviewQueueEndpoints } from './claims/financial/endpoints.js';
import { answerScreen, dashboardRoutes } from './dashboard.js';
import type { ApiDeps } from './deps.js';
import { docsRoutes } from './docs.js';
import { assertDeclaredAccess, assertRepeatable, type Endpoint, problemsOf } from './endpoint.js';
import { callCostEndpoints } from './events/cost/endpoints.js';
import { eventEndpoints } from './events/events/endpoints.js';
import { ingestEndpoints } from './events/ingest/endpoints.js';
import { healthRoutes } from './health.js';
import { demoEndpoints } from './installation/demo/endpoints.js';
import { organizationEndpoints } from './installation/organization/endpoints.js';
import { invoiceEndpoints } from './invoices/invoices/endpoints.js';
import { invoiceLineEndpoints } from './invoices/lines/endpoints.js';
import { prepaidEndpoints } from './invoices/prepaid/endpoints.js';
import { invoiceRunEndpoints } from './invoices/runs/endpoints.js';
import { mcpEndpoint } from './mcp/mcpEndpoint.js';
import { buildOpenApi } from './openapi.js';
import { answer } from './pipeline/answer.js';
import { Authenticator } from './pipeline/auth.js';
import { callRoute } from './pipeline/callRoute.js';
import { answerPreflight } from './pipeline/cors.js';
import { assertNotice } from './pipeline/deprecation.js';
import { checkHost, hostNamesOf } from './pipeline/hostCheck.js';
import { loggerOf } from './pipeline/requestLog.js';
import { serve } from './pipeline/serve.js';
import { alertEndpoints } from './policies/alerts/endpoints.js';
import { enforcementEndpoints } from './policies/enforcement/endpoints.js';
import { policyEndpoints } from './policies/policies/endpoints.js';
import { savingsEndpoints, savingsRunEndpoints } from './policies/savings/endpoints.js';
import { ownPriceEndpoints } from './pricing/ownPrices/endpoints.js';
import { proposalEndpoints } from './pricing/proposals/endpoints.js';
import { repricingEndpoints } from './pricing/repricing/endpoints.js';
import { pricingEndpoints } from './pricing/table/endpoints.js';
import { auditEndpoints } from './reconciliation/audit/endpoints.js';
import { findingEndpoints } from './reconciliation/findings/endpoints.js';
import { gapRunEndpoints, reconciliationEndpoints } from './reconciliation/gapRuns/endpoints.js';
import { matchEndpoints } from './reconciliation/matches/endpoints.js';
import { statementEndpoints } from './reconciliation/statement/endpoints.js';
import { weightEndpoints } from './reconciliation/weights/endpoints.js';
import { brandingEndpoints } from './reports/branding/endpoints.js';
import { chargebackEndpoints } from './reports/chargeback/endpoints.js';
import { reportEndpoints } from './reports/reports/endpoints.js';
import { reportScheduleEndpoints } from './reports/schedules/endpoints.js';
import { sdkRoutes } from './sdk.js';
import { dashboardEndpoints, usageEndpoints } from './usage/usage/endpoints.js';
import { webhookDeliveryEndpoints } from './webhooks/deliveries/endpoints.js';
import { webhookEndpoints } from './webhooks/endpoints/endpoints.js';
import { unsubscribeRoutes } from './webhooks/unsubscribe.js';

/** All endpoints of the API. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...ingestEndpoints,
  ...eventEndpoints,
  ...callCostEndpoints,
  ...usageEndpoints,
  ...organizationEndpoints,
  ...demoEndpoints,
  ...dashboardEndpoints,
  ...brandingEndpoints,
  ...chargebackEndpoints,
  ...policyEndpoints,
  ...pricingEndpoints,
  ...proposalEndpoints,
  ...repricingEndpoints,
  ...periodEndpoints,
  ...ownPriceEndpoints,
  ...billingEndpoints,
  ...connectionEndpoints,
  ...syncEndpoints,
  ...providerKeyEndpoints,
  ...gapRunEndpoints,
  ...reconciliationEndpoints,
  ...matchEndpoints,
  ...coverageEndpoints,
  ...weightEndpoints,
  ...statementEndpoints,
  ...invoiceEndpoints,
  ...invoiceLineEndpoints,
  ...invoiceRunEndpoints,
  ...prepaidEndpoints,
  ...focusExportEndpoints,
  ...financialEndpoints,
  ...reviewQueueEndpoints,
  ...findingEndpoints,
  ...disputeEndpoints,
  ...claimEndpoints,
  ...auditEndpoints,
  ...keyEndpoints,
  ...sessionEndpoints,
  ...workspaceEndpoints,
  ...auditLogEndpoints,
  ...alertEndpoints,
  ...enforcementEndpoints,
  ...savingsEndpoints,
  ...savingsRunEndpoints,
  ...webhookEndpoints,
  ...webhookDeliveryEndpoints,
  ...reportEndpoints,
  ...reportScheduleEndpoints,
  mcpEndpoint,
];

/**
 * Builds the listener of requests: every endpoint behind one error writer, one authentication and one log line a
 * request. At shutdown the caller must settle `failures`, the authentication failures that are not stored yet.
 */
export function createApp(
  deps: ApiDeps,
  endpoints: readonly Endpoint[] = ENDPOINTS,
  failures = new AuthFailures(deps.database, deps.logger),
): RequestListener {
  const app = new Koa();
  app.silent = true;
  // Only a response that broke off arrives here: its answer had begun, so no other handler can report the failure.
  app.on('error', (error, ctx: Context) =>
    loggerOf(ctx, deps).warn({ err: error, path: ctx.path.slice(0, 256) }, 'a transfer broke off'),
  );
  assertDeclaredAccess(endpoints);
  assertRepeatable(endpoints);
  assertNotice(endpoints);
  const { database, nowMicros, changes, settings } = deps;
  const authenticator = new Authenticator(database, nowMicros, changes, failures, settings.keyCacheMs);
  // Each address has exactly one spelling, so that limits and metrics that count requests by path count them all.
  const router = new Router({ sensitive: true });
  const fixed: FixedRoutes = new Map();
  for (const endpoint of endpoints) mount(router, fixed, endpoint, deps, authenticator);
  healthRoutes(router, deps);
  unsubscribeRoutes(router, deps);
  identityRoutes(router, deps);
  dashboardRoutes(router);
  sdkRoutes(router, settings.baseUrl);
  docsRoutes(router, () => buildOpenApi(endpoints, deps.settings));
  // A request's log line holds only the fields that are written here, so redaction is not needed.
  const lines = deps.logger.child({}, { redact: [] });
  app.use((ctx, next) => answer(ctx, next, deps, lines));
  let known: ReadonlySet<string> | undefined;
  // The address is known once the server listens.
  const hostNames = () => (known ??= hostNamesOf(settings.baseUrl(), settings.allowedHosts));
  app.use((ctx, next) => {
    checkHost(ctx, hostNames());
    return next();
  });
  app.use((ctx, next) => deps.limits.admit(ctx, next));
  app.use((ctx, next) => fixed.get(`${ctx.method} ${ctx.path}`)?.(ctx) ?? next());
  const routes = router.routes();
  // A fixed path wins over a path with a parameter, for every method: …/disputes/export is never a dispute's id.
  app.use((ctx, next) =>
    layersNamed(router, ctx.path).length > 0 && !allowedMethods(router, ctx.path).includes(ctx.method)
      ? next()
      : routes(ctx as RouterContext, next),
  );
  app.use(async (ctx) => {
    const allowed = allowedMethods(router, ctx.path);
    if (allowed.length === 0 && (await answerScreen(ctx))) return;
    if (allowed.length === 0)
      throw new DomainError('route_not_found', `there is nothing at ${ctx.path.slice(0, 200)}`);
    ctx.set('Allow', allowed.join(', '));
    if (ctx.method === 'OPTIONS') {
      answerPreflight(ctx, allowed, deps.settings.corsOrigins);
      ctx.status = 204;
      return;
    }
    throw new DomainError(
      'method_not_allowed',
      `${ctx.method} is not possible here; use ${allowed.join(' or ')}`,
    );
  });
  return callRoute({ endpoints, deps, authenticator, lines, hostNames, others: app.callback() });
}

/** Handlers of paths without parameters, found by one lookup; the router tries its patterns one after the other. */
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

/** Throws on a problem that the endpoint does not list, because the OpenAPI document would omit it. */
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

/** The router's layers whose path equals this one and has no parameter. */
function layersNamed(router: Router, path: string) {
  return router.stack.filter((layer) => layer.path === path);
}

function allowedMethods(router: Router, path: string): string[] {
  const named = layersNamed(router, path);
  const layers = named.length > 0 ? named : router.stack.filter((layer) => layer.match(path));
  return [...new Set(layers.flatMap(({ methods }) => methods))];
}
