import type { KeyUse, ProviderKey, SuspectKey, SuspectKeyReason } from '../../domain/billing/providerKeys.js';
import type { TokenClass } from '../../domain/events/event.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import { column, defineEntity } from '../entity.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';
import { readFoldedXid } from '../usage/usage.js';
import { usageLogSql } from '../usage/usageLog.js';
import { countedSourcesSql, isCountedRow } from './billingRows.js';

export interface StoredProviderKey extends ProviderKey {
  readonly createdAtMicros: bigint;
  readonly updatedAtMicros: bigint;
}

const PROVIDER_KEY = defineEntity<StoredProviderKey>('provider_keys', {
  provider: column(),
  providerKeyId: column(),
  providerAccountId: column(),
  name: column(),
  project: column(),
  teamId: column(),
  status: column(),
  activeFromMicros: column(),
  revokedAtMicros: column(),
  createdAtMicros: column(),
  updatedAtMicros: column(),
});

const ITEM_COLUMNS =
  'provider, provider_key_id, provider_account_id, name, project, team_id, status, active_from, revoked_at';

export async function listProviderKeys(
  orgDb: OrgDb,
  filter: { provider: string | undefined },
  page: { limit: number; offset: number },
): Promise<StoredProviderKey[]> {
  return orgDb.rows<StoredProviderKey>(
    `select ${PROVIDER_KEY.columns} from provider_keys
     where org_id = $1 and ($2::text is null or provider = $2)
     order by provider, provider_key_id limit $3 offset $4`,
    [orgDb.orgId, filter.provider ?? null, page.limit, page.offset],
  );
}

export async function findProviderKeys(
  orgDb: OrgDb,
  keys: readonly { provider: Provider; providerKeyId: string }[],
): Promise<StoredProviderKey[]> {
  return orgDb.rows<StoredProviderKey>(
    `select ${PROVIDER_KEY.columns} from provider_keys
     where org_id = $1 and (provider, provider_key_id) in (select * from unnest($2::text[], $3::text[]))
     order by provider, provider_key_id`,
    [
      orgDb.orgId,
      textArray(keys.map((key) => key.provider)),
      textArray(keys.map((key) => key.providerKeyId)),
    ],
  );
}

type ProviderKeyName = Pick<ProviderKey, 'provider' | 'providerKeyId'>;

/**
 * Stores or changes provider keys and records each change. Returns the changed keys and the count. Call it in a
 * transaction.
 */
export async function upsertProviderKeys(
  inside: OrgDb,
  keys: readonly ProviderKey[],
  changedBy: string,
): Promise<{ changed: ProviderKeyName[]; count: number }> {
  const items = keys.map((key) => ({
    provider: key.provider,
    provider_key_id: key.providerKeyId,
    provider_account_id: key.providerAccountId,
    name: key.name,
    project: key.project,
    team_id: key.teamId,
    status: key.status,
    active_from: key.activeFromMicros === null ? null : isoFromMicros(key.activeFromMicros),
    revoked_at: key.revokedAtMicros === null ? null : isoFromMicros(key.revokedAtMicros),
  }));
  // Serialized, so that two requests cannot both count before the other has stored.
  await lockByName(inside, 'providerKeys', inside.orgId);
  const changed = await inside.rows<ProviderKeyName>(
    `with items as (select * from jsonb_to_recordset($2::jsonb) as t (provider text, provider_key_id text, provider_account_id text,
       name text, project text, team_id text, status text, active_from timestamptz, revoked_at timestamptz)),
     stored as (
       insert into provider_keys as k (org_id, ${ITEM_COLUMNS}) select $1::uuid, ${ITEM_COLUMNS} from items
       on conflict (org_id, provider, provider_key_id) do update set provider_account_id = excluded.provider_account_id,
         name = excluded.name, project = excluded.project, team_id = excluded.team_id, status = excluded.status,
         active_from = excluded.active_from, revoked_at = excluded.revoked_at, updated_at = now()
       where (k.provider_account_id, k.name, k.project, k.team_id, k.status, k.active_from, k.revoked_at) is distinct from
         (excluded.provider_account_id, excluded.name, excluded.project, excluded.team_id, excluded.status, excluded.active_from, excluded.revoked_at)
       returning ${ITEM_COLUMNS})
     insert into provider_key_changes (org_id, provider, provider_key_id, item, changed_by)
     select $1::uuid, provider, provider_key_id, to_jsonb(stored), $3 from stored
     returning provider, provider_key_id as "providerKeyId"`,
    [inside.orgId, JSON.stringify(items), changedBy],
  );
  const [row] = await inside.rows<{ count: number }>(
    'select count(*)::bigint as count from provider_keys where org_id = $1',
    [inside.orgId],
  );
  return { changed, count: row?.count ?? 0 };
}

/** AWS names no key on its bills; the linked account of a line is its key (`line_item_usage_account_id`). */
const IS_LINKED = `provider = 'aws_bedrock' and coalesce(api_key, '') = '' and project <> '' and project <> provider_account_id`;

/**
 * Rows of the counted bills that name a key, and why the key is suspect; `$1`…`$6`: organization, provider, days, keys
 * by provider.
 */
const BILLED_KEYS_SQL = `counted as (${countedSourcesSql('d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4')}),
         billed as (
           select r.provider, r.provider_account_id as account, named.api_key, r.day, r.feed, r.amount_usd, r.model, r.token_class, r.quantity,
             case when k.provider is null then 'unknown' when r.period_start >= k.revoked_at then 'billed_after_revocation' end as reason
           from unnest($5::text[], $6::text[]) named (provider, api_key)
           cross join lateral (select * from billing_rows
             where org_id = $1 and provider = named.provider and api_key = named.api_key and api_key <> ''
               and day >= $3 and day < $4
             union all
             select * from billing_rows
             where org_id = $1 and provider = named.provider and day >= $3 and day < $4 and ${IS_LINKED} and project = named.api_key
             offset 0) r
           left join lateral (select provider, revoked_at from provider_keys
             where org_id = $1 and provider = r.provider and provider_key_id = named.api_key offset 0) k on true
           where ${isCountedRow('r')})`;

/** Keys as two arrays, each key once. */
function namesOf(keys: readonly { provider: string; api_key: string }[]): string[] {
  const named = [...new Map(keys.map((key) => [`${key.provider}\n${key.api_key}`, key])).values()];
  return [textArray(named.map((key) => key.provider)), textArray(named.map((key) => key.api_key))];
}

interface BilledKeyRow {
  provider: Provider;
  account: string;
  api_key: string;
  reason: SuspectKeyReason;
  first_day: string;
  last_day: string;
  billed_usd: Pico | null;
}

/** Billed keys without an entry or a call, or billed after their revocation; by dollars. In one snapshot. */
export async function readSuspectKeys(
  inside: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string; limit: number },
): Promise<{ keys: SuspectKey[]; count: number }> {
  const rows = await listSuspectRows(inside, window);
  const shown = rows.slice(0, window.limit);
  const uses = await listUses(inside, window, shown);
  const keys = shown.map((row) => ({
    uses: uses.get(keyText(row)) ?? [],
    provider: row.provider,
    providerAccountId: row.account,
    providerKeyId: row.api_key,
    reason: row.reason,
    firstDay: row.first_day,
    lastDay: row.last_day,
    billedPico: row.billed_usd,
  }));
  return { keys, count: rows.length };
}

async function listSuspectRows(
  inside: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<BilledKeyRow[]> {
  const keys = await listCandidates(inside, window.provider);
  const accounts = await listLinkedAccounts(inside, window);
  const observed = await listObservedKeys(
    inside,
    [...keys, ...accounts].flatMap((key) => (key.hasEntry ? [] : [key.api_key])),
  );
  const isObserved = (key: Candidate) => observed.has(`${key.provider}\n${key.api_key}`);
  // An organization that names none of its linked accounts has not said which ones are its own.
  const knowsAccounts = accounts.some((key) => key.hasEntry || isObserved(key));
  const suspects = accounts.filter((key) => knowsAccounts && (!key.hasEntry || key.isRevoked));
  const left = [...keys, ...suspects].filter((key) => key.hasEntry || !isObserved(key));
  if (left.length === 0) return [];
  const billed = await inside.rows<BilledKeyRow>(
    `with ${BILLED_KEYS_SQL}
       select provider, account, api_key, reason, min(day) as first_day, max(day) as last_day,
         sum(amount_usd) filter (where feed = 'cost') as billed_usd
       from billed where reason is not null group by 1, 2, 3, 4
       order by billed_usd desc nulls last, provider, account, api_key, reason`,
    [inside.orgId, window.provider, window.fromDay, window.toDay, ...namesOf(left)],
  );
  return billed.filter((row) => row.reason !== 'unknown' || !observed.has(`${row.provider}\n${row.api_key}`));
}

/** A key that any bill of the organization names, and that has no entry or a revoked one. */
interface Candidate {
  provider: string;
  api_key: string;
  hasEntry: boolean;
}

/** The linked accounts of the window's bills, known or not. */
async function listLinkedAccounts(
  inside: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<(Candidate & { isRevoked: boolean })[]> {
  return inside.rows<Candidate & { isRevoked: boolean }>(
    `select 'aws_bedrock' as provider, named.api_key, k.provider is not null as "hasEntry", k.revoked_at is not null as "isRevoked"
     from (select distinct project as api_key from billing_rows
       where org_id = $1 and ($2::text is null or provider = $2) and day >= $3 and day < $4 and ${IS_LINKED}) named
     left join provider_keys k on k.org_id = $1 and k.provider = 'aws_bedrock' and k.provider_key_id = named.api_key
     order by named.api_key`,
    [inside.orgId, window.provider, window.fromDay, window.toDay],
  );
}

/** One index lookup for each key, instead of reading the rows that name it. */
async function listCandidates(inside: OrgDb, provider: string | null): Promise<Candidate[]> {
  const next = (after: string) =>
    `(select provider, api_key from billing_rows where org_id = $1 and api_key <> '' and ($2::text is null or provider = $2) ${after}
       order by provider, api_key limit 1)`;
  return inside.rows<Candidate>(
    `with recursive named as (
       ${next('')} union all
       select n.* from named cross join lateral ${next('and (provider, api_key) > (named.provider, named.api_key)')} n)
     select named.provider, named.api_key, k.provider is not null as "hasEntry"
     from named left join lateral (select provider, revoked_at from provider_keys
       where org_id = $1 and provider = named.provider and provider_key_id = named.api_key offset 0) k on true
     where k.provider is null or k.revoked_at is not null`,
    [inside.orgId, provider],
  );
}

interface KeyUseRow extends Pick<BilledKeyRow, 'provider' | 'account' | 'api_key' | 'reason'> {
  day: string;
  model: string;
  token_class: TokenClass;
  billed_usd: Pico | null;
  cost_quantity: bigint | null;
  usage_quantity: bigint | null;
}

/** Most days, models and classes of suspect keys that are read; the others are included only in the sums. */
const USES_MAX = 50_000;

const keyText = (row: Pick<BilledKeyRow, 'provider' | 'account' | 'api_key' | 'reason'>): string =>
  JSON.stringify([row.provider, row.account, row.api_key, row.reason]);

/** Usage of suspect keys by day and model: dollars of the bill, tokens of the bill or else of the usage report. */
async function listUses(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
  keys: readonly BilledKeyRow[],
): Promise<Map<string, KeyUse[]>> {
  const uses = new Map<string, KeyUse[]>();
  if (keys.length === 0) return uses;
  const rows = await orgDb.rows<KeyUseRow>(
    `with ${BILLED_KEYS_SQL}
     select provider, account, api_key, reason, day, model, token_class,
       sum(amount_usd) filter (where feed = 'cost') as billed_usd,
       sum(quantity) filter (where feed = 'cost') as cost_quantity,
       sum(quantity) filter (where feed = 'usage') as usage_quantity
     from billed
     where reason is not null and model is not null and token_class not in ('requests', 'other')
     group by 1, 2, 3, 4, 5, 6, 7 order by 1, 2, 3, 4, 5, 6, 7 limit ${USES_MAX}`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay, ...namesOf(keys)],
  );
  const called = await listCalledDays(orgDb, window, keys);
  for (const row of rows) {
    if (called.has(`${row.provider}\n${row.api_key}\n${row.day}`)) continue;
    const own = uses.get(keyText(row)) ?? [];
    uses.set(keyText(row), own);
    const last = own.at(-1);
    const quantity = row.cost_quantity ?? row.usage_quantity;
    const quantities = quantity === null ? {} : { [row.token_class]: quantity };
    if (last && last.day === row.day && last.model === row.model)
      own[own.length - 1] = {
        ...last,
        billedPico: row.billed_usd === null ? last.billedPico : (last.billedPico ?? 0n) + row.billed_usd,
        quantities: { ...last.quantities, ...quantities },
      };
    else own.push({ day: row.day, model: row.model, billedPico: row.billed_usd, quantities });
  }
  return uses;
}

/**
 * The days on which the organization's own calls name a revoked key, as `biller\nkey\nday`: its use on these is no
 * stranger's.
 */
async function listCalledDays(
  inside: OrgDb,
  window: { fromDay: string; toDay: string },
  keys: readonly BilledKeyRow[],
): Promise<Set<string>> {
  const revoked = keys.flatMap((key) => (key.reason === 'billed_after_revocation' ? [key.api_key] : []));
  if (revoked.length === 0) return new Set();
  const rows = await inside.rows<{ billed_by: string; key: string; day: string }>(
    `select billed_by, provider_key_id as key, (hour at time zone 'UTC')::date as day from billing_cells
     where org_id = $1 and provider_key_id = any($2::text[]) and hour >= $3::date and hour < $4::date and status not in ('blocked', 'error')
     group by 1, 2, 3 having sum(calls) > 0
     union
     select billed_by, provider_key_id, (end_at at time zone 'UTC')::date from (${usageLogSql('$5')}) log
     where provider_key_id = any($2::text[]) and end_at >= $3::date and end_at < $4::date and status not in ('blocked', 'error')
     group by 1, 2, 3 having sum(sign) > 0`,
    [inside.orgId, textArray(revoked), window.fromDay, window.toDay, await readFoldedXid(inside)],
  );
  return new Set(rows.map((row) => `${row.billed_by}\n${row.key}\n${row.day}`));
}

/** The keys that some call has named, as `biller\nkey`; a linked account also as the account of a call. */
async function listObservedKeys(inside: OrgDb, keyIds: readonly string[]): Promise<Set<string>> {
  if (keyIds.length === 0) return new Set();
  const rows = await inside.rows<{ billed_by: string; provider_key_id: string }>(
    `select billed_by, provider_key_id from billing_cells where org_id = $1 and provider_key_id = any($2::text[]) and calls > 0 and status <> 'blocked'
     union
     select billed_by, provider_account_id from billing_cells
     where org_id = $1 and billed_by = 'aws_bedrock' and provider_account_id = any($2::text[]) and calls > 0 and status <> 'blocked'
     union
     select billed_by, provider_key_id from (${usageLogSql('$3')}) log
     where provider_key_id = any($2::text[]) and status <> 'blocked' group by 1, 2 having sum(sign) > 0
     union
     select billed_by, provider_account_id from (${usageLogSql('$3')}) log
     where billed_by = 'aws_bedrock' and provider_account_id = any($2::text[]) and status <> 'blocked' group by 1, 2 having sum(sign) > 0`,
    [inside.orgId, textArray(keyIds), await readFoldedXid(inside)],
  );
  return new Set(rows.map((row) => `${row.billed_by}\n${row.provider_key_id}`));
}
