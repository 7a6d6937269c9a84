import type Router from '@koa/router';
import { type DatabaseState, findBacklog, getDatabaseState } from '../db/health.js';
import { CONNECTION_STATUSES } from '../domain/billing/connections.js';
import { DomainError } from '../domain/errors.js';
import { ATTEMPT_ANSWERS } from '../domain/webhooks/retrySchedule.js';
import type { ApiDeps } from './deps.js';

const DATABASE_REASONS: Record<DatabaseState, string | undefined> = {
  up: undefined,
  behind: 'The database lacks migrations of this version: start this version, or run ./trueup migrate.',
  down: 'The database does not answer.',
};
const ENGINE_REASONS = {
  up: undefined,
  degraded: 'The workflow engine does not answer: runs wait, and claims cannot be moved.',
};

/**
 * Serves `/healthz` (the process answers), `/readyz` (Postgres and migrations) and `/metrics`. `/readyz` reports an
 * unreachable Temporal and a full disk with their reasons and still succeeds: the API works without Temporal, and reads
 * work on a full disk.
 */
export function healthRoutes(router: Router, deps: ApiDeps): void {
  router.get('/healthz', (ctx) => {
    ctx.state.operation = 'healthz';
    ctx.body = { status: 'ok' };
  });

  router.get('/readyz', async (ctx) => {
    ctx.state.operation = 'readyz';
    const [database, engine, { storage, reason }] = await Promise.all([
      getDatabaseState(deps.database),
      deps.temporalStatus(),
      deps.storageStatus(),
    ]);
    const reasons = [DATABASE_REASONS[database], reason, ENGINE_REASONS[engine]].filter(Boolean);
    const ready = database === 'up';
    ctx.status = ready ? 200 : 503;
    if (!ready) ctx.set('Retry-After', '2');
    ctx.body = {
      status: ready ? (reasons.length === 0 ? 'ok' : 'degraded') : 'unavailable',
      postgres: database,
      temporal: engine,
      storage,
      reasons,
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
    const ofProcesses = await deps.peers.readMetrics();
    if (ofProcesses === undefined)
      throw new DomainError(
        'service_unavailable',
        'a process of the API does not report its metrics: try again',
      );
    deps.metrics.storageFull.set((await deps.storageStatus()).storage === 'full' ? 1 : 0);
    const backlog = await findBacklog(deps.database);
    if (backlog) {
      deps.metrics.outboxDepth.set(backlog.outboxMessages);
      deps.metrics.outboxAgeSeconds.set(backlog.outboxAgeSeconds);
      deps.metrics.openRuns.set(backlog.openRuns);
      deps.metrics.waitingInvoices.set(backlog.waitingInvoices);
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
    ctx.body = `${ofProcesses}\n${await deps.metrics.installation.metrics()}`;
  });
}
