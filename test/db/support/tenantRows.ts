import { randomUUID } from 'node:crypto';
import type pg from 'pg';

/** An organization's ids, the same in every table, so that its rows refer to each other. */
export interface Tenant {
  orgId: string;
  /** Occurs in every free text of the organization, so that a leak is visible anywhere. */
  marker: string;
  eventId: string;
  sourceId: string;
  runId: string;
}

/** A new organization that is in no table yet. */
export function drawTenant(): Tenant {
  const orgId = randomUUID();
  return {
    orgId,
    marker: `owned-by-${orgId.slice(0, 8)}`,
    eventId: randomUUID(),
    sourceId: randomUUID(),
    runId: randomUUID(),
  };
}

/** Every table of the schema that is no partition, with whether it has the column org_id. */
export async function listTables(superuser: pg.Pool): Promise<{ name: string; hasOrgId: boolean }[]> {
  const result = await superuser.query<{ name: string; has_org_id: boolean }>(
    `select c.relname as name, exists (
       select from pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped) as has_org_id
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     order by 1`,
  );
  return result.rows.map((row) => ({ name: row.name, hasOrgId: row.has_org_id }));
}

/** Tables whose rows belong to an organization, `organizations` among them. */
export async function listTenantTables(superuser: pg.Pool): Promise<string[]> {
  const tables = await listTables(superuser);
  return tables
    .filter((table) => table.hasOrgId || table.name === 'organizations')
    .map((table) => table.name);
}

interface Column {
  name: string;
  type: string;
  /** The values that a check constraint allows; null where there is none. */
  allowed: string[] | null;
}

/** Columns that a row cannot do without. */
async function listRequiredColumns(superuser: pg.Pool, table: string): Promise<Column[]> {
  const result = await superuser.query<Column>(
    `select a.attname as name, format_type(a.atttypid, null) as type, (
       select array_agg(m[1]) from pg_constraint k, regexp_matches(pg_get_constraintdef(k.oid), '''([^'']*)''::text', 'g') m
       where k.conrelid = a.attrelid and k.contype = 'c' and k.conkey = array[a.attnum]
         and pg_get_constraintdef(k.oid) ~ '^CHECK [(]+[a-z_]+ = ') as allowed
     from pg_attribute a
     where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attnotnull
       and not a.atthasdef and a.attidentity = ''
     order by a.attnum`,
    [table],
  );
  return result.rows;
}

/** The value of a column by its name, where its type is not sufficient. */
function namedValue(table: string, column: string, tenant: Tenant): unknown {
  const digits = tenant.orgId.replaceAll('-', '');
  const byName: Record<string, unknown> = {
    org_id: tenant.orgId,
    event_id: tenant.eventId,
    source_id: tenant.sourceId,
    run_id: tenant.runId,
    invoice_id: tenant.sourceId,
    subject_id: tenant.runId,
    sha256: digits.repeat(2),
    last4: digits.slice(0, 4),
    secret_hash: Buffer.alloc(32, 7),
    token_hash: Buffer.alloc(32, 7),
    hash: Buffer.from(digits, 'utf8'),
    prev_hash: Buffer.from(digits, 'utf8'),
    signature: Buffer.from(digits, 'utf8'),
    sign: 1,
    month: '2026-02-01',
    window_end: '2026-02-04T00:00:00Z',
  };
  const byPlace: Record<string, unknown> = {
    'organizations.id': tenant.orgId,
    'api_keys.id': `key_${digits.slice(0, 10)}`,
    'audit_log.action': 'key.created',
    'events.id': tenant.eventId,
    'billing_sources.id': tenant.sourceId,
    'gap_runs.id': tenant.runId,
    'reprice_runs.id': tenant.runId,
    'savings_runs.id': tenant.runId,
    'invoices.id': tenant.sourceId,
    'invoice_runs.id': tenant.runId,
    'reports.id': tenant.runId,
    'modeled_savings.rule_id': tenant.sourceId,
    'modeled_calls.rule_id': tenant.sourceId,
    'claims.evidence_sha256': Buffer.from(digits, 'utf8'),
    'claim_files.sha256': Buffer.from(digits, 'utf8'),
  };
  return byPlace[`${table}.${column}`] ?? byName[column];
}

/** Values that check constraints require. */
const ALSO: Record<string, Record<string, unknown>> = {
  alerts: {
    policy_type: 'approved_models',
    policy_id: 1,
    event_id: randomUUID(),
    event_timestamp: '2026-02-03T04:05:06Z',
  },
  claim_events: { to_status: 'draft' },
  claim_outcomes: { status: 'credit_issued', credit_issued_cents: 1 },
  claim_undercharges: { impact_usd: '-1' },
  billing_rows: { amount_usd: '1.25' },
  dispute_days: { expected_usd: '0', volume_usd: '0', own_pricing_usd: '0' },
  finding_days: { expected_usd: '0', volume_usd: '0', own_pricing_usd: '0' },
  findings: {
    expected_usd: '0',
    recoverable_usd: '0',
    missing_gates: '[]',
    lines: '[]',
    waterfall: '[]',
    advice: '[]',
  },
  modeled_calls: { saved_usd: '1.25' },
  sessions: { sign_in: 'link', role: 'member' },
  reports: { sections: ['summary'] },
  report_schedules: { sections: ['summary'] },
  webhook_endpoints: { url: 'https://hooks.example.com' },
  own_prices: { discount_percent: '10', source: '{}' },
  call_spans: { biller: 'openai', trace_id: '00000000000000000000000000000001', span_id: 1 },
};

/** Columns that may be null, of which a check wants one. */
const ALSO_NAMED: Record<string, string[]> = { findings: ['run_id'] };

const BY_TYPE: Record<string, (tenant: Tenant) => unknown> = {
  uuid: () => randomUUID(),
  text: (tenant) => tenant.marker,
  'timestamp with time zone': () => '2026-02-03T04:05:06.000007Z',
  date: () => '2026-02-03',
  boolean: () => false,
  bigint: () => 1,
  integer: () => 1,
  smallint: () => 1,
  numeric: () => '0.5',
  'double precision': () => 0.5,
  jsonb: (tenant) => JSON.stringify({ text: tenant.marker }),
  pg_snapshot: () => '10:20:10',
  bytea: (tenant) => Buffer.from(tenant.marker),
};

/** The INSERT of a tenant's row into a table, with its parameters: made from the catalog, so a new table needs none. */
export async function insertOf(
  superuser: pg.Pool,
  table: string,
  tenant: Tenant,
): Promise<{ text: string; values: unknown[] }> {
  const values = new Map<string, unknown>(Object.entries(ALSO[table] ?? {}));
  for (const name of ALSO_NAMED[table] ?? []) values.set(name, namedValue(table, name, tenant));
  for (const column of await listRequiredColumns(superuser, table)) {
    if (values.has(column.name)) continue;
    const value =
      namedValue(table, column.name, tenant) ?? column.allowed?.[0] ?? BY_TYPE[column.type]?.(tenant);
    if (value === undefined) throw new Error(`no value for ${table}.${column.name} of type ${column.type}`);
    values.set(column.name, value);
  }
  const names = [...values.keys()];
  return {
    text: `insert into ${table} (${names.join(', ')}) values (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    values: [...values.values()],
  };
}

/** Stores a row in every tenant table, without row-level security and in any order. */
export async function insertTenantRows(superuser: pg.Pool, tenant = drawTenant()): Promise<Tenant> {
  const client = await superuser.connect();
  try {
    await client.query("begin; set local session_replication_role = 'replica'");
    for (const table of await listTenantTables(superuser))
      await client.query(await insertOf(superuser, table, tenant));
    await client.query('commit');
    client.release();
  } catch (error) {
    client.release(true);
    throw error;
  }
  return tenant;
}

/** Everything that an organization owns, table by table, as texts that compare. */
export async function readTenantRows(superuser: pg.Pool, orgId: string): Promise<Record<string, string[]>> {
  const owned: Record<string, string[]> = {};
  for (const table of await listTenantTables(superuser)) {
    const key = table === 'organizations' ? 'id' : 'org_id';
    const result = await superuser.query<{ row: string }>(
      `select to_jsonb(t)::text as row from ${table} t where ${key} = $1 order by 1`,
      [orgId],
    );
    owned[table] = result.rows.map((row) => row.row);
  }
  return owned;
}

/**
 * Number and digest of everything that an organization owns, table by table: equal where every byte is. But for when a
 * key was last used, which is noted behind requests.
 */
export async function digestTenantRows(superuser: pg.Pool, orgId: string): Promise<Record<string, string>> {
  const parts = (await listTenantTables(superuser)).map(
    (table) =>
      `select '${table}' as name, count(*) || ' ' || coalesce(md5(string_agg(d, '' order by d)), '') as digest
       from (select md5((to_jsonb(t) - 'last_used_at')::text) as d from ${table} t
         where ${table === 'organizations' ? 'id' : 'org_id'} = $1) rows`,
  );
  const { rows } = await superuser.query<{ name: string; digest: string }>(parts.join(' union all '), [
    orgId,
  ]);
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
}
