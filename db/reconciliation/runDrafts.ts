import type { OrgDb } from '../orgDb.js';

/** What a gap run has drafted once it has published, as its result keeps it. */
export interface RunDrafts {
  /** uuids, in the order in which they were made */
  claim_ids: string[];
  /** Over what nothing was drafted since as much was charged too little; the list is cut. */
  withheld: {
    provider: string;
    provider_account_id: string;
    kind: string;
    /** `YYYY-MM` in which the disputes begin. */
    month: string;
    dispute_ids: string[];
    disputed_usd: string;
    undercharged_usd: string;
  }[];
}

/**
 * Adds to the result of an open run the claims that it has drafted, by whom they say made them, and what was withheld;
 * absent: as it was. A result without either stays as it is.
 */
export async function recordRunDrafts(
  orgDb: OrgDb,
  runId: string,
  { by, withheld }: { by: string; withheld?: RunDrafts['withheld'] },
): Promise<void> {
  await orgDb.run(
    `with made as (
       select coalesce(jsonb_agg(c.id order by c.created_at, c.id), '[]'::jsonb) as ids
       from claims c where c.org_id = $1 and c.created_by = $3),
     known as (
       select coalesce($4::jsonb, result #> '{drafts,withheld}', '[]'::jsonb) as withheld
       from gap_runs where org_id = $1 and id = $2::uuid)
     update gap_runs r set result = r.result || jsonb_build_object('drafts', jsonb_build_object('claim_ids', made.ids, 'withheld', known.withheld))
     from made, known
     where r.org_id = $1 and r.id = $2::uuid and r.status in ('queued', 'running') and r.result is not null
       and (made.ids <> '[]'::jsonb or known.withheld <> '[]'::jsonb)`,
    [orgDb.orgId, runId, by, withheld === undefined ? null : JSON.stringify(withheld)],
  );
}
