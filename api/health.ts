import type Router from '@koa/router';
import { pingDatabase, readBacklog } from '../db/queries/health.js';
import { CONNECTION_STATUSES } from '../domain/billing/connections.js';
import { DomainError } from '../domain/errors.js';
import { ATTEMPT_ANSWERS } from '../domain/webhooks/attempt.js';
import type { ApiDeps } from './deps.js';

/**
 * `/healthz` (the process answers), `/readyz` (Postgres and migrations; the workflow engine is reported and does not
 * fail it, since the API works without it) and `/metrics`.
 */
export function healthRoutes(router: Router, deps: ApiDeps): void {
  router.get('/healthz', (ctx) => {
    ctx.state.operation = 'healthz';
    ctx.body = { status: 'ok' };
  });

  router.get('/readyz', async (ctx) => {
    ctx.state.operation = 'readyz';
    const [database, engine] = await Promise.all([pingDatabase(deps.database), deps.engineStatus()]);
    const ready = database === 'up';
    ctx.status = ready ? 200 : 503;
    if (!ready) ctx.set('Retry-After', '2');
    ctx.body = {
      status: ready ? (engine === 'up' ? 'ok' : 'degraded') : 'unavailable',
      postgres: database,
      temporal: engine,
    };
  });

  router.get('/metrics', async (ctx) => {
    ctx.state.operation = 'metrics';
    const { loopback, metricsToken } = deps.settings;
    const authorized =
      metricsToken === undefined ? loopback : ctx.headers.authorization === `Bearer ${metricsToken}`;
    if (!authorized) {
      const refusal = new DomainError(
        'unauthenticated',
        'metrics need the header Authorization: Bearer <METRICS_TOKEN>',
      );
      throw deps.limits.afterFailedAuthentication(ctx, refusal);
    }
    const backlog = await readBacklog(deps.database);
    if (backlog) {
      deps.metrics.outboxDepth.set(backlog.outboxMessages);
      deps.metrics.outboxAgeSeconds.set(backlog.outboxAgeSeconds);
      deps.metrics.openRuns.set(backlog.openRuns);
      deps.metrics.syncAgeSeconds.set(backlog.syncAgeSeconds);
      for (const [step, age] of Object.entries(backlog.retentionAgeSeconds))
        deps.metrics.retentionAgeSeconds.set({ step }, age);
      deps.metrics.webhooksPending.set(backlog.webhooks.pending);
      deps.metrics.webhooksOverdueSeconds.set(backlog.webhooks.overdueSeconds);
      for (const answer of ATTEMPT_ANSWERS)
        deps.metrics.webhookAttemptsPerHour.set({ answer }, backlog.webhooks.attemptsOfHour[answer] ?? 0);
      for (const status of CONNECTION_STATUSES)
        deps.metrics.connections.set({ status }, backlog.connections[status] ?? 0);
    }
    ctx.set('Content-Type', deps.metrics.registry.contentType);
    ctx.body = await deps.metrics.registry.metrics();
  });
}
