import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { GapBucket, RateMismatch } from '../../domain/reconciliation/cells.js';
import { tokensOf } from '../../domain/reconciliation/coverage.js';
import type { StoredMismatch } from '../../domain/reconciliation/mergeMismatches.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { countGapRunUnits } from './gapRuns.js';

type Column = readonly [
  name: string,
  type: string,
  quoted: boolean,
  of: (bucket: GapBucket) => string | number | boolean | null,
];

const decimal = (value: Pico | null) => (value === null ? null : decimalFromPico(value));
/** Bigints of the evidence as decimal texts: JSON numbers would lose digits. */
const evidence = (value: unknown) =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? decimalFromPico(part) : part));

const COLUMNS: readonly Column[] = [
  ['width', 'text', true, (b) => b.width],
  ['bucket', 'timestamptz', true, (b) => isoFromMicros(b.startMicros)],
  ['provider_account_id', 'text', true, (b) => b.accountId],
  ['model', 'text', true, (b) => b.model],
  ['match_status', 'text', true, (b) => b.matchStatus],
  ['grade', 'text', true, (b) => b.grade],
  ['confidence_score', 'float8', false, (b) => b.confidenceScore],
  ['visibility', 'text', true, (b) => b.visibility],
  ['provisional', 'bool', false, (b) => b.provisional],
  ['flagged', 'bool', false, (b) => b.flagged],
  ['reason', 'text', true, (b) => b.reason],
  ['gap_minutes', 'int4', false, (b) => b.gapMinutes],
  ['unobserved_minutes', 'int4', false, (b) => b.unobservedMinutes],
  ['event_count', 'int8', false, (b) => b.eventCount],
  ['billed_tokens', 'numeric', false, (b) => decimal(tokensOf(b.lines).billed)],
  ['observed_tokens', 'numeric', false, (b) => decimal(tokensOf(b.lines).observed)],
  ['covered_tokens', 'numeric', false, (b) => decimal(tokensOf(b.lines).covered)],
  ['provider_cost_usd', 'numeric', false, (b) => decimal(b.providerCostPico)],
  ['our_cost_usd', 'numeric', false, (b) => decimal(b.ourCostPico)],
  ['expected_cost_usd', 'numeric', false, (b) => decimal(b.expectedCostPico)],
  ['rate_usd', 'numeric', false, (b) => decimal(b.ratePico)],
  ['volume_usd', 'numeric', false, (b) => decimal(b.volumePico)],
  ['own_pricing_usd', 'numeric', false, (b) => decimal(b.ownPricingPico)],
  ['matched_usd', 'numeric', false, (b) => decimal(b.matchedPico)],
  ['cells', 'jsonb', true, (b) => evidence(b.lines)],
  ['waterfall', 'jsonb', true, (b) => evidence(b.waterfall)],
];
const NAMES = COLUMNS.map(([name]) => name).join(', ');
const INSERT_BUCKETS = `insert into gap_buckets (org_id, run_id, provider, ${NAMES})
select $1::uuid, $2::uuid, $3::text, ${NAMES} from unnest(${COLUMNS.map(([, type], at) => `$${at + 4}::${type}[]`).join(', ')}) as t(${NAMES})`;

export interface UnitResult {
  ordinal: number;
  provider: string;
  day: string;
  buckets: readonly GapBucket[];
  rateMismatches: readonly RateMismatch[];
  /** By account: the sources that counted; '' for the buckets over all accounts. */
  countedSources: Readonly<Record<string, string>>;
}

/** Stores what a unit found, in place of what an earlier attempt stored. */
export async function recordUnitResult(orgDb: OrgDb, runId: string, unit: UnitResult): Promise<void> {
  await orgDb.transaction(async (inside) => {
    await inside.run(
      `delete from gap_buckets where org_id = $1 and run_id = $2 and provider = $3 and bucket >= $4::date and bucket < $4::date + 1`,
      [inside.orgId, runId, unit.provider, unit.day],
    );
    if (unit.buckets.length > 0) {
      const columns = COLUMNS.map(([, , quoted, of]) => {
        const values = unit.buckets.map(of);
        return quoted ? textArray(values as (string | null)[]) : plainArray(values);
      });
      await inside.run(INSERT_BUCKETS, [inside.orgId, runId, unit.provider, ...columns]);
    }
    await inside.run(
      `update gap_run_units set status = 'done', error_message = null, rate_mismatches = $4::jsonb, counted_sources = $5::jsonb
       where org_id = $1 and run_id = $2 and ordinal = $3`,
      [
        inside.orgId,
        runId,
        unit.ordinal,
        storedMismatches(unit.rateMismatches),
        JSON.stringify(unit.countedSources),
      ],
    );
    await countGapRunUnits(inside, runId);
  });
}

function storedMismatches(mismatches: readonly RateMismatch[]): string {
  return JSON.stringify(mismatches, (_, part: unknown) =>
    typeof part === 'bigint' ? part.toString() : part,
  );
}

export interface FinishedUnit {
  provider: string;
  day: string;
  status: string;
  errorMessage: string | null;
  rateMismatches: StoredMismatch[];
}

/** A run's units in their order, with what the bill alone showed. */
export async function listFinishedUnits(orgDb: OrgDb, runId: string): Promise<FinishedUnit[]> {
  const rows = await orgDb.rows<{
    provider: string;
    day: string;
    status: string;
    error_message: string | null;
    rate_mismatches: StoredMismatch[];
  }>(
    `select provider, day, status, error_message, rate_mismatches from gap_run_units where org_id = $1 and run_id = $2 order by ordinal`,
    [orgDb.orgId, runId],
  );
  return rows.map((row) => ({
    provider: row.provider,
    day: row.day,
    status: row.status,
    errorMessage: row.error_message,
    rateMismatches: row.rate_mismatches,
  }));
}

/**
 * Points every (provider, account, day) that the run matched at the run, and the account-wide buckets of the day with
 * them. In one statement, so a reader sees all of the run or nothing.
 */
export async function publishGapRunDays(orgDb: OrgDb, runId: string): Promise<void> {
  await orgDb.run(
    `insert into gap_published (org_id, provider, provider_account_id, day, run_id, counted_sources)
     select u.org_id, u.provider, s.key, u.day, u.run_id, s.value
     from gap_run_units u cross join lateral jsonb_each_text(u.counted_sources) s
     where u.org_id = $1 and u.run_id = $2 and u.status = 'done'
     on conflict (org_id, provider, day, provider_account_id) do update
       set run_id = excluded.run_id, counted_sources = excluded.counted_sources, published_at = now()`,
    [orgDb.orgId, runId],
  );
}

/** Buckets of one width that a run found, and how many of them are flagged. */
export async function countRunBuckets(
  orgDb: OrgDb,
  runId: string,
): Promise<{ total: number; flagged: number }> {
  const rows = await orgDb.rows<{ total: number; flagged: number }>(
    `select count(*)::bigint as total, (count(*) filter (where flagged))::bigint as flagged
     from gap_buckets where org_id = $1 and run_id = $2 and width = 'day'`,
    [orgDb.orgId, runId],
  );
  return rows[0] ?? { total: 0, flagged: 0 };
}
