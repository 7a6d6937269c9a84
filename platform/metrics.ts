import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** All metrics of the service. Labels never contain an organization, a client's model name or an id. */
export function createMetrics() {
  /** Of this process. */
  const registry = new Registry();
  /** Of the whole installation, read when they are asked for. */
  const installation = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'trueup_' });
  return {
    registry,
    installation,
    httpDuration: new Histogram({
      name: 'trueup_http_request_duration_seconds',
      help: 'Time from a request to the end of its answer.',
      labelNames: ['operation', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
      registers: [registry],
    }),
    ingestItems: new Counter({
      name: 'trueup_ingest_items_total',
      help: 'Items received by ingest, by what became of them.',
      labelNames: ['outcome'],
      registers: [registry],
    }),
    ingestRejections: new Counter({
      name: 'trueup_ingest_rejections_total',
      help: 'Items refused by ingest, by reason.',
      labelNames: ['reason'],
      registers: [registry],
    }),
    ingestQueueRows: new Gauge({
      name: 'trueup_ingest_queue_rows',
      help: 'Calls that wait for a connection to be stored.',
      registers: [registry],
    }),
    ingestBatchRows: new Histogram({
      name: 'trueup_ingest_batch_rows',
      help: 'Calls stored by one transaction.',
      buckets: [1, 2, 5, 10, 20, 50, 100, 500, 1000, 2000],
      registers: [registry],
    }),
    policyAlerts: new Counter({
      name: 'trueup_policy_alerts_total',
      help: 'Alerts of calls that break a policy, by its type.',
      labelNames: ['policy_type'],
      registers: [registry],
    }),
    policiesUnjudged: new Counter({
      name: 'trueup_policy_unjudged_total',
      help: 'Policies that could not be compared with a stored call, by type and unknown field.',
      labelNames: ['policy_type', 'reason'],
      registers: [registry],
    }),
    regexesSkipped: new Counter({
      name: 'trueup_policy_regex_skipped_total',
      help: 'Patterns passed over as invalid or slow, each time that ingest takes up the policies that hold them.',
      registers: [registry],
    }),
    rateLimited: new Counter({
      name: 'trueup_rate_limited_total',
      help: 'Requests answered 429, by the limit that they met.',
      labelNames: ['class'],
      registers: [registry],
    }),
    failedAuthentications: new Counter({
      name: 'trueup_failed_authentications_total',
      help: 'Requests with a key that is none: answered 401, or 429 once an address had too many.',
      labelNames: ['outcome'],
      registers: [registry],
    }),
    rateStoreFailures: new Counter({
      name: 'trueup_rate_store_failures_total',
      help: 'Times that limits could not be shared with other instances, so that each went on alone.',
      registers: [registry],
    }),
    requestsInFlight: new Gauge({
      name: 'trueup_http_requests_in_flight',
      help: 'Requests that have begun and not ended.',
      registers: [registry],
    }),
    requestsShed: new Counter({
      name: 'trueup_http_requests_shed_total',
      help: 'Requests answered 503 because too many were under way.',
      registers: [registry],
    }),
    storageFull: new Gauge({
      name: 'trueup_storage_full',
      help: '1 while the disk of the database takes nothing more, else 0.',
      registers: [installation],
    }),
    outboxDepth: new Gauge({
      name: 'trueup_outbox_depth',
      help: 'Messages to the workflow engine that are not delivered.',
      registers: [installation],
    }),
    outboxAgeSeconds: new Gauge({
      name: 'trueup_outbox_age_seconds',
      help: 'Age of the oldest message that is not delivered.',
      registers: [installation],
    }),
    openRuns: new Gauge({
      name: 'trueup_open_runs',
      help: 'Runs of every kind that are queued or at work.',
      registers: [installation],
    }),
    waitingInvoices: new Gauge({
      name: 'trueup_waiting_invoices',
      help: 'Invoices that are not read and compared yet.',
      registers: [installation],
    }),
    connections: new Gauge({
      name: 'trueup_billing_connections',
      help: 'Connections to providers, by status.',
      labelNames: ['status'],
      registers: [installation],
    }),
    retentionAgeSeconds: new Gauge({
      name: 'trueup_retention_age_seconds',
      help: 'Time since a step of the nightly retention did all that there was to do, by step.',
      labelNames: ['step'],
      registers: [installation],
    }),
    webhooksPending: new Gauge({
      name: 'trueup_webhook_deliveries_pending',
      help: 'Messages that are still to be delivered to a webhook endpoint.',
      registers: [installation],
    }),
    webhooksOverdueSeconds: new Gauge({
      name: 'trueup_webhook_overdue_seconds',
      help: 'Time since the oldest attempt to deliver a webhook was due that has not been made.',
      registers: [installation],
    }),
    webhookAttemptsPerHour: new Gauge({
      name: 'trueup_webhook_attempts_per_hour',
      help: 'Attempts of the last hour to deliver a webhook, by what the receiver answered.',
      labelNames: ['answer'],
      registers: [installation],
    }),
    syncAgeSeconds: new Gauge({
      name: 'trueup_billing_sync_age_seconds',
      help: 'Time since the connection that has waited longest was fetched whole.',
      registers: [installation],
    }),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
