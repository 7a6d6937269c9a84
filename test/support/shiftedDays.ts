import { randomUUID } from 'node:crypto';
import type { TestApi, TestOrganization } from './api.js';
import { ACCOUNTS, dayAt, MODEL } from './incrementalRuns.js';

const DAYS = 8;
/** A bill without an hourly report shows a clock by its days alone, of which two weeks are needed. */
const DAYS_ALONE = 16;
/** Use that is never the same two hours running, and never a day's use again; `h` counts the hours of the calls. */
const TOKENS = '(1000 + ((h * h * 31 + h * 4421) % 983) * 3) * 100000';
const RATE = 0.15;

/**
 * An organization whose provider's clock is this many hours ahead of UTC: a call in every hour, and the bill and the
 * hourly usage report of the eight days from the first on, each from midnight to midnight of that clock. `daysAlone`:
 * a bill of sixteen days and no usage report.
 */
export async function aShiftedOrganization(
  api: TestApi,
  offsetHours: number,
  { daysAlone = false } = {},
): Promise<TestOrganization> {
  const days = daysAlone ? DAYS_ALONE : DAYS;
  const { superuser } = api.database;
  const organization = await api.addOrganization();
  const { orgId } = organization;
  const [account] = ACCOUNTS;
  await superuser.query(
    `insert into events (org_id, timestamp, id, end_at, kind, status, provider, billed_by, provider_account_id, model, response_model,
       api_key_hash, api_key_id, session_id, is_batch, input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cached_tok,
       unmetered, cost_usd, computed_cost_usd, cost_source, usage_source, input_semantics, told_classes, biller_from_host, duration_ms,
       stop_reason, service_name, scope_name)
     select $1, at, id, at + interval '1 second', 'otel_span', 'ok', 'openai', 'openai', $2, $3, $3, id::text, 'key_test', '', false,
       ${TOKENS}, 0, 0, 0, 0, 0, false, ${TOKENS} * ${RATE} / 1000000, ${TOKENS} * ${RATE} / 1000000, 'computed', 'otel', 'inclusive', 3, true,
       1000, 'stop', 'shop', 'test'
     from (select h, $4::timestamptz + (h - 24) * interval '1 hour' + interval '30 minutes' as at, gen_random_uuid() as id
       from generate_series(0, ${(days + 2) * 24 - 1}) h) calls`,
    [orgId, account, MODEL, `${dayAt(0)}T00:00:00Z`],
  );
  const id = randomUUID();
  await superuser.query(
    `insert into billing_sources (org_id, id, kind, provider, filename, sha256, size_bytes, status, format, provider_account_id, source_rank)
     values ($1, $2::uuid, 'file', 'openai', 'bill.json', encode(sha256(convert_to($2::uuid::text, 'UTF8')), 'hex'), 1, 'succeeded', 'openai_pages', $3, 20)`,
    [orgId, id, account],
  );
  await superuser.query(
    `with hours as (
       select $4::timestamptz + (h - 24 + $5::int) * interval '1 hour' as starts, ${TOKENS} as tokens from generate_series(0, ${(days + 2) * 24 - 1}) h),
     billed as (select *, (starts at time zone 'UTC')::date as day from hours where starts >= $4::timestamptz and starts < $4::timestamptz + ${days} * interval '1 day'),
     told as (
       select 'usage' as feed, 'completions' as report, day, starts, starts + interval '1 hour' as ends, tokens::numeric as tokens, null::numeric as usd from billed
       where not $7
       union all
       select 'cost', '', day, day::timestamptz, day::timestamptz + interval '1 day', null, sum(tokens) * ${RATE} / 1000000 from billed group by day)
     insert into billing_rows (org_id, source_id, row_no, feed, report, provider, provider_account_id, day, period_start, period_end,
       charge_category, line_item, observable, model, token_class, is_batch, quantity, quantity_unit, amount_usd, currency, original_amount)
     select $1::uuid, $2::uuid, row_number() over (), feed, report, 'openai', $3, day, starts, ends, 'usage', $6 || ', input', true, $6, 'input', false,
       tokens, 'tokens', usd, case when feed = 'cost' then 'USD' end, usd from told`,
    [orgId, id, account, `${dayAt(0)}T00:00:00Z`, offsetHours, MODEL, daysAlone],
  );
  await superuser.query(
    `insert into billing_days (org_id, source_id, provider, source_rank, source_fetched_at, provider_account_id, day, feed, report,
       charge_category, row_count, amount_usd)
     select org_id, source_id, provider, 20, '2026-10-19', provider_account_id, day, feed, report, charge_category, count(*), coalesce(sum(amount_usd), 0)
     from billing_rows where org_id = $1 and source_id = $2 group by 1, 2, 3, 6, 7, 8, 9, 10`,
    [orgId, id],
  );
  return organization;
}
