import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { SLOT_KINDS } from '../../db/access/requestLimits.js';
import { REPAIR_STAGES } from '../../db/events/callRepairs.js';
import { listPendingMigrations, migrate } from '../../db/migrate.js';
import { MIGRATIONS } from '../../db/migrations/index.js';
import { ensurePartitions } from '../../db/partitions.js';
import { DIMENSION_KEYS } from '../../db/usage/usageLog.js';
import { ACTOR_KINDS } from '../../domain/access/auditLog.js';
import { ROLES } from '../../domain/access/keyRules.js';
import { SIGN_INS } from '../../domain/access/sessionRules.js';
import { BILLED_CLASSES, CHARGE_CATEGORIES, FEEDS } from '../../domain/billing/billedRow.js';
import { CONNECTION_STATUSES, SYNC_TRIGGERS } from '../../domain/billing/connections.js';
import { PROVIDER_KEY_STATUSES } from '../../domain/billing/providerKeys.js';
import { DISPUTE_STATUSES, DISPUTE_TIERS, FINDING_STATUSES } from '../../domain/claims/financialSummary.js';
import {
  CLAIM_STATUSES,
  CREDIT_SOURCES,
  CREDIT_STATUSES,
  isTerminal,
} from '../../domain/claims/lifecycle.js';
import { METERED_MEASURES } from '../../domain/events/agentMetrics.js';
import type { CostSource, EventKind, EventStatus, InputSemantics } from '../../domain/events/event.js';
import { RECORD_KINDS } from '../../domain/events/observations/observationRecord.js';
import { DEMO_RUN_STATUSES } from '../../domain/installation/demoRuns.js';
import { RETENTION_STEPS } from '../../domain/installation/retention.js';
import {
  INVOICE_FAILURES,
  INVOICE_RUN_CAUSES,
  INVOICE_STATUSES,
  INVOICE_TIE_REASONS,
} from '../../domain/invoices/invoice.js';
import { INVOICE_KINDS, LINE_KINDS } from '../../domain/invoices/invoiceReading.js';
import { INVOICE_ENGINES } from '../../domain/invoices/pageWords.js';
import { LINE_MATCHES, TIES } from '../../domain/invoices/tieOut.js';
import { GAP_PERIODS } from '../../domain/period.js';
import { ALERT_KINDS, ALERT_STATUSES, NOTICE_CODES, SEVERITIES } from '../../domain/policies/alert.js';
import {
  MODELED_ACTIONS,
  SAVINGS_CAUSES,
  UNPRICED_REASONS,
} from '../../domain/policies/enforcement/replay.js';
import { RULE_MODES, RULE_TYPES } from '../../domain/policies/enforcement/rule.js';
import { POLICY_TYPES } from '../../domain/policies/policy.js';
import { PRICE_COLLECTIONS } from '../../domain/pricing/imports/collection.js';
import { OWN_PRICE_KINDS } from '../../domain/pricing/ownPrices.js';
import { AGREEMENTS, PRICE_MODES } from '../../domain/pricing/pricedModel.js';
import { PROPOSAL_STATUSES } from '../../domain/pricing/proposals.js';
import { BLAMES, DIRECTIONS } from '../../domain/reconciliation/engine/index.js';

import {
  type GapBucket,
  GRADES,
  type MatchStatus,
  VISIBILITIES,
} from '../../domain/reconciliation/matching/cells.js';
import { PUBLISHED_STATUSES } from '../../domain/reconciliation/publishedRun.js';
import { REPORT_CAUSES } from '../../domain/reports/report.js';
import { CADENCES } from '../../domain/reports/schedule.js';
import { OUTBOX_KINDS, RUN_STATUSES } from '../../domain/runs/runKinds.js';
import {
  DELIVERY_STATUSES,
  DIGESTS,
  DISABLED_REASONS,
  ENDPOINT_FORMATS,
  ENDPOINT_STATUSES,
  MESSAGE_TYPES,
} from '../../domain/webhooks/messages.js';

const NAMES = MIGRATIONS.map((migration) => migration.name);
const opened: pg.Client[] = [];

/** An empty database, of the superuser or of a new role that is none. The roles of the product must be there then. */
async function createEmptyDatabase(owner?: string): Promise<{ url: string; client: pg.Client }> {
  const name = `empty_${randomBytes(6).toString('hex')}`;
  const server = new pg.Client({ connectionString: inject('postgresUrl') });
  await server.connect();
  if (owner !== undefined)
    await server.query(
      `create role ${owner} login password 'x'; grant app_rw, app_system, app_workspace to ${owner}`,
    );
  await server.query(`create database ${name}${owner === undefined ? '' : ` owner ${owner}`}`);
  await server.end();
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  if (owner !== undefined) Object.assign(url, { username: owner, password: 'x' });
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  opened.push(client);
  return { url: url.href, client };
}

afterAll(async () => {
  for (const client of opened) await client.end();
});

/** Everything that a migration can make, as sorted lines. */
async function describeSchema(client: pg.Client): Promise<string[]> {
  const result = await client.query<{ line: string }>(`
    with named as (select oid, relname, relkind, relacl from pg_class where relnamespace = 'public'::regnamespace)
    select relkind::text || ' ' || relname || ' ' || coalesce(relacl::text, '') as line from named
    union all select 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull
      || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
      from named c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum where c.relkind in ('r', 'p')
    union all select 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
      where connamespace = 'public'::regnamespace
    union all select 'index ' || indexdef from pg_indexes where schemaname = 'public'
    union all select 'policy ' || tablename || ' ' || policyname || ' ' || roles::text || ' ' || coalesce(qual, '') || coalesce(with_check, '')
      from pg_policies
    union all select 'function ' || oid::regprocedure || ' ' || md5(prosrc) from pg_proc where pronamespace = 'public'::regnamespace
    order by 1`);
  return result.rows.map((row) => row.line);
}

describe('migrations', () => {
  it('bring an empty database to the schema, and a second time change nothing', async () => {
    const { url, client } = await createEmptyDatabase();
    expect(await listPendingMigrations(url)).toEqual(NAMES);
    expect(await migrate(url)).toEqual({ applied: NAMES });
    expect(await listPendingMigrations(url)).toEqual([]);
    const schema = await describeSchema(client);
    const stamps = await client.query('select * from schema_migrations order by name');
    expect(await migrate(url)).toEqual({ applied: [] });
    expect(await describeSchema(client)).toEqual(schema);
    expect((await client.query('select * from schema_migrations order by name')).rows).toEqual(stamps.rows);
  });

  it('of two processes at once one applies them and the other waits and finds nothing to do', async () => {
    const { url, client } = await createEmptyDatabase();
    const results = await Promise.all([migrate(url), migrate(url), migrate(url)]);
    expect(results.map(({ applied }) => applied.length).sort((a, b) => a - b)).toEqual([0, 0, NAMES.length]);
    const stored = await client.query<{ name: string }>('select name from schema_migrations order by name');
    expect(stored.rows.map((row) => row.name)).toEqual(NAMES);
  });

  it('are listed as pending one by one, in the order in which they apply', async () => {
    const { url, client } = await createEmptyDatabase();
    await migrate(url);
    await client.query('delete from schema_migrations where name = any($1)', [NAMES.slice(-2)]);
    expect(await listPendingMigrations(url)).toEqual(NAMES.slice(-2));
    expect([...NAMES].sort()).toEqual(NAMES);
  });

  it('that fail leave nothing of themselves and name themselves', async () => {
    const { url, client } = await createEmptyDatabase();
    await client.query('create table gap_runs (id integer)');
    await expect(migrate(url)).rejects.toThrow(/migration 0005_gap_runs failed: .*already exists/);
    const tables = await client.query(
      `select to_regclass('gap_buckets') as made, to_regclass('billing_sources') as before`,
    );
    expect(tables.rows[0]).toEqual({ made: null, before: 'billing_sources' });
    expect(await listPendingMigrations(url)).toEqual(NAMES.slice(NAMES.indexOf('0005_gap_runs')));
    await client.query('drop table gap_runs');
    await migrate(url);
    expect(await listPendingMigrations(url)).toEqual([]);
  });

  it('migrate down to nothing in the opposite order, and up again to the same schema', async () => {
    const { url, client } = await createEmptyDatabase();
    await migrate(url);
    const schema = await describeSchema(client);
    for (const migration of MIGRATIONS.toReversed()) await client.query(migration.down);
    const left = await client.query<{ relname: string }>(
      `select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')`,
    );
    expect(left.rows).toEqual([{ relname: 'schema_migrations' }]);
    await client.query('delete from schema_migrations');
    await migrate(url);
    expect(await describeSchema(client)).toEqual(schema);
  });

  it('migrate down and up again in a database at work, by an owner who is no superuser, and older objects stay', async () => {
    await migrate((await createEmptyDatabase()).url);
    const { url, client } = await createEmptyDatabase(`owner_${randomBytes(6).toString('hex')}`);
    await migrate(url);
    const schema = await describeSchema(client);
    const orgId = randomUUID();
    await client.query('set role app_system');
    await client.query(`insert into organizations (id, name) values ('${orgId}', 'at work')`);
    for (const statement of [
      `insert into policies (org_id, id, policy_type, config, enabled, updated_by) values ($1, 1, 'approved_models', '{"models": ["m"]}', true, 'key_1')`,
      `insert into alerts (org_id, id, kind, policy_type, policy_id, event_id, event_timestamp, subject_type, subject_id, severity, message, details, merged_into)
       select $1, gen_random_uuid(), 'policy', 'approved_models', 1, gen_random_uuid(), now(), 'event', 'evt_1', 'low', '', '{}', m
       from unnest(array[null, gen_random_uuid()]) as m`,
      `insert into alerts (org_id, id, kind, notice, notice_key, subject_type, subject_id, severity, message, details)
       values ($1, gen_random_uuid(), 'notice', 'webhook_failing', 'k', 'webhook_endpoint', 'whk_1', 'low', '', '{}')`,
      `with e as (insert into webhook_endpoints (org_id, id, url, description, status, ciphertext, secret_key_id, created_by)
           values ($1, gen_random_uuid(), 'https://receiver.example/', '', 'active', '\\x00', 'k1', 'key_1') returning *),
         m as (insert into webhook_messages (org_id, id, type, body) select $1, gen_random_uuid(), t, '{}' from unnest(array['alert.created', 'dispute.opened']) as t returning *),
         d as (insert into webhook_deliveries (org_id, id, endpoint_id, message_id) select $1, gen_random_uuid(), e.id, m.id from e, m returning *),
         a as (insert into webhook_attempts (org_id, delivery_id, number) select $1, d.id, 1 from d)
       insert into outbox (org_id, kind, subject_id) select $1, kind, e.id from e, unnest(array['gap_run.start', 'webhook.deliver', 'savings_run.start']) as kind`,
      `with r as (insert into enforcement_rules (org_id, id, type, config, enabled, mode, created_by)
           values ($1, gen_random_uuid(), 'token_ceiling', '{"max_tokens": 1}', true, 'block', 'key_1') returning *),
         s as (insert into savings_runs (org_id, id, is_standard, window_start, window_end, cause, status) values ($1, gen_random_uuid(), true, now() - interval '1 day', now(), 'schedule', 'queued') returning *),
         m as (insert into modeled_savings (org_id, run_id, rule_id, place, type, config, scope, mode) select $1, s.id, r.id, 1, r.type, r.config, r.scope, r.mode from r, s returning *)
       insert into modeled_calls (org_id, run_id, timestamp, event_id, rule_id, action, saved_usd) select $1, m.run_id, now(), gen_random_uuid(), m.rule_id, 'block', 1 from m`,
      `with moved as (update organizations set rules_revision = 7 where id = $1)
       insert into retention_runs (id, step, started_at) select gen_random_uuid(), step, now() from unnest(array['events', 'alerts', 'webhook_messages', 'savings_runs', 'gap_runs']) as step`,
    ])
      await client.query(statement.replaceAll('$1', `'${orgId}'::uuid`));
    await client.query('reset role');
    const later = MIGRATIONS.filter(({ name }) => name >= '0020');
    for (const { down } of later.toReversed()) await client.query(`begin; ${down} commit`);
    await client.query(`delete from schema_migrations where name >= '0020'`);
    expect(await migrate(url)).toEqual({ applied: later.map(({ name }) => name) });
    expect(await describeSchema(client)).toEqual(schema);
    await client.query('set role app_system');
    const { rows } = await client.query(
      `select (select array_agg(kind) from outbox) as outbox, (select array_agg(step) from retention_runs) as steps,
         (select rules_revision from organizations where id = $1) as revision`,
      [orgId],
    );
    expect(rows).toEqual([{ outbox: ['gap_run.start'], steps: ['events'], revision: '0' }]);
  });
});

describe('partitions', () => {
  it('hold every time that ingest takes, from 2020 to a day ahead, and are made three months ahead', async () => {
    const { url, client } = await createEmptyDatabase();
    await migrate(url);
    for (const table of ['events', 'event_payloads']) {
      const bounds = await client.query<{ name: string; bound: string }>(
        `select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
         from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass`,
        [table],
      );
      const edges = bounds.rows
        .map(({ bound }) => [...bound.matchAll(/MINVALUE|\d{4}-\d{2}-\d{2}/g)].map(([edge]) => edge))
        .sort(([a = ''], [b = '']) => (a === 'MINVALUE' ? -1 : b === 'MINVALUE' ? 1 : a < b ? -1 : 1));
      // One for everything older, thirteen months back, the current one, three ahead; without a gap.
      expect(edges.length, table).toBe(18);
      expect(edges[0]?.[0]).toBe('MINVALUE');
      edges.slice(1).forEach(([from], index) => {
        expect(from).toBe(edges[index]?.[1]);
      });
      const ahead = new Date();
      ahead.setUTCDate(1);
      ahead.setUTCMonth(ahead.getUTCMonth() + 4);
      expect(edges.at(-1)?.[1]).toBe(`${ahead.toISOString().slice(0, 7)}-01`);
    }
  });

  it('that are there stay, and a missing one of the coming months is made again', async () => {
    const { url, client } = await createEmptyDatabase();
    await migrate(url);
    const before = await describeSchema(client);
    await ensurePartitions(client);
    expect(await describeSchema(client)).toEqual(before);
    const last = before
      .filter((line) => /^r events_\d/.test(line))
      .at(-1)
      ?.split(' ')[1];
    await client.query(`drop table ${last}`);
    expect(await describeSchema(client)).not.toEqual(before);
    await ensurePartitions(client);
    expect(await describeSchema(client)).toEqual(before);
  });
});

/** The members of a union type as a list: the compiler refuses one that is missing and one that is too many. */
function members<U extends string>(all: Record<U, true>): string[] {
  return Object.keys(all);
}

const EVENT_STATUSES = members<EventStatus>({ ok: true, error: true, cancelled: true, blocked: true });

const COST_SOURCES = members<CostSource>({ reported: true, computed: true, unpriced: true });

/** The list of the domain that each check constraint of the schema repeats. */
const LISTS: Record<string, readonly string[]> = {
  'api_keys.role': ROLES,
  'audit_log.actor_kind': ACTOR_KINDS,
  'sessions.sign_in': SIGN_INS,
  'sessions.role': ROLES,
  'demo_runs.status': DEMO_RUN_STATUSES,
  'sign_in_links.role': ROLES,
  'events.kind': members<EventKind>({ otel_span: true, observability_generation: true, sdk_event: true }),
  'events.status': EVENT_STATUSES,
  'events.cost_source': COST_SOURCES,
  'events.input_semantics': members<InputSemantics>({ inclusive: true, exclusive: true, disjoint: true }),
  'own_prices.kind': OWN_PRICE_KINDS,
  'provider_keys.status': PROVIDER_KEY_STATUSES,
  'price_imports.source': PRICE_COLLECTIONS,
  'price_proposals.source': PRICE_COLLECTIONS,
  'price_proposals.kind': ['new', 'changed'],
  'price_proposals.status': PROPOSAL_STATUSES,
  'price_models.mode': PRICE_MODES,
  'price_models.agreement': AGREEMENTS,
  'usage_rollups.dimension': Object.keys(DIMENSION_KEYS),
  'billing_sources.kind': ['file', 'api'],
  'billing_sources.status': RUN_STATUSES,
  'billing_rows.feed': FEEDS,
  'billing_rows.charge_category': CHARGE_CATEGORIES,
  'billing_rows.token_class': BILLED_CLASSES,
  'billing_days.feed': FEEDS,
  'billing_connections.status': CONNECTION_STATUSES,
  'sync_runs.trigger': SYNC_TRIGGERS,
  'sync_runs.status': RUN_STATUSES,
  'sync_chunks.feed': FEEDS,
  'sync_chunks.bucket_width': ['1d', '1h'],
  'sync_chunks.status': ['pending', 'done', 'failed'],
  'gap_runs.period': GAP_PERIODS,
  'gap_runs.status': RUN_STATUSES,
  'gap_runs.published_status': PUBLISHED_STATUSES,
  'reprice_runs.status': RUN_STATUSES,
  'retention_runs.step': RETENTION_STEPS,
  'request_slots.kind': SLOT_KINDS,
  'event_price_changes.old_cost_source': COST_SOURCES,
  'event_price_changes.new_cost_source': COST_SOURCES,
  'period_totals.part': ['own', 'booked'],
  'adjustment_rollups.dimension': Object.keys(DIMENSION_KEYS),
  'gap_run_units.status': ['pending', 'done', 'failed'],
  'gap_run_accounts.status': ['pending', 'done', 'failed'],
  'findings.decided_as': ['confirmed', 'dismissed'],
  'gap_buckets.width': members<GapBucket['width']>({ day: true, hour: true }),
  'gap_buckets.match_status': members<MatchStatus>({ matched: true, partial: true, unmatched: true }),
  'gap_buckets.grade': GRADES,
  'gap_buckets.visibility': VISIBILITIES,
  'outbox.kind': OUTBOX_KINDS,
  'policies.policy_type': POLICY_TYPES,
  'observation_records.kind': RECORD_KINDS,
  'metered_usage.measure': METERED_MEASURES,
  'alerts.kind': ALERT_KINDS,
  'alerts.policy_type': POLICY_TYPES,
  'alerts.notice': NOTICE_CODES,
  'alerts.severity': SEVERITIES,
  'alerts.status': ALERT_STATUSES,
  'webhook_endpoints.status': ENDPOINT_STATUSES,
  'webhook_endpoints.format': ENDPOINT_FORMATS,
  'webhook_endpoints.digest': DIGESTS,
  'webhook_endpoints.report_cadence': CADENCES,
  'webhook_endpoints.disabled_reason': DISABLED_REASONS,
  'webhook_messages.type': MESSAGE_TYPES,
  'webhook_deliveries.status': DELIVERY_STATUSES,
  'savings_runs.cause': SAVINGS_CAUSES,
  'savings_runs.status': RUN_STATUSES,
  'modeled_calls.action': MODELED_ACTIONS,
  'modeled_calls.unpriced_reason': UNPRICED_REASONS,
  'enforcement_rules.type': RULE_TYPES,
  'enforcement_rules.mode': RULE_MODES,
  'invoices.status': INVOICE_STATUSES,
  'invoices.failure_code': INVOICE_FAILURES,
  'invoices.engine': INVOICE_ENGINES,
  'invoices.document_kind': INVOICE_KINDS,
  'invoices.tie': TIES,
  'invoices.tie_reason': INVOICE_TIE_REASONS,
  'invoice_lines.kind': LINE_KINDS,
  'invoice_lines.match_status': LINE_MATCHES,
  'invoice_runs.cause': INVOICE_RUN_CAUSES,
  'invoice_runs.status_before': INVOICE_STATUSES,
  'invoice_runs.status': RUN_STATUSES,
  'reports.status': RUN_STATUSES,
  'reports.cause': REPORT_CAUSES,
  'reports.cadence': CADENCES,
  'report_schedules.cadence': CADENCES,
  'findings.direction': DIRECTIONS,
  'findings.blame': BLAMES,
  'findings.grade': GRADES,
  'findings.visibility': VISIBILITIES,
  'findings.status': FINDING_STATUSES,
  'call_repairs.stage': REPAIR_STAGES,
  'claims.status': CLAIM_STATUSES,
  'claims.confidence_tier': DISPUTE_TIERS,
  'claim_outcomes.status': CLAIM_STATUSES.filter(isTerminal),
  'claim_credits.source': CREDIT_SOURCES,
  'claim_credits.status': CREDIT_STATUSES,
  'disputes.status': DISPUTE_STATUSES,
  'disputes.confidence_tier': DISPUTE_TIERS,
};

describe('the schema', () => {
  it('allows in each state column exactly the states of the domain', async () => {
    const { url, client } = await createEmptyDatabase();
    await migrate(url);
    const checks = await client.query<{ place: string; words: string[] }>(
      `select c.relname || '.' || a.attname as place,
         (select array_agg(m[1]) from regexp_matches(pg_get_constraintdef(k.oid), '''([^'']*)''::text', 'g') m) as words
       from pg_constraint k join pg_class c on c.oid = k.conrelid
       join pg_attribute a on a.attrelid = k.conrelid and k.conkey = array[a.attnum]
       where k.contype = 'c' and not c.relispartition and pg_get_constraintdef(k.oid) like '%::text%' and pg_get_constraintdef(k.oid) ~ '^CHECK [(]+[a-z_]+ = '`,
    );
    const stored = Object.fromEntries(checks.rows.map(({ place, words }) => [place, [...words].sort()]));
    const known = Object.fromEntries(
      Object.entries(LISTS).map(([place, words]) => [place, [...words].sort()]),
    );
    expect(stored).toEqual(known);
  });
});
