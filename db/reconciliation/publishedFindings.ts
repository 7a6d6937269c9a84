import { decimalFromPico } from '../../domain/money.js';
import type { PublishedFinding } from '../../domain/reconciliation/findings/carryFindings.js';
import type { Finding } from '../../domain/reconciliation/inference/finding.js';
import { linesToText } from '../../domain/reconciliation/inference/findingLineText.js';
import { reasonOf } from '../../domain/reconciliation/inference/words.js';
import type { DisputedDay } from '../../domain/reconciliation/separateDisputed.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import type { AccountName } from './explanationRuns.js';

/** Writing of findings by the run that publishes them; who reads and decides on them is findings.ts. */

/**
 * The engine's published findings of an account that reach into the days from `fromDay` on, those that are gone among them. Nobody
 * decides on them until the transaction ends: what somebody has decided on in between would be removed.
 */
export async function listFindingsOfAccount(
  orgDb: OrgDb,
  account: AccountName,
  fromDay: string,
): Promise<PublishedFinding[]> {
  return orgDb.rows<PublishedFinding>(
    `${PUBLISHED_FINDING} where f.org_id = $1 and f.provider = $2 and f.provider_account_id = $3 and f.last_day >= $4::date and f.invoice_id is null
     order by f.id for update of f`,
    [orgDb.orgId, account.provider, account.accountId, fromDay],
  );
}

/** The published findings of one invoice, likewise. */
export async function listFindingsOfInvoice(inside: OrgDb, invoiceId: string): Promise<PublishedFinding[]> {
  return inside.rows<PublishedFinding>(
    `${PUBLISHED_FINDING} where f.org_id = $1 and f.invoice_id = $2 order by f.id for update of f`,
    [inside.orgId, invoiceId],
  );
}

const PUBLISHED_FINDING = `select f.id, f.model, f.kind, f.direction, case when f.held_by is null then f.status else 'open' end as status,
    coalesce((select array_agg(d.day::text order by d.day) from finding_days d where d.org_id = $1 and d.finding_id = f.id), '{}') as days
  from findings f`;

/**
 * The days of an account, of those given, that disputes over the engine's findings are or were about. Nobody resolves the disputes until the transaction
 * ends: what they hold would be held by none.
 */
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
  /** The finding whose decision it takes where nobody has decided on it. */
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
/** What people have decided on a published finding `f` itself: what a dispute of another kind holds is open. */
const OWN_STATUS = `case when f.held_by is not null then 'open' when f.status = 'gone' then f.decided_as else f.status end`;

// What is found as it was is not touched: when a finding last changed can be seen. One that was gone is as it had been
// decided on; one that nobody has decided on takes the decision of the finding that it was a part of, where there is one.
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

const DAY_AMOUNTS = ['billed_usd', 'expected_usd', 'impact_usd', 'rate_usd', 'volume_usd', 'own_pricing_usd'];
const DAY_NAMES = [...DAY_AMOUNTS, 'probability'];
const dayTuple = (table: string) => `(${DAY_NAMES.map((name) => `${table}.${name}`).join(', ')})`;
const UPSERT_DAYS = `
with told as (select * from jsonb_to_recordset($2::jsonb)
    as t(finding_id uuid, day date, ${DAY_AMOUNTS.map((name) => `${name} numeric`).join(', ')}, probability float8)),
  dropped as (delete from finding_days d where d.org_id = $1 and d.finding_id = any($3::uuid[])
    and not exists (select from told where told.finding_id = d.finding_id and told.day = d.day))
insert into finding_days as d (org_id, finding_id, day, ${DAY_NAMES.join(', ')})
select $1::uuid, finding_id, day, ${DAY_NAMES.join(', ')} from told
on conflict (org_id, finding_id, day) do update set ${DAY_NAMES.map((name) => `${name} = excluded.${name}`).join(', ')}
where ${dayTuple('d')} is distinct from ${dayTuple('excluded')}`;

/**
 * Writes what a run found in an account, or in an invoice, as a part of the transaction in which it ends: findings with
 * their days, `removed` ones not at all, `gone` ones with what had been decided on them.
 */
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
    gapRunId: null,
    invoiceId: null,
    invoiceRunId: null,
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
