import type { DisputeStatus, DisputeTier } from '../../domain/claims/decision.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import type { OrgDb, SqlValue } from '../orgDb.js';

/** A dispute as an export tells it. */
export interface ExportedDispute {
  id: string;
  claimId: string | null;
  provider: string;
  model: string;
  periodStart: string;
  periodEnd: string;
  kind: FindingKind;
  status: DisputeStatus;
  /** Exact: the sum of its days. */
  amountPico: Pico;
  amountCents: number;
  tier: DisputeTier;
  reason: string;
  resolution: string | null;
  /** Of whoever resolved it; before that, of whoever opened it. */
  notes: string | null;
  openedAtMicros: bigint;
  resolvedAtMicros: bigint | null;
}

const PAGE = 500;
const COLUMNS = `id, claim_id as "claimId", provider, model, period_start as "periodStart", period_end as "periodEnd", kind, status,
  provider_cost_usd - our_cost_usd as "amountPico", amount_cents as "amountCents", confidence_tier as tier, reason, resolution,
  coalesce(resolution_notes, notes) as notes, opened_at as "openedAtMicros", resolved_at as "resolvedAtMicros"`;

/**
 * Disputes in the order in which they were opened, page by page, each page in a statement of its own: a reader who takes
 * long holds nothing back. Those that were there when it began are told once each.
 */
export async function* streamDisputes(
  orgDb: OrgDb,
  status: DisputeStatus | undefined,
): AsyncGenerator<ExportedDispute[]> {
  let last: ExportedDispute | undefined;
  do {
    const values: SqlValue[] = [orgDb.orgId];
    const bind = (value: SqlValue) => `$${values.push(value)}`;
    const conditions = ['org_id = $1'];
    if (status !== undefined) conditions.push(`status = ${bind(status)}`);
    if (last) {
      const at = `${bind(isoFromMicros(last.openedAtMicros))}::timestamptz`;
      conditions.push(`(opened_at, id) > (${at}, ${bind(last.id)}::uuid)`);
    }
    const page = await orgDb.rows<ExportedDispute>(
      `select ${COLUMNS} from disputes where ${conditions.join(' and ')} order by opened_at, id limit ${PAGE}`,
      values,
    );
    last = page.length === PAGE ? page.at(-1) : undefined;
    if (page.length > 0) yield page;
  } while (last);
}
