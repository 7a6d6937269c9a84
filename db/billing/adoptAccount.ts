import { DEFAULT_ACCOUNT } from '../../domain/billing/account.js';
import type { Provider } from '../../domain/providers.js';
import type { Database } from '../client.js';
import { OrgDb, type SystemDb, unscoped } from '../orgDb.js';
import { findFirstAccount } from './billingConnections.js';

const WHY =
  'bills of the account default become those of the first connection: only maintenance rewrites bills';

/**
 * Gives the bills of nobody in particular to the provider's first connection, where there is one; returns how many
 * imports it changed. An import that ends once the connection is there gives it its rows itself.
 */
export async function giveToFirstConnection(
  database: Database,
  orgId: string,
  provider: Provider,
): Promise<number> {
  const first = await findFirstAccount(new OrgDb(database, orgId), provider);
  return first === undefined ? 0 : adoptDefaultAccount(database, orgId, provider, first);
}

/**
 * Gives the bills of a provider whose account nobody named to the account of its first connection:
 * rows, days, imports, and what gap runs have published of them. One import at a time, each in one transaction, so that
 * its rows and its days never name two accounts. A repeat finds nothing left. Returns how many imports it changed.
 */
export async function adoptDefaultAccount(
  database: Database,
  orgId: string,
  provider: Provider,
  account: string,
): Promise<number> {
  if (account === DEFAULT_ACCOUNT) return 0;
  const sources = await unscoped(database, WHY, (system) =>
    system.rows<{ source_id: string }>(
      'select distinct source_id from billing_days where org_id = $1 and provider = $2 and provider_account_id = $3 order by 1',
      [orgId, provider, DEFAULT_ACCOUNT],
    ),
  );
  for (const { source_id: sourceId } of sources) {
    await unscoped(database, WHY, (system) => adoptSource(system, [orgId, provider, account, sourceId]));
  }
  await unscoped(database, WHY, (system) => adoptPublished(system, [orgId, provider, account]));
  return sources.length;
}

async function adoptSource(system: SystemDb, values: [string, string, string, string]): Promise<void> {
  await system.run(
    `update billing_rows set provider_account_id = $3
     where org_id = $1 and provider = $2 and source_id = $4 and provider_account_id = '${DEFAULT_ACCOUNT}'`,
    values,
  );
  // An import whose rows named the account beside rows that named none has both: their days become one.
  await system.run(
    `with moved as (delete from billing_days
       where org_id = $1 and provider = $2 and source_id = $4 and provider_account_id = '${DEFAULT_ACCOUNT}' returning *)
     insert into billing_days (org_id, provider, provider_account_id, day, feed, report, charge_category, source_id, source_rank,
       source_fetched_at, row_count, amount_usd, unconverted_rows, is_final, scope, connection_id, confirmed_at, superseded_at, content_hash)
     select org_id, provider, $3, day, feed, report, charge_category, source_id, source_rank,
       source_fetched_at, row_count, amount_usd, unconverted_rows, is_final, scope, connection_id, confirmed_at, superseded_at, content_hash from moved
     on conflict (org_id, provider, day, provider_account_id, feed, report, charge_category, source_id) do update
       set row_count = billing_days.row_count + excluded.row_count, amount_usd = billing_days.amount_usd + excluded.amount_usd,
         unconverted_rows = billing_days.unconverted_rows + excluded.unconverted_rows, is_final = billing_days.is_final and excluded.is_final`,
    values,
  );
  await system.run(
    `update billing_sources set provider_account_id = case when provider_account_id = '${DEFAULT_ACCOUNT}' then $3 else provider_account_id end
     where org_id = $1 and provider = $2 and id = $4`,
    values,
  );
}

/** What gap runs have found and published of the account; the day that is published under both names keeps the real one. */
async function adoptPublished(system: SystemDb, values: [string, string, string]): Promise<void> {
  const isDefault = `org_id = $1 and provider = $2 and provider_account_id = '${DEFAULT_ACCOUNT}'`;
  await system.run(
    `delete from gap_buckets b where ${isDefault} and exists (select from gap_buckets o where o.org_id = b.org_id and o.run_id = b.run_id
       and o.provider = b.provider and o.provider_account_id = $3 and o.width = b.width and o.bucket = b.bucket and o.model = b.model)`,
    values,
  );
  await system.run(`update gap_buckets set provider_account_id = $3 where ${isDefault}`, values);
  await system.run(
    `update gap_run_units set counted_sources = counted_sources - '${DEFAULT_ACCOUNT}' || jsonb_build_object($3::text, counted_sources -> '${DEFAULT_ACCOUNT}')
     where org_id = $1 and provider = $2 and counted_sources ? '${DEFAULT_ACCOUNT}'`,
    values,
  );
  await system.run(
    `delete from gap_published p where ${isDefault} and exists (select from gap_published o where o.org_id = p.org_id
       and o.provider = p.provider and o.day = p.day and o.provider_account_id = $3)`,
    values,
  );
  await system.run(`update gap_published set provider_account_id = $3 where ${isDefault}`, values);
  await adoptExplained(system, values, isDefault);
}

/** What was found keeps its id and what was decided on it; the next run explains the account anew under its real name. */
async function adoptExplained(
  system: SystemDb,
  values: [string, string, string],
  isDefault: string,
): Promise<void> {
  await system.run(`update findings set provider_account_id = $3 where ${isDefault}`, values);
  await system.run(`delete from series_explanations where ${isDefault}`, values.slice(0, 2));
  await system.run(
    `with former as (delete from explained_accounts where ${isDefault} returning org_id, provider)
     insert into explained_accounts (org_id, provider, provider_account_id, context_mark, suspects_mark, stale)
     select org_id, provider, $3, '', '', true from former
     on conflict (org_id, provider, provider_account_id) do update set stale = true`,
    values,
  );
}
