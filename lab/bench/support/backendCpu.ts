import { existsSync, readFileSync } from 'node:fs';
import pg from 'pg';

const NANOS_A_SECOND = 1e9;

/** CPU seconds of the Postgres backends of each program, by application name; empty outside Linux. */
export async function readBackendCpu(url: string): Promise<Map<string, number>> {
  const seconds = new Map<string, number>();
  if (!existsSync('/proc/self/schedstat')) return seconds;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const result = await client.query<{ pid: number; name: string }>(
    `select pid, case when backend_type = 'client backend' then application_name else backend_type end as name from pg_stat_activity`,
  );
  await client.end();
  for (const { pid, name } of result.rows) {
    try {
      const nanos = Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]);
      seconds.set(name, (seconds.get(name) ?? 0) + nanos / NANOS_A_SECOND);
    } catch {
      // The backend ended between the two reads.
    }
  }
  return seconds;
}
