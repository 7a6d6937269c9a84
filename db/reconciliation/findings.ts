import type { FindingStatus } from '../../domain/claims/financialSummary.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { PublishedFinding } from '../../domain/reconciliation/carryFindings.js';
import {
  type Blame,
  type Direction,
  type Finding,
  type FindingDay,
  type FindingLine,
  type FindingLineText,
  type Finding as FoundFinding,
  type Gate,
  linesFromText,
  linesToText,
  reasonOf,
} from '../../domain/reconciliation/engine/index.js';

import type { Grade, Visibility, WaterfallStep } from '../../domain/reconciliation/matching/cells.js';
import type { DisputedDay } from '../../domain/reconciliation/reconcileDays.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import { column, defineEntity } from '../entity.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import type { AccountName } from './explanations.js';

/** A stored finding, without its days, lines and evidence. */
export interface StoredFinding {
  id: string;
  /** The run that last wrote it: a gap run, or a run of the invoice. */
  runId: string;
  /** The invoice that it was found in; null: the reconciliation engine found it by comparing bills with calls. */
  invoiceId: string | null;
  provider: string;
  /** '' where calls of unknown account were compared with the sum over all accounts. */
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
  /** The newest dispute over it, else one that has its days under another finding or kind; null: none. */
  disputeId: string | null;
}

export interface FindingEvidence {
  lines: FindingLine[];
  waterfall: readonly WaterfallStep[];
}

/**
 * A finding `f` of organization $1; `disputeId` is the newest over it or its explanation, or the one that has its days.
 */
const FINDING = defineEntity<StoredFinding>('findings', {
  id: column('f.id'),
  runId: column('coalesce(f.run_id, f.invoice_run_id)'),
  invoiceId: column('f.invoice_id'),
  provider: column('f.provider'),
  accountId: column('f.provider_account_id'),
  model: column('f.model'),
  kind: column('f.kind'),
  variant: column('f.variant'),
  direction: column('f.direction'),
  blame: column('f.blame'),
  claimable: column('f.claimable'),
  firstDay: column('f.first_day'),
  lastDay: column('f.last_day'),
  billedPico: column('f.billed_usd'),
  expectedPico: column('f.expected_usd'),
  impactPico: column('f.impact_usd'),
  recoverablePico: column('f.recoverable_usd'),
  grade: column('f.grade'),
  probability: column('f.probability'),
  matchProbability: column('f.match_probability'),
  visibility: column('f.visibility'),
  provisional: column('f.provisional'),
  critical: column('f.critical'),
  missing: column('f.missing_gates'),
  next: column('f.next_best'),
  cause: column('f.cause'),
  reason: column('f.reason'),
  advice: column('f.advice'),
  weightSet: column('f.weight_set'),
  status: column('f.status'),
  decidedAtMicros: column('f.decided_at'),
  decidedBy: column('f.decided_by'),
  decisionReason: column('f.decision_reason'),
  foundAtMicros: column('f.found_at'),
  updatedAtMicros: column('f.updated_at'),
  disputeId:
    column(`coalesce((select d.id from disputes d where d.org_id = $1 and d.finding_id = f.id order by d.opened_at desc, d.id desc limit 1),
    (select t.dispute_id from finding_days n join dispute_days t on t.org_id = $1 and t.provider = f.provider
       and t.provider_account_id = f.provider_account_id and t.model = f.model and t.kind = f.kind and t.variant = f.variant and t.day = n.day
     where n.org_id = $1 and n.finding_id = f.id order by t.live desc, t.day desc, t.dispute_id limit 1), f.held_by)`),
});

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
  /** Only findings that people decide on (`isForReview` of domain/claims/financial). */
  forReview?: boolean | undefined;
}

/** A row's position in a list that is ordered by size. */
export interface SizePosition {
  sizePico: Pico;
  id: string;
}

/** Conditions on findings `f` of organization $1; pushes their values to `values`. */
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

/** Rows after a position: smaller, or of equal size with a later id. */
function behind({ sizePico, id }: SizePosition, values: SqlValue[]): string {
  const size = `$${values.push(decimalFromPico(sizePico))}::numeric`;
  const later = `f.id > $${values.push(id)}::uuid`;
  return `abs(f.impact_usd) <= ${size} and (abs(f.impact_usd) < ${size} or ${later})`;
}

export async function listFindings(
  orgDb: OrgDb,
  filter: FindingFilter,
  page: { limit: number; offset: number; after?: SizePosition | undefined },
): Promise<StoredFinding[]> {
  const values: SqlValue[] = [orgDb.orgId];
  const conditions = findingConditions(filter, values);
  if (page.after) conditions.push(behind(page.after, values));
  return orgDb.rows<StoredFinding>(
    `select ${FINDING.columns} from findings f where ${conditions.join(' and ')}
     order by abs(f.impact_usd) desc, f.id limit $${values.push(page.limit)} offset $${values.push(page.offset)}`,
    values,
  );
}

export async function findFinding(orgDb: OrgDb, id: string): Promise<StoredFinding | undefined> {
  const [finding] = await orgDb.rows<StoredFinding>(
    `select ${FINDING.columns} from findings f where f.org_id = $1 and f.id = $2::uuid`,
    [orgDb.orgId, id],
  );
  return finding;
}

/** `findFinding` with a lock: the finding can be neither decided on nor replaced until the transaction ends. */
export async function lockFinding(inside: OrgDb, id: string): Promise<StoredFinding | undefined> {
  const held = await inside.rows('select 1 from findings where org_id = $1 and id = $2::uuid for update', [
    inside.orgId,
    id,
  ]);
  // Read by a separate statement, whose snapshot is from after the lock, so that a dispute opened meanwhile is
  // included.
  return held.length === 0 ? undefined : findFinding(inside, id);
}

export async function findFindingEvidence(orgDb: OrgDb, id: string): Promise<FindingEvidence | undefined> {
  const rows = await orgDb.rows<{ lines: FindingLineText[]; waterfall: WaterfallStep[] }>(
    'select lines, waterfall from findings where org_id = $1 and id = $2::uuid',
    [orgDb.orgId, id],
  );
  return rows[0] && { lines: linesFromText(rows[0].lines), waterfall: rows[0].waterfall };
}

export type DayAmounts = Omit<FindingDay, 'probability'>;

/** Dollar columns of a day `n`, of a finding or a dispute. */
export const DAY_AMOUNTS = `n.day, n.billed_usd as "billedPico", n.expected_usd as "expectedPico", n.impact_usd as "impactPico",
  n.rate_usd as "ratePico", n.volume_usd as "volumePico", n.own_pricing_usd as "ownPricingPico"`;

export async function listFindingDays(orgDb: OrgDb, id: string): Promise<FindingDay[]> {
  return orgDb.rows<FindingDay>(
    `select ${DAY_AMOUNTS}, n.probability from finding_days n where n.org_id = $1 and n.finding_id = $2::uuid order by n.day`,
    [orgDb.orgId, id],
  );
}

/** Records a decision on a finding, in the transaction that has locked it. */
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

/** Writes findings, for the run that publishes them; findings.ts reads and decides on them. */

/** Published findings of an account with days from `fromDay` on, locked against decisions. */
export async function listFindingsOfAccount(
  orgDb: OrgDb,
  account: AccountName,
  fromDay: string,
): Promise<PublishedFinding[]> {
  return orgDb.rows<PublishedFinding>(
    `${PUBLISHED_FINDING} where f.org_id = $1 and f.provider = $2 and f.provider_account_id = $3 and f.last_day >= $4::date
       and f.invoice_id is null order by f.id for update of f`,
    [orgDb.orgId, account.provider, account.accountId, fromDay],
  );
}

/** The published findings of one invoice, locked against decisions. */
export async function listFindingsOfInvoice(inside: OrgDb, invoiceId: string): Promise<PublishedFinding[]> {
  return inside.rows<PublishedFinding>(
    `${PUBLISHED_FINDING} where f.org_id = $1 and f.invoice_id = $2 order by f.id for update of f`,
    [inside.orgId, invoiceId],
  );
}

const PUBLISHED_FINDING = `select f.id, f.model, f.kind, f.direction, case when f.held_by is null then f.status else 'open' end as status,
    coalesce((select array_agg(d.day::text order by d.day) from finding_days d where d.org_id = $1 and d.finding_id = f.id), '{}') as days
  from findings f`;

/** The given days that are in disputes over the reconciliation engine's findings, locked against resolution. */
export async function listDisputedDays(
  inside: OrgDb,
  account: AccountName,
  days: readonly string[],
): Promise<DisputedDay[]> {
  return inside.rows<DisputedDay>(
    `select d.dispute_id as "disputeId", p.finding_id as "findingId", d.model, d.day, d.kind, d.variant, d.live
     from dispute_days d join disputes p on p.org_id = $1 and p.id = d.dispute_id
     where d.org_id = $1 and d.provider = $2 and d.provider_account_id = $3 and d.day = any($4::date[])
       and not exists (select from findings f where f.org_id = $1 and f.id = p.finding_id and f.invoice_id is not null)
     order by d.dispute_id, d.day for share of d`,
    [inside.orgId, account.provider, account.accountId, plainArray(days)],
  );
}

/** A finding with the id under which it is published. */
export interface IdentifiedFinding {
  id: string;
  /** The finding whose decision applies while this one is undecided; null: none. */
  decisionOf: string | null;
  /** The dispute that has its days under another kind. */
  heldBy: string | null;
  finding: Finding;
}

const COLUMNS: readonly (readonly [name: string, type: string, of: (finding: Finding) => unknown])[] = [
  ['provider', 'text', (f) => f.provider],
  ['provider_account_id', 'text', (f) => f.accountId],
  ['model', 'text', (f) => f.model],
  ['kind', 'text', (f) => f.kind],
  ['variant', 'text', (f) => f.variant],
  ['direction', 'text', (f) => f.direction],
  ['blame', 'text', (f) => f.blame],
  ['claimable', 'boolean', (f) => f.claimable],
  ['first_day', 'date', (f) => f.days[0]?.day],
  ['last_day', 'date', (f) => f.days.at(-1)?.day],
  ['billed_usd', 'numeric', (f) => decimalFromPico(sum(f.days.map((day) => day.billedPico)))],
  ['expected_usd', 'numeric', (f) => decimalFromPico(sum(f.days.map((day) => day.expectedPico)))],
  ['impact_usd', 'numeric', (f) => decimalFromPico(f.impactPico)],
  ['recoverable_usd', 'numeric', (f) => decimalFromPico(f.recoverablePico)],
  ['grade', 'text', (f) => f.grade],
  ['probability', 'float8', (f) => f.probability],
  ['match_probability', 'float8', (f) => f.matchProbability],
  ['visibility', 'text', (f) => f.visibility],
  ['provisional', 'boolean', (f) => f.provisional],
  ['critical', 'boolean', (f) => f.critical],
  ['missing_gates', 'jsonb', (f) => f.missing],
  ['next_best', 'jsonb', (f) => f.next],
  ['lines', 'jsonb', (f) => linesToText(f.lines)],
  ['waterfall', 'jsonb', (f) => f.waterfall],
  ['cause', 'text', (f) => f.cause],
  ['reason', 'text', (f) => reasonOf(f, f.days)],
  ['advice', 'jsonb', (f) => f.advice],
  ['weight_set', 'text', (f) => f.weightSet],
];
const NAMES = COLUMNS.map(([name]) => name);
const TYPED = COLUMNS.map(([name, type]) => `${name} ${type}`).join(', ');
const tuple = (table: string) => `(${NAMES.map((name) => `${table}.${name}`).join(', ')})`;

const DECIDED = ['decided_at', 'decided_by', 'decision_reason', 'held_by'];
const decidedTuple = (table: string) =>
  `(${['status', ...DECIDED].map((name) => `${table}.${name}`).join(', ')})`;
/** People's decision on a published finding `f` itself; a finding whose days a dispute of another kind has is open. */
const OWN_STATUS = `case when f.held_by is not null then 'open' when f.status = 'gone' then f.decided_as else f.status end`;

// An unchanged finding is not written, so that its last change stays visible. A finding that had disappeared keeps its
// decision; an undecided one takes the decision of the finding that it was part of, if any.
const UPSERT = `
insert into findings as f (org_id, id, run_id, invoice_id, invoice_run_id, ${NAMES.join(', ')}, status, ${DECIDED.join(', ')})
select $1::uuid, t.id, $2::uuid, $4::uuid, $5::uuid, ${NAMES.map((name) => (name === 'next_best' ? `nullif(t.next_best, 'null'::jsonb)` : `t.${name}`)).join(', ')},
  coalesce(o.status, 'open'), o.decided_at, o.decided_by, o.decision_reason, case when o.status is not null then t.held_by end
from jsonb_to_recordset($3::jsonb) as t(id uuid, decision_of uuid, held_by uuid, ${TYPED})
left join lateral (
  select case when d.status = 'gone' then d.decided_as else d.status end as status, d.decided_at, d.decided_by, d.decision_reason
  from findings d where d.org_id = $1 and d.id = t.decision_of and d.id <> t.id and d.status <> 'open' and d.held_by is null) o on true
on conflict (org_id, id) do update set run_id = excluded.run_id, invoice_run_id = excluded.invoice_run_id, ${NAMES.map((name) => `${name} = excluded.${name}`).join(', ')},
  status = case when ${OWN_STATUS} = 'open' then excluded.status else ${OWN_STATUS} end,
  ${DECIDED.map((name) => `${name} = case when ${OWN_STATUS} = 'open' then excluded.${name} else f.${name} end`).join(', ')},
  decided_as = null, updated_at = now()
where f.status = 'gone' or ${tuple('f')} is distinct from ${tuple('excluded')}
  or (${OWN_STATUS} = 'open' and ${decidedTuple('f')} is distinct from ${decidedTuple('excluded')})`;

const STORED_AMOUNTS = [
  'billed_usd',
  'expected_usd',
  'impact_usd',
  'rate_usd',
  'volume_usd',
  'own_pricing_usd',
];
const DAY_NAMES = [...STORED_AMOUNTS, 'probability'];
const dayTuple = (table: string) => `(${DAY_NAMES.map((name) => `${table}.${name}`).join(', ')})`;
const UPSERT_DAYS = `
with told as (select * from jsonb_to_recordset($2::jsonb)
    as t(finding_id uuid, day date, ${STORED_AMOUNTS.map((name) => `${name} numeric`).join(', ')}, probability float8)),
  dropped as (delete from finding_days d where d.org_id = $1 and d.finding_id = any($3::uuid[])
    and not exists (select from told where told.finding_id = d.finding_id and told.day = d.day))
insert into finding_days as d (org_id, finding_id, day, ${DAY_NAMES.join(', ')})
select $1::uuid, finding_id, day, ${DAY_NAMES.join(', ')} from told
on conflict (org_id, finding_id, day) do update set ${DAY_NAMES.map((name) => `${name} = excluded.${name}`).join(', ')}
where ${dayTuple('d')} is distinct from ${dayTuple('excluded')}`;

/** Writes the findings of an account or an invoice in the run's last transaction; `gone` ones keep their decisions. */
export async function writeFindings(
  inside: OrgDb,
  run: { gapRunId: string } | { invoiceId: string; invoiceRunId: string },
  change: {
    findings: readonly IdentifiedFinding[];
    removed: readonly string[];
    gone: readonly string[];
  },
): Promise<void> {
  const { findings, removed, gone } = change;
  if (removed.length > 0)
    await inside.run('delete from findings where org_id = $1 and id = any($2::uuid[])', [
      inside.orgId,
      plainArray(removed),
    ]);
  if (gone.length > 0)
    await inside.run(
      `update findings set decided_as = status, status = 'gone', updated_at = now()
       where org_id = $1 and id = any($2::uuid[]) and status in ('confirmed', 'dismissed')`,
      [inside.orgId, plainArray(gone)],
    );
  if (findings.length === 0) return;
  const rows = findings.map(({ id, decisionOf, heldBy, finding }) => ({
    ...{ id, decision_of: decisionOf, held_by: heldBy },
    ...Object.fromEntries(COLUMNS.map(([name, , of]) => [name, of(finding)])),
  }));
  const { gapRunId, invoiceId, invoiceRunId } = {
    ...{ gapRunId: null, invoiceId: null, invoiceRunId: null },
    ...run,
  };
  await inside.run(UPSERT, [inside.orgId, gapRunId, JSON.stringify(rows), invoiceId, invoiceRunId]);
  await inside.run(UPSERT_DAYS, [
    inside.orgId,
    JSON.stringify(findings.flatMap(dayRows)),
    plainArray(findings.map(({ id }) => id)),
  ]);
}

function dayRows({ id, finding }: IdentifiedFinding): object[] {
  return finding.days.map((day) => ({
    finding_id: id,
    day: day.day,
    billed_usd: decimalFromPico(day.billedPico),
    expected_usd: decimalFromPico(day.expectedPico),
    impact_usd: decimalFromPico(day.impactPico),
    rate_usd: decimalFromPico(day.ratePico),
    volume_usd: decimalFromPico(day.volumePico),
    own_pricing_usd: decimalFromPico(day.ownPricingPico),
    probability: day.probability,
  }));
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}
