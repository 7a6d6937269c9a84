import { neededFor, perSecond, type Rate } from '../../domain/access/rate.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';

export interface TokenRequest {
  /** A key's id, or 'organization'. */
  subject: string;
  policy: string;
  rate: Rate;
  /** Cost of the waiting request: a grant covers at least this, or nothing. */
  cost: number;
  /** Tokens that the instance wants, including the cost. */
  wanted: number;
  /** Earlier leased tokens that this request returns. */
  returned: number;
}

export interface TokenGrant {
  /** 0, or at least the cost. */
  granted: number;
  tokens: number;
}

/** Concurrent requests for a bucket wait for this statement only: it locks one row for its duration. */
const LEASE = `
insert into rate_buckets as b (org_id, subject, policy, tokens, granted)
values ($1, $2, $3, $4::float8 - greatest($6::float8, least($7::float8, $4)), greatest($6, least($7, $4)))
on conflict (org_id, subject, policy) do update set (tokens, granted, refilled_at) = (
  select a.available - a.granted, a.granted, greatest(b.refilled_at, now())
  from (
    select f.available,
      case when f.available >= $8::float8 then greatest($6, least($7, floor(f.available))) else 0 end as granted
    from (
      select least($4, b.tokens + $9::float8 + $5::float8 * greatest(0, extract(epoch from now() - b.refilled_at)::float8)) as available
    ) f
  ) a
)
returning tokens, granted`;

/**
 * Takes tokens from a shared bucket in one statement, by the database's clock. Within t seconds all instances together
 * get at most burst + t · quota/window, except for a single cost larger than a full bucket, which leaves the bucket in
 * debt.
 */
export async function leaseRateTokens(orgDb: OrgDb, request: TokenRequest): Promise<TokenGrant> {
  const { subject, policy, rate, cost, wanted, returned } = request;
  const [grant] = await orgDb.rows<TokenGrant>(
    LEASE,
    [
      orgDb.orgId,
      subject,
      policy,
      rate.burst,
      perSecond(rate),
      cost,
      wanted,
      neededFor(rate, cost),
      returned,
    ],
    'lease_rate_tokens',
  );
  if (!grant) throw new Error('a lease of tokens returned no row');
  return grant;
}

/** Deletes buckets that were unused for `idleSeconds`, which are full again; returns their number. */
export async function pruneRateBuckets(database: Database, idleSeconds: number): Promise<number> {
  return unscoped(database, 'idle rate limits of every organization', (system) =>
    system.run('delete from rate_buckets where refilled_at < now() - make_interval(secs => $1)', [
      idleSeconds,
    ]),
  );
}

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

/** Takes one of the organization's slots for `seconds`; false: all are held. */
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

/** Extends a slot by `seconds`. false: it expired and another holder has it. */
export async function renewRequestSlot(orgDb: OrgDb, holder: string, seconds: number): Promise<boolean> {
  const changed = await orgDb.run(
    'update request_slots set expires_at = now() + make_interval(secs => $3) where org_id = $1 and holder = $2',
    [orgDb.orgId, holder, seconds],
  );
  return changed === 1;
}

export async function releaseRequestSlot(orgDb: OrgDb, holder: string): Promise<void> {
  await orgDb.run('delete from request_slots where org_id = $1 and holder = $2', [orgDb.orgId, holder]);
}
