import Router, { type RouterContext } from '@koa/router';
import Koa, { type Context } from 'koa';
import { DomainError } from '../domain/errors.js';
import { alertEndpoints } from './alerts/endpoints.js';
import { auditEndpoints } from './audit/endpoints.js';
import { auditLogEndpoints } from './auditLog/endpoints.js';
import { coverageEndpoints } from './billCoverage/endpoints.js';
import { billingEndpoints } from './billing/endpoints.js';
import { syncEndpoints } from './billingSyncs/endpoints.js';
import { callCostEndpoints } from './callCost/endpoints.js';
import { claimCreditEndpoints } from './claimCredits/endpoints.js';
import { claimDraftEndpoints } from './claimDrafts/endpoints.js';
import { claimEvidenceEndpoints } from './claimEvidence/endpoints.js';
import { claimReminderEndpoints } from './claimReminders/endpoints.js';
import { claimEndpoints } from './claims/endpoints.js';
import { connectionEndpoints } from './connections/endpoints.js';
import { dashboardEndpoints } from './dashboard/endpoints.js';
import type { ApiDeps } from './deps.js';
import { disputeEndpoints } from './disputes/endpoints.js';
import { docsRoutes } from './docs.js';
import { assertDeclaredAccess, assertRepeatable, type Endpoint, problemsOf } from './endpoint.js';
import { enforcementEndpoints } from './enforcement/endpoints.js';
import { eventEndpoints } from './events/endpoints.js';
import { financialEndpoints } from './financial/endpoints.js';
import { findingEndpoints } from './findings/endpoints.js';
import { focusExportEndpoints } from './focusExport/endpoints.js';
import { gapRunEndpoints } from './gapRuns/endpoints.js';
import { healthRoutes } from './health.js';
import { ingestEndpoints } from './ingest/endpoints.js';
import { keyEndpoints } from './keys/endpoints.js';
import { matchEndpoints } from './matches/endpoints.js';
import { buildOpenApi } from './openapi.js';
import { organizationEndpoints } from './organization/endpoints.js';
import { ownPriceEndpoints } from './ownPrices/endpoints.js';
import { periodEndpoints } from './periods/endpoints.js';
import { answer } from './pipeline/answer.js';
import { Authenticator } from './pipeline/auth.js';
import { AuthFailures } from './pipeline/authFailures.js';
import { answerPreflight } from './pipeline/cors.js';
import { assertNotice } from './pipeline/deprecation.js';
import { serve } from './pipeline/serve.js';
import { policyEndpoints } from './policies/endpoints.js';
import { pricingEndpoints } from './pricing/endpoints.js';
import { providerKeyEndpoints } from './providerKeys/endpoints.js';
import { reconciliationEndpoints } from './reconciliation/endpoints.js';
import { repricingEndpoints } from './repricing/endpoints.js';
import { reviewQueueEndpoints } from './reviewQueue/endpoints.js';
import { savingsEndpoints } from './savings/endpoints.js';
import { savingsRunEndpoints } from './savingsRuns/endpoints.js';
import { statementEndpoints } from './statement/endpoints.js';
import { ticketDraftEndpoints } from './ticketDraft/endpoints.js';
import { usageEndpoints } from './usage/endpoints.js';
import { webhookDeliveryEndpoints } from './webhookDeliveries/endpoints.js';
import { webhookEndpoints } from './webhooks/endpoints.js';
import { weightEndpoints } from './weights/endpoints.js';
import { workspaceEndpoints } from './workspaces/endpoints.js';

/** The whole HTTP surface. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...ingestEndpoints,
  ...eventEndpoints,
  ...callCostEndpoints,
  ...usageEndpoints,
  ...organizationEndpoints,
  ...dashboardEndpoints,
  ...policyEndpoints,
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
  ...matchEndpoints,
  ...coverageEndpoints,
  ...weightEndpoints,
  ...statementEndpoints,
  ...focusExportEndpoints,
  ...financialEndpoints,
  ...reviewQueueEndpoints,
  ...findingEndpoints,
  ...disputeEndpoints,
  ...claimEndpoints,
  ...claimDraftEndpoints,
  ...claimReminderEndpoints,
  ...claimEvidenceEndpoints,
  ...claimCreditEndpoints,
  ...ticketDraftEndpoints,
  ...auditEndpoints,
  ...keyEndpoints,
  ...workspaceEndpoints,
  ...auditLogEndpoints,
  ...alertEndpoints,
  ...enforcementEndpoints,
  ...savingsEndpoints,
  ...savingsRunEndpoints,
  ...webhookEndpoints,
  ...webhookDeliveryEndpoints,
];

/**
 * The application: every endpoint behind one error writer, one authentication and one log line a request. Whoever ends it
 * settles `failures`, the refused keys that are still to be written down.
 */
export function createApp(
  deps: ApiDeps,
  endpoints: readonly Endpoint[] = ENDPOINTS,
  failures = new AuthFailures(deps.database, deps.logger),
): Koa {
  const app = new Koa();
  app.silent = true;
  // Only a body that broke off under way comes here: the answer had begun, so nothing else can tell of it.
  app.on('error', (error, ctx: Context) =>
    deps.logger.warn({ err: error, path: ctx.path.slice(0, 256) }, 'a transfer broke off'),
  );
  assertDeclaredAccess(endpoints);
  assertRepeatable(endpoints);
  assertNotice(endpoints);
  const { database, nowMicros, changes, settings } = deps;
  const authenticator = new Authenticator(database, nowMicros, changes, failures, settings.keyCacheMs);
  // One address is one text: what counts requests by their path must see every spelling that leads somewhere.
  const router = new Router({ sensitive: true });
  const fixed: FixedRoutes = new Map();
  for (const endpoint of endpoints) mount(router, fixed, endpoint, deps, authenticator);
  healthRoutes(router, deps);
  docsRoutes(router, () => buildOpenApi(endpoints, deps.settings));
  // A request's line holds nothing but what is written here, so it needs no search for secrets.
  const lines = deps.logger.child({}, { redact: [] });
  app.use((ctx, next) => answer(ctx, next, deps, lines));
  app.use((ctx, next) => deps.limits.admit(ctx, next));
  app.use((ctx, next) => fixed.get(`${ctx.method} ${ctx.path}`)?.(ctx) ?? next());
  const routes = router.routes();
  // An address that is written out is nobody's parameter: …/disputes/export is no dispute, whatever the method.
  app.use((ctx, next) =>
    layersNamed(router, ctx.path).length > 0 && !allowedMethods(router, ctx.path).includes(ctx.method)
      ? next()
      : routes(ctx as RouterContext, next),
  );
  app.use((ctx) => {
    const allowed = allowedMethods(router, ctx.path);
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
  return app;
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

/** The routes whose address is exactly this one, without a parameter. */
function layersNamed(router: Router, path: string) {
  return router.stack.filter((layer) => layer.path === path);
}

function allowedMethods(router: Router, path: string): string[] {
  const named = layersNamed(router, path);
  const layers = named.length > 0 ? named : router.stack.filter((layer) => layer.match(path));
  return [...new Set(layers.flatMap(({ methods }) => methods))];
}
