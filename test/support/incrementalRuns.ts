import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { GAP_RUNS, type GapRun } from '../../db/reconciliation/gapRuns.js';
import { findRun, insertRun } from '../../db/runs/runTable.js';
import { gapWindow, shiftDay } from '../../domain/period.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { explainRunAccount, planExplanations } from '../../usecases/reconciliation/explainRun.js';
import { type RunWork, runWork, takeGapRunTurn } from '../../usecases/reconciliation/gapRunWork.js';
import { planRun } from '../../usecases/reconciliation/planRun.js';
import { matchUnit } from '../../usecases/reconciliation/providerDay.js';
import { publishRun } from '../../usecases/reconciliation/publishRun.js';
import { endRun } from '../../usecases/runs/endRun.js';
import type { TestApi, TestOrganization } from './api.js';

/** Bills and calls of a few days, and gap runs over them step by step, without an engine. */

export const MODEL = 'gpt-4o-mini';
export const ACCOUNTS = ['org-one', 'org-two'] as const;
const DAYS = 6;
/** Noon of a fixed day: nothing here depends on when it runs. */
const NOW_MICROS = BigInt(Date.parse('2026-10-20T12:00:00Z')) * 1000n;
export const FIRST_DAY = '2026-10-01';
export const dayAt = (at: number) => shiftDay(FIRST_DAY, at);

/** List prices of the model, USD per million tokens: the bills charge them unless a test makes them wrong. */
const RATES = { input: 0.15, cache_read: 0.075, output: 0.6 } as const;

/** A call a day and account, large enough to matter. */
export async function addCalls(
  api: TestApi,
  orgId: string,
  calls: { day: string; account: string | null; hour?: number; endsAfterHours?: number; apiKey?: string },
): Promise<void> {
  const { day, account, hour = 10, endsAfterHours = 0, apiKey = null } = calls;
  await api.database.superuser.query(
    `insert into events (org_id, timestamp, id, end_at, kind, status, provider, billed_by, provider_account_id, provider_key_id, model,
       response_model, api_key_hash, api_key_id, session_id, is_batch, input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok,
       cached_tok, unmetered, cost_usd, computed_cost_usd, cost_source, usage_source, input_semantics, told_classes, biller_from_host,
       duration_ms, stop_reason, service_name, scope_name)
     select $1, $2::timestamptz, id, $2::timestamptz + $3 * interval '1 hour' + interval '1 second', 'otel_span', 'ok', 'openai', 'openai', $4, $5, $6,
       $6, id::text, 'key_test', '', false, 400000000, 50000000, 300000000, 0, 0, 300000000, false, 112.5, 112.5, 'computed', 'otel', 'inclusive', 3,
       true, 1000, 'stop', 'shop', 'test'
     from (select gen_random_uuid() as id) x`,
    [orgId, `${day}T${String(hour).padStart(2, '0')}:00:00Z`, endsAfterHours, account, apiKey, MODEL],
  );
}

/** A copy of an account's bill of some days; `wrong` charges cached tokens as ordinary input on these. */
export async function addBill(
  api: TestApi,
  orgId: string,
  bill: {
    account: string;
    days: readonly string[];
    rank?: number;
    times?: number;
    rateTimes?: number;
    wrong?: readonly string[];
  },
): Promise<string> {
  const { superuser } = api.database;
  const id = randomUUID();
  const { account, days, rank = 20, times = 1, rateTimes = 1, wrong = [] } = bill;
  await superuser.query(
    `insert into billing_sources (org_id, id, kind, provider, filename, sha256, size_bytes, status, format, provider_account_id, source_rank)
     values ($1, $2::uuid, 'file', 'openai', 'bill.json', encode(sha256(convert_to($2::uuid::text, 'UTF8')), 'hex'), 1, 'succeeded', 'openai_pages', $3, $4)`,
    [orgId, id, account, rank],
  );
  const rows = days.flatMap((day) =>
    (['input', 'cache_read', 'output'] as const).map((name) => ({
      day,
      name,
      tokens: { input: 400_000_000, cache_read: 300_000_000, output: 50_000_000 }[name] * times,
      rate: (name === 'cache_read' && wrong.includes(day) ? RATES.input : RATES[name]) * rateTimes,
    })),
  );
  await superuser.query(
    `insert into billing_rows (org_id, source_id, row_no, feed, report, provider, provider_account_id, day, period_start, period_end,
       charge_category, line_item, observable, model, token_class, is_batch, quantity, quantity_unit, amount_usd, currency, original_amount)
     select $1::uuid, $2::uuid, row_number() over (), f.feed, f.report, 'openai', $3::text, r.day, r.day, r.day + 1, 'usage', $5 || ', ' || r.name, true,
       $5, r.name, false, case when f.feed = 'usage' then r.tokens end, 'tokens', case when f.feed = 'cost' then r.tokens * r.rate / 1000000 end, 'USD',
       case when f.feed = 'cost' then r.tokens * r.rate / 1000000 end
     from jsonb_to_recordset($4::jsonb) as r(day date, name text, tokens numeric, rate numeric),
       (values ('cost', ''), ('usage', 'completions')) f(feed, report)`,
    [orgId, id, account, JSON.stringify(rows), MODEL],
  );
  await superuser.query(
    `insert into billing_days (org_id, source_id, provider, source_rank, source_fetched_at, provider_account_id, day, feed, report,
       charge_category, row_count, amount_usd)
     select org_id, source_id, provider, $3, '2026-10-19', provider_account_id, day, feed, report, charge_category, count(*), coalesce(sum(amount_usd), 0)
     from billing_rows where org_id = $1 and source_id = $2 group by 1, 2, 3, 6, 7, 8, 9, 10`,
    [orgId, id, rank],
  );
  return id;
}

/** An organization with two accounts' bills and calls of six days. */
export async function aBilledOrganization(
  api: TestApi,
  wrong: readonly string[] = [],
): Promise<TestOrganization> {
  const organization = await api.addOrganization();
  const days = Array.from({ length: DAYS }, (_, at) => dayAt(at));
  for (const account of ACCOUNTS) {
    await addBill(api, organization.orgId, {
      account,
      days,
      wrong: account === ACCOUNTS[0] ? wrong : [],
    });
    for (const day of [shiftDay(FIRST_DAY, -1), ...days])
      await addCalls(api, organization.orgId, { day, account });
  }
  return organization;
}

export interface Runs {
  /** Starts a run, which `finish` ends. */
  begin(organization: TestOrganization, period?: '7d' | '30d'): Promise<RunWork>;
  match(work: RunWork): Promise<number>;
  /** False while another run explains. */
  explain(work: RunWork): Promise<boolean>;
  finish(work: RunWork): Promise<GapRun>;
  /** A whole run; how many provider-days it compared. */
  run(organization: TestOrganization, period?: '7d' | '30d'): Promise<{ units: number; run: GapRun }>;
  /** A run that takes nothing over from earlier ones. */
  runFully(organization: TestOrganization): Promise<void>;
  published(organization: TestOrganization): Promise<unknown>;
}

/** Gap runs at a fixed time. */
export async function gapRunsOf(api: TestApi, nowMicros: () => bigint = () => NOW_MICROS): Promise<Runs> {
  const { database, superuser } = api.database;
  const prices = await PriceBookHolder.open(database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  const deps = { database, prices, nowMicros, logger: pino({ level: 'silent' }) };
  const runs: Runs = {
    async begin(organization, period = '30d') {
      const id = randomUUID();
      const { start, end } = gapWindow(period, nowMicros());
      const window = { windowStartMicros: start, windowEndMicros: end };
      await insertRun(organization.orgDb, GAP_RUNS, { id, period, provider: null, ...window });
      await takeGapRunTurn(organization.orgDb, id, 2);
      return runWork(deps, { orgId: organization.orgId, runId: id });
    },
    async match(work) {
      const { units } = await planRun(work);
      for (let ordinal = 0; ordinal < units; ordinal += 1) await matchUnit(work, ordinal);
      return units;
    },
    async explain(work) {
      const plan = await planExplanations(work);
      if (plan.turn !== 'go') return false;
      for (let ordinal = 0; ordinal < plan.accounts; ordinal += 1) await explainRunAccount(work, ordinal);
      return true;
    },
    async finish(work) {
      await publishRun(work);
      await endRun(work.orgDb, 'gap_run', work.runId, { status: 'succeeded' });
      return (await findRun(work.orgDb, GAP_RUNS, work.runId)) as GapRun;
    },
    async run(organization, period) {
      const work = await runs.begin(organization, period);
      const units = await runs.match(work);
      await runs.explain(work);
      return { units, run: await runs.finish(work) };
    },
    async runFully(organization) {
      await superuser.query(`update gap_run_units set input_mark = '' where org_id = $1`, [
        organization.orgId,
      ]);
      await superuser.query('update explained_accounts set stale = true where org_id = $1', [
        organization.orgId,
      ]);
      await runs.run(organization);
    },
    async published({ orgId }) {
      const rows = async (sql: string) => (await superuser.query(sql, [orgId])).rows.map(({ row }) => row);
      return {
        buckets: await rows(
          `select to_jsonb(b) - 'run_id' as row from gap_published p
           join gap_buckets b on b.org_id = p.org_id and b.run_id = p.run_id and b.provider = p.provider
             and b.provider_account_id = p.provider_account_id and b.bucket >= p.day and b.bucket < p.day + 1
           where p.org_id = $1 order by b.provider, b.provider_account_id, b.width, b.bucket, b.model`,
        ),
        pointers: await rows(
          `select to_jsonb(p) - 'run_id' - 'published_at' as row from gap_published p where org_id = $1 order by provider, day, provider_account_id`,
        ),
        explanations: await rows(
          `select to_jsonb(e) - 'run_id' - 'explained_at' as row from series_explanations e where org_id = $1 order by provider, provider_account_id, model`,
        ),
        findings: await rows(
          `select to_jsonb(f) - 'run_id' - 'found_at' - 'updated_at' as row from findings f where org_id = $1 order by id`,
        ),
        days: await rows(
          `select to_jsonb(d) as row from finding_days d where org_id = $1 order by finding_id, day`,
        ),
      };
    },
  };
  return runs;
}
