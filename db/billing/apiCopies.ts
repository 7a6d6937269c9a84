import type { Feed } from '../../domain/billing/billedRow.js';
import type { ConnectionSettings } from '../../domain/billing/connections.js';
import { type BillingFormat, type Restatable, SOURCE_RANKS } from '../../domain/billing/sources.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import type { BillingDay } from './billingRows.js';

/** Copies of days that connections have fetched: which count, which replace them, and which confirm them. */

export interface ReportOf {
  connectionId: string;
  provider: Provider;
  accountId: string;
  feed: Feed;
  report: string;
}

/** The latest copy of a day from a connection. */
export interface CurrentCopy {
  day: string;
  contentHash: string;
  scope: string;
  confirmedAtMicros: bigint;
  /** For cost days: the sum of their charges. */
  amountPico: Pico;
  /** Exchange rate of its conversion, as a decimal text; null: none was set. */
  fxRate: string | null;
}

/** SQL of the exchange rate in the settings for the month of `day`; takes the two parameters of `rateValues`. */
const rateSql = (day: string, from: number) =>
  `coalesce(($${from}::jsonb ->> to_char(${day}, 'YYYY-MM'))::numeric, $${from + 1}::numeric)`;
const rateValues = ({ fxRate, fxRates }: ConnectionSettings) => [
  JSON.stringify(fxRates ?? {}),
  fxRate ?? null,
];

export async function listCurrentCopies(
  orgDb: OrgDb,
  of: ReportOf,
  window: { fromDay: string; toDay: string },
): Promise<CurrentCopy[]> {
  return orgDb.rows<CurrentCopy>(
    `select day, min(content_hash) as "contentHash", min(scope) as scope,
       min(coalesce(confirmed_at, source_fetched_at)) as "confirmedAtMicros", sum(amount_usd) as "amountPico",
       trim_scale(min(fx_rate))::text as "fxRate"
     from billing_days
     where org_id = $1 and connection_id = $2 and provider = $3 and provider_account_id = $4 and feed = $5 and report = $6
       and day >= $7 and day < $8 and superseded_at is null
     group by day order by day`,
    [
      orgDb.orgId,
      of.connectionId,
      of.provider,
      of.accountId,
      of.feed,
      of.report,
      window.fromDay,
      window.toDay,
    ],
  );
}

/**
 * The time from which the day of a row is closed (domain/billing/sources.ts), of a Restatable whose `of` and `days` are
 * the values from `first` on.
 */
const closedSql = (first: number): string =>
  `(case $${first}::text when 'month' then (date_trunc('month', day) + interval '1 month')::date else day end + $${first + 1}::integer)::timestamp at time zone 'UTC'`;

/** Days that were complete when fetched, with the connection's present scope and exchange rate, by feed and report. */
export async function listFetchedDays(
  orgDb: OrgDb,
  connection: { id: string; scope: string; settings: ConnectionSettings },
  window: { fromDay: string; toDay: string; restatable: Restatable },
): Promise<{ feed: Feed; report: string; days: string[] }[]> {
  return orgDb.rows<{ feed: Feed; report: string; days: string[] }>(
    `select feed, report, array_agg(distinct day::text) as days from billing_days
     where org_id = $1 and connection_id = $2 and scope = $3 and day >= $4 and day < $5 and superseded_at is null
       and coalesce(confirmed_at, source_fetched_at) >= ${closedSql(6)}
       and fx_rate is not distinct from ${rateSql('day', 8)}
     group by 1, 2 order by 1, 2`,
    [
      orgDb.orgId,
      connection.id,
      connection.scope,
      window.fromDay,
      window.toDay,
      window.restatable.of,
      window.restatable.days,
      ...rateValues(connection.settings),
    ],
  );
}

interface NewApiSource {
  id: string;
  connectionId: string;
  provider: Provider;
  accountId: string;
  /** The request in words. */
  name: string;
  /** Hash over the read pages and the attempt: two readings of the same bytes are two sources. */
  sha256: string;
  sizeBytes: number;
  format: BillingFormat;
  fetchedAtMicros: bigint;
}

/** Starts an attempt to store a chunk's rows and deletes those of a former one. false: the chunk is already read. */
export async function beginApiSource(
  inside: OrgDb,
  chunk: { runId: string; ordinal: number },
  source: NewApiSource,
): Promise<boolean> {
  const rows = await inside.rows<{ status: string; source_id: string | null }>(
    'select status, source_id from sync_chunks where org_id = $1 and run_id = $2 and ordinal = $3 for update',
    [inside.orgId, chunk.runId, chunk.ordinal],
  );
  const [current] = rows;
  if (!current || current.status === 'done') return false;
  if (current.source_id !== null) {
    await inside.run('delete from billing_rows where org_id = $1 and source_id = $2', [
      inside.orgId,
      current.source_id,
    ]);
    await inside.run(
      `update billing_sources set status = 'cancelled', stage = 'cancelled', finished_at = now() where org_id = $1 and id = $2 and status = 'running'`,
      [inside.orgId, current.source_id],
    );
  }
  await inside.run(
    `insert into billing_sources (org_id, id, kind, connection_id, provider, filename, sha256, size_bytes, fetched_at, status, stage,
         format, provider_account_id, source_rank, started_at, heartbeat_at)
       values ($1, $2, 'api', $3, $4, $5, $6, $7, $8, 'running', 'reading', $9, $10, $11, now(), now())`,
    [
      inside.orgId,
      source.id,
      source.connectionId,
      source.provider,
      source.name,
      source.sha256,
      source.sizeBytes,
      isoFromMicros(source.fetchedAtMicros),
      source.format,
      source.accountId,
      SOURCE_RANKS.api,
    ],
  );
  await inside.run(
    'update sync_chunks set source_id = $4 where org_id = $1 and run_id = $2 and ordinal = $3',
    [inside.orgId, chunk.runId, chunk.ordinal, source.id],
  );
  return true;
}

export type ApiDay = BillingDay & { contentHash: string };

/** Makes the new copies count instead of the connection's former ones; call it in the chunk's last transaction. */
export async function replaceApiDays(
  orgDb: OrgDb,
  of: ReportOf,
  source: { id: string; scope: string; fetchedAtMicros: bigint; rowCount: number; amountPico: Pico },
  days: readonly ApiDay[],
  settings: ConnectionSettings,
): Promise<void> {
  const dates = [...new Set(days.map(({ day }) => day))].sort();
  await orgDb.run(
    `update billing_days set superseded_at = now()
     where org_id = $1 and connection_id = $2 and provider = $3 and feed = $4 and report = $5 and day = any($6::date[]) and superseded_at is null`,
    [orgDb.orgId, of.connectionId, of.provider, of.feed, of.report, dates],
  );
  await orgDb.run(
    `insert into billing_days (org_id, source_id, provider, source_rank, source_fetched_at, confirmed_at, scope, connection_id,
       provider_account_id, feed, report, day, charge_category, row_count, amount_usd, unconverted_rows, is_final, content_hash, fx_rate)
     select $1::uuid, $2::uuid, $3::text, $4::smallint, $5::timestamptz, $5::timestamptz, $6::text, $7::uuid, $8::text, $9::text, $10::text, d.*, ${rateSql('d.day', 18)}
     from unnest($11::date[], $12::text[], $13::bigint[], $14::numeric[], $15::bigint[], $16::bool[], $17::text[]) as d(day)`,
    [
      orgDb.orgId,
      source.id,
      of.provider,
      SOURCE_RANKS.api,
      isoFromMicros(source.fetchedAtMicros),
      source.scope,
      of.connectionId,
      of.accountId,
      of.feed,
      of.report,
      plainArray(days.map(({ day }) => day)),
      textArray(days.map(({ chargeCategory }) => chargeCategory)),
      plainArray(days.map(({ rowCount }) => rowCount)),
      plainArray(days.map(({ amountPico }) => decimalFromPico(amountPico))),
      plainArray(days.map(({ unconvertedRows }) => unconvertedRows)),
      plainArray(days.map(({ isFinal }) => isFinal)),
      textArray(days.map(({ contentHash }) => contentHash)),
      ...rateValues(settings),
    ],
  );
  await orgDb.run(
    `update billing_sources set status = 'succeeded', stage = 'succeeded', done_bytes = size_bytes, row_count = $3, amount_usd = $4::numeric,
       period_start = $5, period_end = $6, finished_at = now()
     where org_id = $1 and id = $2`,
    [
      orgDb.orgId,
      source.id,
      source.rowCount,
      decimalFromPico(source.amountPico),
      dates[0] ?? null,
      dates.at(-1) ?? null,
    ],
  );
}

/** Records that the provider reports these days unchanged; `finalDays` become final. */
export async function confirmApiDays(
  orgDb: OrgDb,
  of: ReportOf,
  { days, finalDays, atMicros }: { days: readonly string[]; finalDays: readonly string[]; atMicros: bigint },
  settings: ConnectionSettings,
): Promise<void> {
  if (days.length === 0) return;
  await orgDb.run(
    `update billing_days set confirmed_at = greatest(coalesce(confirmed_at, source_fetched_at), $7::timestamptz), is_final = day = any($8::date[]) or is_final,
       fx_rate = ${rateSql('day', 9)}
     where org_id = $1 and connection_id = $2 and provider = $3 and feed = $4 and report = $5 and day = any($6::date[]) and superseded_at is null`,
    [
      orgDb.orgId,
      of.connectionId,
      of.provider,
      of.feed,
      of.report,
      days,
      isoFromMicros(atMicros),
      finalDays,
      ...rateValues(settings),
    ],
  );
}

/** Deletes copies that were replaced while their day was open; a restated settled day keeps its old copy. */
export async function pruneSupersededCopies(
  inside: OrgDb,
  connectionId: string,
  limits: { restatable: Restatable; keptDays: number },
): Promise<number> {
  const values = [inside.orgId, connectionId, limits.restatable.of, limits.restatable.days, limits.keptDays];
  const old = `org_id = $1 and connection_id = $2 and superseded_at < now() - make_interval(days => $5)
      and coalesce(confirmed_at, source_fetched_at) < ${closedSql(3)}`;
  await inside.run(
    `delete from billing_rows r using (select distinct source_id, day, feed, report from billing_days where ${old}) gone
       where r.org_id = $1 and r.source_id = gone.source_id and r.day = gone.day and r.feed = gone.feed and r.report = gone.report`,
    values,
  );
  return inside.run(`delete from billing_days where ${old}`, values);
}
