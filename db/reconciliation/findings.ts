import type { FindingStatus } from '../../domain/claims/decision.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import type {
  Blame,
  Direction,
  FindingDay,
  FindingLine,
  Finding as FoundFinding,
  Gate,
} from '../../domain/reconciliation/inference/finding.js';
import {
  type FindingLineText,
  linesFromText,
} from '../../domain/reconciliation/inference/findingLineText.js';
import type { Grade, Visibility, WaterfallStep } from '../../domain/reconciliation/matching/cells.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import type { OrgDb, SqlValue } from '../orgDb.js';

/** A finding as it is stored, without its days, lines and evidence. */
export interface StoredFinding {
  id: string;
  /** The run that last wrote it: a gap run, or a run of the invoice. */
  runId: string;
  /** The invoice that it was found in; null: the engine found it by comparing bills with calls. */
  invoiceId: string | null;
  provider: string;
  /** '' where calls of unknown account were compared with the sum over all. */
  accountId: string;
  model: string;
  kind: FindingKind;
  variant: string;
  direction: Direction;
  blame: Blame;
  claimable: boolean;
  /** Both inclusive, `YYYY-MM-DD`. */
  firstDay: string;
  lastDay: string;
  billedPico: Pico;
  expectedPico: Pico;
  impactPico: Pico;
  recoverablePico: Pico;
  grade: Grade;
  probability: number;
  matchProbability: number;
  visibility: Visibility;
  provisional: boolean;
  critical: boolean;
  missing: readonly Gate[];
  next: FoundFinding['next'];
  cause: string;
  reason: string;
  advice: readonly string[];
  weightSet: string;
  status: FindingStatus;
  decidedAtMicros: bigint | null;
  decidedBy: string | null;
  decisionReason: string | null;
  foundAtMicros: bigint;
  updatedAtMicros: bigint;
  /** The newest dispute over it, else one that its days are in under another finding or kind; null where there is none. */
  disputeId: string | null;
}

/** What a finding rests on. */
export interface FindingEvidence {
  lines: FindingLine[];
  waterfall: readonly WaterfallStep[];
}

interface FindingRow {
  id: string;
  run_id: string;
  invoice_id: string | null;
  provider: string;
  provider_account_id: string;
  model: string;
  kind: FindingKind;
  variant: string;
  direction: Direction;
  blame: Blame;
  claimable: boolean;
  first_day: string;
  last_day: string;
  billed_usd: Pico;
  expected_usd: Pico;
  impact_usd: Pico;
  recoverable_usd: Pico;
  grade: Grade;
  probability: number;
  match_probability: number;
  visibility: Visibility;
  provisional: boolean;
  critical: boolean;
  missing_gates: Gate[];
  next_best: FoundFinding['next'];
  cause: string;
  reason: string;
  advice: string[];
  weight_set: string;
  status: FindingStatus;
  decided_at: bigint | null;
  decided_by: string | null;
  decision_reason: string | null;
  found_at: bigint;
  updated_at: bigint;
  dispute_id: string | null;
}

const NAMES = [
  ...[
    'id',
    'invoice_id',
    'provider',
    'provider_account_id',
    'model',
    'kind',
    'variant',
    'direction',
    'blame',
  ],
  ...['claimable', 'first_day', 'last_day', 'billed_usd', 'expected_usd', 'impact_usd', 'recoverable_usd'],
  ...['grade', 'probability', 'match_probability', 'visibility', 'provisional', 'critical', 'missing_gates'],
  ...[
    'next_best',
    'cause',
    'reason',
    'advice',
    'weight_set',
    'status',
    'decided_at',
    'decided_by',
    'decision_reason',
  ],
  ...['found_at', 'updated_at'],
];

/**
 * Columns of a finding `f` of organization $1, with the newest dispute over it, else one over the same explanation of one
 * of its days, else the one that holds its days under another kind.
 */
const FINDING_COLUMNS = `${NAMES.map((name) => `f.${name}`).join(', ')}, coalesce(f.run_id, f.invoice_run_id) as run_id,
  coalesce((select d.id from disputes d where d.org_id = $1 and d.finding_id = f.id order by d.opened_at desc, d.id desc limit 1),
    (select t.dispute_id from finding_days n join dispute_days t on t.org_id = $1 and t.provider = f.provider
       and t.provider_account_id = f.provider_account_id and t.model = f.model and t.kind = f.kind and t.variant = f.variant and t.day = n.day
     where n.org_id = $1 and n.finding_id = f.id order by t.live desc, t.day desc, t.dispute_id limit 1), f.held_by) as dispute_id`;

function fromFindingRow(row: FindingRow): StoredFinding {
  return {
    id: row.id,
    runId: row.run_id,
    invoiceId: row.invoice_id,
    provider: row.provider,
    accountId: row.provider_account_id,
    model: row.model,
    kind: row.kind,
    variant: row.variant,
    direction: row.direction,
    blame: row.blame,
    claimable: row.claimable,
    firstDay: row.first_day,
    lastDay: row.last_day,
    billedPico: row.billed_usd,
    expectedPico: row.expected_usd,
    impactPico: row.impact_usd,
    recoverablePico: row.recoverable_usd,
    grade: row.grade,
    probability: row.probability,
    matchProbability: row.match_probability,
    visibility: row.visibility,
    provisional: row.provisional,
    critical: row.critical,
    missing: row.missing_gates,
    next: row.next_best,
    cause: row.cause,
    reason: row.reason,
    advice: row.advice,
    weightSet: row.weight_set,
    status: row.status,
    decidedAtMicros: row.decided_at,
    decidedBy: row.decided_by,
    decisionReason: row.decision_reason,
    foundAtMicros: row.found_at,
    updatedAtMicros: row.updated_at,
    disputeId: row.dispute_id,
  };
}

export interface FindingFilter {
  provider?: string | undefined;
  accountId?: string | undefined;
  invoiceId?: string | undefined;
  model?: string | undefined;
  kind?: FindingKind | undefined;
  grade?: Grade | undefined;
  blame?: Blame | undefined;
  direction?: Direction | undefined;
  status?: FindingStatus | undefined;
  provisional?: boolean | undefined;
  /** Findings with a day in [fromDay, toDay], both inclusive. */
  fromDay?: string | undefined;
  toDay?: string | undefined;
  minImpactPico?: Pico | undefined;
  /** Those alone that people decide on (`isForReview` of domain/claims/financial). */
  forReview?: boolean | undefined;
}

/** Where a row stands in a list that is ordered by size. */
export interface SizePosition {
  sizePico: Pico;
  id: string;
}

/** Conditions on findings `f` of organization $1; adds what they bind to `values`. */
export function findingConditions(filter: FindingFilter, values: SqlValue[]): string[] {
  const conditions = ['f.org_id = $1'];
  const add = (value: SqlValue | undefined, condition: (bound: string) => string) => {
    if (value !== undefined) conditions.push(condition(`$${values.push(value)}`));
  };
  add(filter.provider, (it) => `f.provider = ${it}`);
  add(filter.accountId, (it) => `f.provider_account_id = ${it}`);
  add(filter.invoiceId, (it) => `f.invoice_id = ${it}::uuid`);
  add(filter.model, (it) => `f.model = ${it}`);
  add(filter.kind, (it) => `f.kind = ${it}`);
  add(filter.grade, (it) => `f.grade = ${it}`);
  add(filter.blame, (it) => `f.blame = ${it}`);
  add(filter.direction, (it) => `f.direction = ${it}`);
  add(filter.status, (it) => `f.status = ${it}`);
  add(filter.provisional, (it) => `f.provisional = ${it}::boolean`);
  add(filter.fromDay, (it) => `f.last_day >= ${it}::date`);
  add(filter.toDay, (it) => `f.first_day <= ${it}::date`);
  if (filter.minImpactPico !== undefined && filter.minImpactPico > 0n)
    add(decimalFromPico(filter.minImpactPico), (it) => `abs(f.impact_usd) >= ${it}::numeric`);
  if (filter.forReview)
    conditions.push(`not f.provisional and (f.blame = 'provider' or f.kind = 'unexplained')`);
  return conditions;
}

/** What stands behind a position: smaller, or as large with a later id. */
function behind({ sizePico, id }: SizePosition, values: SqlValue[]): string {
  const size = `$${values.push(decimalFromPico(sizePico))}::numeric`;
  const later = `f.id > $${values.push(id)}::uuid`;
  return `abs(f.impact_usd) <= ${size} and (abs(f.impact_usd) < ${size} or ${later})`;
}

/** A page of findings, the largest first whichever way they are, then by id. */
export async function listFindings(
  orgDb: OrgDb,
  filter: FindingFilter,
  page: { limit: number; offset: number; after?: SizePosition | undefined },
): Promise<StoredFinding[]> {
  const values: SqlValue[] = [orgDb.orgId];
  const conditions = findingConditions(filter, values);
  if (page.after) conditions.push(behind(page.after, values));
  const rows = await orgDb.rows<FindingRow>(
    `select ${FINDING_COLUMNS} from findings f where ${conditions.join(' and ')}
     order by abs(f.impact_usd) desc, f.id limit $${values.push(page.limit)} offset $${values.push(page.offset)}`,
    values,
  );
  return rows.map(fromFindingRow);
}

export async function findFinding(orgDb: OrgDb, id: string): Promise<StoredFinding | undefined> {
  const rows = await orgDb.rows<FindingRow>(
    `select ${FINDING_COLUMNS} from findings f where f.org_id = $1 and f.id = $2::uuid`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromFindingRow(rows[0]);
}

/** As `findFinding`, and nobody else decides on it or replaces it until the transaction ends. */
export async function lockFinding(inside: OrgDb, id: string): Promise<StoredFinding | undefined> {
  const held = await inside.rows('select 1 from findings where org_id = $1 and id = $2::uuid for update', [
    inside.orgId,
    id,
  ]);
  // Read by a statement of its own: its snapshot is from after the lock, so that a dispute opened meanwhile is seen.
  return held.length === 0 ? undefined : findFinding(inside, id);
}

/** The classes of a finding's computation, and its evidence in bits; undefined where there is no such finding. */
export async function findFindingEvidence(orgDb: OrgDb, id: string): Promise<FindingEvidence | undefined> {
  const rows = await orgDb.rows<{ lines: FindingLineText[]; waterfall: WaterfallStep[] }>(
    'select lines, waterfall from findings where org_id = $1 and id = $2::uuid',
    [orgDb.orgId, id],
  );
  return rows[0] && { lines: linesFromText(rows[0].lines), waterfall: rows[0].waterfall };
}

export interface DayRow {
  day: string;
  billed_usd: Pico;
  expected_usd: Pico;
  impact_usd: Pico;
  rate_usd: Pico;
  volume_usd: Pico;
  own_pricing_usd: Pico;
}

/** The money of a day, of a finding as of a dispute. */
export function amountsOfDay(row: DayRow): Omit<FindingDay, 'probability'> {
  return {
    day: row.day,
    billedPico: row.billed_usd,
    expectedPico: row.expected_usd,
    impactPico: row.impact_usd,
    ratePico: row.rate_usd,
    volumePico: row.volume_usd,
    ownPricingPico: row.own_pricing_usd,
  };
}

/** A finding's days in their order. */
export async function listFindingDays(orgDb: OrgDb, id: string): Promise<FindingDay[]> {
  const rows = await orgDb.rows<DayRow & { probability: number }>(
    `select day, billed_usd, expected_usd, impact_usd, rate_usd, volume_usd, own_pricing_usd, probability
     from finding_days where org_id = $1 and finding_id = $2::uuid order by day`,
    [orgDb.orgId, id],
  );
  return rows.map((row) => ({ ...amountsOfDay(row), probability: row.probability }));
}

/** Records what somebody has decided on a finding, in the transaction that holds it. */
export async function recordDecision(
  inside: OrgDb,
  id: string,
  decision: { status: 'confirmed' | 'dismissed'; by: string; reason: string | null },
): Promise<void> {
  await inside.run(
    `update findings set status = $3, decided_at = now(), decided_by = $4, decision_reason = $5, held_by = null
     where org_id = $1 and id = $2::uuid`,
    [inside.orgId, id, decision.status, decision.by, decision.reason],
  );
}
