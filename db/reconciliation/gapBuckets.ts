import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { StoredMismatch } from '../../domain/reconciliation/audit/mergeMismatches.js';
import { tokensOf } from '../../domain/reconciliation/coverage.js';
import type { ClassLine, GapBucket, RateMismatch } from '../../domain/reconciliation/matching/cells.js';
import type { OrgDb } from '../orgDb.js';
import { jsonLines, jsonLinesSql, plainArray, textArray } from '../pgArray.js';
import { countGapRunUnits } from './gapRuns.js';

type Column = readonly [
  name: string,
  type: string,
  quoted: boolean,
  of: (bucket: GapBucket) => string | number | boolean | null,
];

const decimal = (value: Pico | null) => (value === null ? null : decimalFromPico(value));
/** Quantities and amounts as decimal texts: JSON numbers would lose digits. */
const lineToJson = (line: ClassLine) => ({
  ...line,
  billedQuantity: decimal(line.billedQuantity),
  observedQuantity: decimal(line.observedQuantity),
  billedPico: decimal(line.billedPico),
  expectedOfBilledPico: decimal(line.expectedOfBilledPico),
  expectedOfObservedPico: decimal(line.expectedOfObservedPico),
});

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
];
const NAMES = COLUMNS.map(([name]) => name).join(', ');

const DOCUMENTS: readonly (readonly [name: string, of: (row: RecordedBucket) => unknown])[] = [
  ['cells', ({ bucket }) => bucket.lines.map(lineToJson)],
  ['waterfall', ({ bucket }) => bucket.waterfall],
  ['evidence', ({ evidence }) => evidence],
];
const DOCUMENT_NAMES = DOCUMENTS.map(([name]) => name).join(', ');
const DOCUMENTS_FROM = COLUMNS.length + 4;
const INSERT_BUCKETS = `insert into gap_buckets (org_id, run_id, provider, ${NAMES}, ${DOCUMENT_NAMES})
select $1::uuid, $2::uuid, $3::text, ${NAMES}, ${DOCUMENT_NAMES}
from unnest(${COLUMNS.map(([, type], at) => `$${at + 4}::${type}[]`).join(', ')},
  ${DOCUMENTS.map((_, at) => jsonLinesSql(`$${at + DOCUMENTS_FROM}`)).join(', ')}) as t(${NAMES}, ${DOCUMENT_NAMES})`;

/** A bucket with its evidence for the search for explanations; null for hourly buckets. */
export interface RecordedBucket {
  bucket: GapBucket;
  evidence: unknown;
}

export interface UnitResult {
  ordinal: number;
  provider: string;
  day: string;
  buckets: readonly RecordedBucket[];
  rateMismatches: readonly RateMismatch[];
  /** By account: the counted copies; '' for the buckets over all accounts. */
  countedSources: Readonly<Record<string, string>>;
}

/** Stores a unit's result once; another attempt has the same result. */
export async function recordUnitResult(inside: OrgDb, runId: string, unit: UnitResult): Promise<void> {
  const ended = await inside.run(
    `update gap_run_units set status = 'done', error_message = null, rate_mismatches = $4::jsonb, counted_sources = $5::jsonb
     where org_id = $1 and run_id = $2 and ordinal = $3 and status <> 'done'`,
    [
      inside.orgId,
      runId,
      unit.ordinal,
      storedMismatches(unit.rateMismatches),
      JSON.stringify(unit.countedSources),
    ],
    'gap_unit_done',
  );
  if (ended === 0) return;
  if (unit.buckets.length > 0) {
    const columns = COLUMNS.map(([, , quoted, of]) => {
      const values = unit.buckets.map(({ bucket }) => of(bucket));
      return quoted ? textArray(values as (string | null)[]) : plainArray(values);
    });
    const documents = DOCUMENTS.map(([, of]) => jsonLines(unit.buckets.map(of)));
    await inside.run(
      INSERT_BUCKETS,
      [inside.orgId, runId, unit.provider, ...columns, ...documents],
      'gap_buckets_insert',
    );
  }
  await countGapRunUnits(inside, runId);
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

export async function listFinishedUnits(orgDb: OrgDb, runId: string): Promise<FinishedUnit[]> {
  return orgDb.rows<FinishedUnit>(
    `select provider, day, status, error_message as "errorMessage", rate_mismatches as "rateMismatches"
     from gap_run_units where org_id = $1 and run_id = $2 order by ordinal`,
    [orgDb.orgId, runId],
  );
}

/**
 * Rate mismatches of the bills alone on the published days of a half-open window, by provider and day; days without any
 * are absent.
 */
export async function listPublishedMismatches(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<Pick<FinishedUnit, 'provider' | 'day' | 'rateMismatches'>[]> {
  return orgDb.rows(
    `select u.provider, u.day, u.rate_mismatches as "rateMismatches"
     from (select distinct provider, day, run_id from gap_published
       where org_id = $1 and ($2::text is null or provider = $2) and day >= $3::date and day < $4::date) p
     join gap_run_units u on u.org_id = $1 and u.run_id = p.run_id and u.provider = p.provider and u.day = p.day
     where u.rate_mismatches <> '[]' order by u.provider, u.day`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
}

/** Points the matched days at the run and deletes the units that they pointed at, in the run's last transaction. */
export async function publishGapRunDays(inside: OrgDb, runId: string): Promise<void> {
  const run = [inside.orgId, runId];
  await inside.run(
    `with replaced as (
       delete from gap_published p using gap_run_units u
       where u.org_id = $1 and u.run_id = $2 and u.status = 'done'
         and p.org_id = u.org_id and p.provider = u.provider and p.day = u.day
       returning p.provider, p.day, p.run_id)
     delete from gap_buckets b using (select distinct provider, day, run_id from replaced) r
     where b.org_id = $1 and b.run_id = r.run_id and b.run_id <> $2 and b.provider = r.provider
       and b.bucket >= r.day and b.bucket < r.day + 1`,
    run,
  );
  await inside.run(
    `insert into gap_published (org_id, provider, provider_account_id, day, run_id, counted_sources)
     select u.org_id, u.provider, s.key, u.day, u.run_id, s.value
     from gap_run_units u cross join lateral jsonb_each_text(u.counted_sources) s
     where u.org_id = $1 and u.run_id = $2 and u.status = 'done'
     on conflict (org_id, provider, day, provider_account_id) do update
       set run_id = excluded.run_id, counted_sources = excluded.counted_sources, published_at = now()`,
    run,
  );
}
