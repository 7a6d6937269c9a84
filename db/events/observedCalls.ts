import { knownOffsetHours, timesOfBillingDay } from '../../domain/billing/billingDay.js';
import { dayOf, isoFromMicros } from '../../domain/period.js';
import type { Biller } from '../../domain/providers.js';
import { type ObservedSource, SOURCES_MAX } from '../../domain/reconciliation/evidence/evidenceText.js';
import { joinKeyAccount, keyAccount } from '../billing/billingCells.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { asColumns, SOURCE_KEYS, SOURCE_MEASURES } from '../usage/rollups.js';
import { readFoldedXid, readFoldState } from '../usage/usage.js';
import { usageLogSql } from '../usage/usageLog.js';

/**
 * Longest call, hours, when calls themselves are read: longer ones are ignored, because a source is a hint and no
 * amount depends on it.
 */
const CALL_HOURS = 1;

interface SourceRow {
  account: string;
  model: string;
  service: string;
  calls: number;
  without: number;
  named: number;
  refused: number;
}

const KEYS = Object.keys(SOURCE_KEYS).join(', ');
const MEASURES = Object.keys(SOURCE_MEASURES);

/** Rows of `parts` by account, which is looked up once for each provider key and not for each call; biller $2. */
const ranked = (parts: string) => `
select account, model, service, calls, without, named, refused from (
  select *, row_number() over (partition by account, model order by calls desc, service collate "C") as place from (
    select ${keyAccount('told')} as account, model, service_name as service, sum(calls)::bigint as calls, sum(without_cache)::bigint as without,
      sum(named_by_answer)::bigint as named, sum(refused)::bigint as refused
    from (${parts}) told ${joinKeyAccount('told', '$2')} group by 1, 2, 3 having sum(calls) > 0) services) ranked
where place <= ${SOURCES_MAX} order by account collate "C", model collate "C", place`;

const FOLDED = `select ${KEYS}, ${MEASURES.join(', ')} from source_days where org_id = $1 and billed_by = $2 and day = $3::date`;
/** Unfolded rows: from transaction $6 on. */
const UNFOLDED = `
select ${asColumns(SOURCE_KEYS)}, ${asColumns(SOURCE_MEASURES)} from (${usageLogSql('$6')}) log
where end_at >= $4::timestamptz and end_at < $5::timestamptz and billed_by = $2 and status <> 'blocked' group by 1, 2, 3, 4`;
/** The stored calls, each of them read. */
const STORED = `
select ${asColumns(SOURCE_KEYS)}, ${asColumns(SOURCE_MEASURES)} from (select 1 as sign, * from events) calls
where org_id = $1 and timestamp >= $3::timestamptz - interval '${CALL_HOURS} hours' and timestamp < $4::timestamptz
  and end_at >= $3::timestamptz and end_at < $4::timestamptz and billed_by = $2 and superseded_by is null and status <> 'blocked'
group by 1, 2, 3, 4`;

// Built once each, since planning over all months of calls costs as much as the read.
const OF_FOLDED = ranked(FOLDED);
const OF_BOTH = ranked(`${FOLDED} union all ${UNFOLDED}`);
const OF_STORED = ranked(STORED);

interface DayScope {
  provider: Biller;
  /** `YYYY-MM-DD`, by the calls' end. */
  day: string;
  /** Hours by which the biller's clock is ahead of UTC, if constant (`timesOfBillingDay`). */
  offsetHours?: number;
}

/**
 * Services behind a biller's calls of a day, by account and model, the busiest first, at most SOURCES_MAX; one
 * snapshot.
 */
export async function listObservedSources(
  inside: OrgDb,
  scope: DayScope,
): Promise<Map<string, Map<string, ObservedSource[]>>> {
  const rows = await readRows(inside, scope);
  const sources = new Map<string, Map<string, ObservedSource[]>>();
  for (const row of rows) {
    const models = sources.get(row.account) ?? new Map<string, ObservedSource[]>();
    sources.set(row.account, models);
    const known = models.get(row.model) ?? [];
    models.set(row.model, known);
    known.push({
      serviceName: row.service,
      calls: row.calls,
      callsWithoutCache: row.without,
      ...(row.named > 0 && { namedByAnswer: row.named }),
      ...(row.refused > 0 && { refused: row.refused }),
    });
  }
  return sources;
}

async function readRows(inside: OrgDb, { provider, day, offsetHours = 0 }: DayScope): Promise<SourceRow[]> {
  const { startMicros, endMicros } = timesOfBillingDay(provider, day, offsetHours);
  const times = [isoFromMicros(startMicros), isoFromMicros(endMicros)];
  const read = (sql: string, values: readonly SqlValue[], name: string) =>
    inside.rows<SourceRow>(sql, [inside.orgId, provider, ...values], name);
  const isOwnClock = offsetHours !== 0 && knownOffsetHours(provider) === undefined;
  if (isOwnClock || !(await areSourcesFolded(inside, provider, [dayOf(startMicros), dayOf(endMicros - 1n)])))
    return read(OF_STORED, times, 'observed_sources_stored');
  const { foldedXid, isAll } = await readFoldState(inside);
  if (isAll) return read(OF_FOLDED, [day], 'observed_sources_folded');
  return read(OF_BOTH, [day, ...times, foldedXid], 'observed_sources');
}

/** Whether all folded calls of a biller on some UTC days are in `source_days` too. */
async function areSourcesFolded(
  inside: OrgDb,
  provider: Biller,
  [from, to]: readonly [string, string],
): Promise<boolean> {
  const behind = await inside.rows(
    `select day from observed_days where org_id = $1 and billed_by = $2 and day >= $3::date and day <= $4::date
       and sources_revision < revision limit 1`,
    [inside.orgId, provider, from, to],
    'sources_behind',
  );
  return behind.length === 0;
}

/** First call of each account of a biller, imports included. Reads all cells of the organization: call it once. */
export async function listObservedSince(orgDb: OrgDb, provider: string): Promise<Map<string, bigint>> {
  // A fold between the two statements is harmless: a call that is read twice has the same time.
  const foldedXid = await readFoldedXid(orgDb);
  const rows = await orgDb.rows<{ account: string; since: bigint }>(
    // Grouped by key first, so that its account is looked up once and not for each cell.
    `select ${keyAccount('keys')} as account, min(since) as since from (
           select provider_account_id, provider_key_id, min(first_seen) as since from billing_cells
           where org_id = $1 and billed_by = $2 and status <> 'blocked' and calls > 0 group by 1, 2
           union all
           select provider_account_id, provider_key_id, min(end_at) from (${usageLogSql('$3')}) log
           where billed_by = $2 and status <> 'blocked' group by 1, 2 having sum(sign) > 0
         ) keys ${joinKeyAccount('keys', '$2')} group by 1`,
    [orgDb.orgId, provider, foldedXid],
  );
  return new Map(rows.map((row) => [row.account, row.since]));
}
