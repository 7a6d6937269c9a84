import type { OrgDb } from '../orgDb.js';

/** What holds a place for as long as it goes on. */
export const SLOT_KINDS = ['export'] as const;
export type SlotKind = (typeof SLOT_KINDS)[number];

const TAKE = `
insert into request_slots (org_id, kind, slot, holder, expires_at)
select $1, $2, s, $4, now() + make_interval(secs => $5) from generate_series(1, $3::int) s
where not exists (select from request_slots t where t.org_id = $1 and t.kind = $2 and t.slot = s and t.expires_at > now())
order by s limit 1
on conflict (org_id, kind, slot) do update set holder = excluded.holder, expires_at = excluded.expires_at
  where request_slots.expires_at <= now()
returning slot`;

/**
 * Takes one of the organization's places for `seconds`; false when all are held. Two who want the last one meet at its
 * primary key, and one of them looks again.
 */
export async function takeRequestSlot(
  orgDb: OrgDb,
  slot: { kind: SlotKind; holder: string; max: number; seconds: number },
): Promise<boolean> {
  for (let attempt = 0; attempt < slot.max; attempt += 1) {
    const rows = await orgDb.rows(TAKE, [orgDb.orgId, slot.kind, slot.max, slot.holder, slot.seconds]);
    if (rows.length === 1) return true;
  }
  return false;
}

/** Holds a place for `seconds` more. False when it has expired and another has it. */
export async function renewRequestSlot(orgDb: OrgDb, holder: string, seconds: number): Promise<boolean> {
  const changed = await orgDb.run(
    'update request_slots set expires_at = now() + make_interval(secs => $3) where org_id = $1 and holder = $2',
    [orgDb.orgId, holder, seconds],
  );
  return changed === 1;
}

/** Gives a place back. */
export async function releaseRequestSlot(orgDb: OrgDb, holder: string): Promise<void> {
  await orgDb.run('delete from request_slots where org_id = $1 and holder = $2', [orgDb.orgId, holder]);
}
