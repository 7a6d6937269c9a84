import type pg from 'pg';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import type { Provider } from '../../../domain/providers.js';

/**
 * Generates calls and bills in bulk to measure reconciliation; their content is arbitrary, only their number
 * matters.
 */

export const PROVIDERS = ['openai', 'anthropic'] as const;
const MODELS_AN_ACCOUNT = 6;
export const DAYS = 60;
/** Rows of one transaction, as from ingest; a fold takes up to 100,000 events at once. */
const BATCH_EVENTS = 20_000;

interface Series {
  provider: Provider;
  account: string;
  model: string;
  input: string;
  cache_read: string;
  output: string;
}

const usd = (pico: bigint) =>
  `${pico / 1_000_000_000_000n}.${String(pico % 1_000_000_000_000n).padStart(12, '0')}`;

/** Models of a provider with every rate that the calls need, at the end of the window. */
function seriesOf(book: PriceBook, accounts: number, atMicros: bigint): Series[] {
  return PROVIDERS.flatMap((provider) => {
    const models = book.models
      .filter((entry) => entry.provider === provider && entry.firstParty && entry.mode === 'chat')
      .flatMap((entry) => {
        const rates = book.find(provider, entry.model, atMicros)?.version.rates;
        const { input, cache_read, output } = rates ?? {};
        if (!input || !cache_read || !output) return [];
        return [{ model: entry.model, input: usd(input), cache_read: usd(cache_read), output: usd(output) }];
      })
      .slice(0, MODELS_AN_ACCOUNT);
    return Array.from({ length: accounts }, (_, at) =>
      models.map((model) => ({ provider, account: `${provider}-account-${at + 1}`, ...model })),
    ).flat();
  });
}

export interface LoadedData {
  series: number;
  billingRows: number;
  firstDay: string;
}

const EVENTS = `
insert into events (org_id, timestamp, id, end_at, kind, status, provider, billed_by, provider_account_id, model, response_model,
  api_key_hash, api_key_id, session_id, is_batch, input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cached_tok,
  unmetered, cost_usd, computed_cost_usd, cost_source, usage_source, input_semantics, told_classes, biller_from_host, duration_ms,
  stop_reason, service_name, scope_name)
select $1::uuid, at, gen_random_uuid(), at + interval '2 seconds', 'otel_span', 'ok', s.provider, s.provider, s.account, s.model, s.model,
  'bench', 'key_bench', '', false, u.input, u.output, u.cached, 0, 0, u.cached, false, c.cost, c.cost, 'computed', 'otel', 'inclusive', 3, true, 2000,
  'stop', 'service-' || (n % 3), 'bench'
from generate_series($2::bigint, $3::bigint) n
cross join lateral (select $4::timestamptz + n * ($5::float8 * interval '1 microsecond') as at) t
join jsonb_to_recordset($6::jsonb) as s(at_place int, provider text, account text, model text, input numeric, cache_read numeric, output numeric)
  on s.at_place = (n * 2654435761 % 4294967291) % $7::bigint
cross join lateral (select 200 + n * 7919 % 7800 as input, 20 + n * 104729 % 1480 as output, case when n % 3 = 0 then n * 1299709 % 6000 else 0 end as cached) u
cross join lateral (select (u.input * s.input + u.cached * s.cache_read + u.output * s.output) / 1000000 as cost) c`;

/**
 * Creates cost rows by class and day and usage rows by class and hour from the observed calls, for each account in
 * chronological order, as providers send them; some series are billed wrongly for some days.
 */
const BILL = `
with told as (
  select c.billed_by as provider, c.provider_account_id as account, c.model, c.hour, (c.hour at time zone 'UTC')::date as day, t.class, t.tokens,
    case t.class when 'input' then s.input when 'output' then s.output else s.cache_read end as rate, s.input as input_rate, s.at_place
  from billing_cells c
  join jsonb_to_recordset($2::jsonb) as s(at_place int, provider text, account text, model text, input numeric, cache_read numeric, output numeric)
    on s.provider = c.billed_by and s.account = c.provider_account_id and s.model = c.model
  cross join lateral (values ('input', c.input_tokens), ('cache_read', c.cache_read), ('output', c.output_tokens)) t(class, tokens)
  where c.org_id = $1 and t.tokens > 0),
wrong as (
  select *, case when at_place % 5 = 0 and class = 'cache_read' and extract(day from day) between 10 and 18 then input_rate else rate end as charged,
    case when at_place % 7 = 3 and extract(day from day) between 20 and 22 then 2 else 1 end as times
  from told)
insert into billing_rows (org_id, source_id, row_no, feed, report, provider, provider_account_id, day, period_start, period_end, charge_category,
  line_item, observable, model, token_class, is_batch, quantity, quantity_unit, amount_usd, currency, original_amount)
select $1::uuid, b.id, row_number() over (partition by b.id order by r.starts), r.feed, r.report, r.provider, r.account, r.day, r.starts, r.ends, 'usage',
  r.model || ', ' || r.class, true, r.model, r.class, false, r.quantity, 'tokens', r.amount, case when r.feed = 'cost' then 'USD' end, r.amount
from (
  select 'cost' as feed, '' as report, provider, account, model, day, class, day::timestamptz as starts, day::timestamptz + interval '1 day' as ends,
    null::numeric as quantity, round(sum(tokens * times * charged) / 1000000, 9) as amount
  from wrong group by 3, 4, 5, 6, 7
  union all
  select 'usage', 'usage', provider, account, model, day, class, hour, hour + interval '1 hour', sum(tokens * times)::numeric, null
  from wrong group by 3, 4, 5, 6, 7, 8
) r join billing_sources b on b.org_id = $1 and b.provider = r.provider and b.provider_account_id = r.account
order by b.id, r.starts`;

/** Fills an organization with calls, folds them with `fold`, and adds their bills. */
export async function loadReconciliation(
  client: pg.ClientBase,
  data: { orgId: string; events: number; accounts: number; book: PriceBook; fold: () => Promise<void> },
): Promise<LoadedData> {
  const { orgId, events } = data;
  const end = new Date(Date.now() - 6 * 86_400_000).toISOString().slice(0, 10);
  const first = new Date(Date.parse(end) - DAYS * 86_400_000).toISOString().slice(0, 10);
  const series = seriesOf(data.book, data.accounts, BigInt(Date.parse(end)) * 1000n);
  const told = JSON.stringify(series.map((one, at) => ({ at_place: at, ...one })));
  const stepMicros = (DAYS * 86_400_000_000) / events;
  for (let at = 0; at < events; at += BATCH_EVENTS) {
    const last = Math.min(events, at + BATCH_EVENTS) - 1;
    await client.query(EVENTS, [orgId, at, last, `${first}T00:00:00Z`, stepMicros, told, series.length]);
  }
  await client.query('analyze events');
  await data.fold();
  await client.query(
    `insert into billing_sources (org_id, id, kind, provider, filename, sha256, size_bytes, status, format, provider_account_id, source_rank)
     select $1, gen_random_uuid(), 'file', provider, 'bench.json', encode(sha256(convert_to(account, 'UTF8')), 'hex'), 1, 'succeeded',
       provider || '_pages', account, 20
     from (select distinct provider, account from jsonb_to_recordset($2::jsonb) as s(provider text, account text)) s`,
    [orgId, told],
  );
  const { rowCount } = await client.query(BILL, [orgId, told]);
  await client.query(
    `insert into billing_days (org_id, source_id, provider, source_rank, source_fetched_at, provider_account_id, day, feed, report,
       charge_category, row_count, amount_usd)
     select org_id, source_id, provider, 20, now(), provider_account_id, day, feed, report, charge_category, count(*), coalesce(sum(amount_usd), 0)
     from billing_rows where org_id = $1 group by 1, 2, 3, 6, 7, 8, 9, 10`,
    [orgId],
  );
  // Otherwise autovacuum would run during the measurement; tables with weeks of data are already vacuumed in
  // production.
  await client.query('vacuum (analyze)');
  return { series: series.length, billingRows: rowCount ?? 0, firstDay: first };
}

/** Adds late calls of one account's day, which the next run must detect. */
export async function addLateCalls(
  client: pg.ClientBase,
  orgId: string,
  day: string,
  calls: number,
): Promise<void> {
  const columns = `org_id, kind, status, provider, billed_by, provider_account_id, model, response_model, api_key_id, session_id, is_batch,
    input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cached_tok, unmetered, cost_usd, computed_cost_usd, cost_source,
    usage_source, input_semantics, told_classes, biller_from_host, duration_ms, stop_reason, service_name, scope_name`;
  await client.query(
    `insert into events (${columns}, timestamp, end_at, id, api_key_hash)
     select ${columns}, timestamp, end_at, gen_random_uuid(), 'late' from events
     where org_id = $1 and provider = 'openai' and provider_account_id = 'openai-account-1' and timestamp >= $2::date and timestamp < $2::date + 1 limit $3`,
    [orgId, day, calls],
  );
}
