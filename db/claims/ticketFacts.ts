import { MONTH_REPORT } from '../../domain/billing/billedRow.js';
import type { LabelledRow, TicketFacts } from '../../domain/claims/ticketDraft.js';
import { countedRowsSql, countedSourcesSql } from '../billing/billingRows.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

/** The disputes of a claim as a ticket lists them, largest first. */
export function listTicketDisputes(
  inside: OrgDb,
  claimId: string,
): Promise<TicketFacts['disputes'][number][]> {
  return inside.rows(
    `select id, model, period_start as "periodStart", period_end as "periodEnd", amount_cents as "amountCents", reason,
       coalesce((select (g.day_offsets ->> d.provider)::integer from gap_runs g
         where g.org_id = d.org_id and g.id = (d.evidence ->> 'run_id')::uuid), 0) as "clockHours"
     from disputes d where org_id = $1 and claim_id = $2::uuid order by amount_cents desc, id`,
    [inside.orgId, claimId],
  );
}

/**
 * The labels of the present counted bill for the claimed usage. Providers also name a model by the date of its version.
 */
export function listClaimedRows(
  inside: OrgDb,
  { provider, accountId }: { provider: string; accountId: string },
  cells: readonly { day: string; model: string }[],
): Promise<LabelledRow[]> {
  return inside.rows<LabelledRow>(
    `with counted as (${countedSourcesSql(
      `d.org_id = $1 and d.provider = $2 and d.day = any($4::date[]) and ($3 = '' or d.provider_account_id = $3)
       and d.feed = 'cost' and d.charge_category = 'usage' and d.report <> '${MONTH_REPORT}'`,
    )})
     select distinct r.day, r.model, r.line_item as "lineItem", r.token_class as "tokenClass", r.is_batch as "isBatch",
       r.long_context as "longContext", r.region, r.project
     from ${countedRowsSql()} r
     where exists (select from unnest($5::text[]) as m(name)
       where r.model = m.name or starts_with(r.model, m.name || '-') or (r.model is null and r.line_item = m.name))
     order by 1, 3, 4, 8`,
    [
      ...[inside.orgId, provider, accountId, plainArray([...new Set(cells.map(({ day }) => day))].sort())],
      textArray([...new Set(cells.map(({ model }) => model))].sort()),
    ],
  );
}
