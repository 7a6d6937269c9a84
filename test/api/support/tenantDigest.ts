import { listTenantTables } from '../../db/support/tenantRows.js';
import type { TestDatabase } from '../../support/database.js';

/** Tables that every request changes: counts of requests, times of use, and stored answers. */
const BESIDES = new Set(['idempotency_keys', 'rate_buckets', 'request_slots']);

/** Everything that an organization has, a line for each table: the same lines, nothing was done. */
export async function readTenantDigest({ superuser }: TestDatabase, orgId: string): Promise<string[]> {
  const tables = (await listTenantTables(superuser)).filter((table) => !BESIDES.has(table));
  const selects = tables.map((table) => {
    const column = table === 'organizations' ? 'id' : 'org_id';
    return `select '${table}' as name, count(*)::int as rows, md5(coalesce(string_agg(line, '|' order by line), '')) as digest
      from (select (to_jsonb(t) - 'last_used_at')::text as line from ${table} t where ${column} = $1) lines`;
  });
  const { rows } = await superuser.query<{ name: string; rows: number; digest: string }>(
    `${selects.join(' union all ')} order by 1`,
    [orgId],
  );
  return rows.map(({ name, rows: count, digest }) => `${name} ${count} ${digest}`);
}
