import { DEFAULT_ACCOUNT } from '../../domain/billing/billedRow.js';
import {
  type ConnectionSettings,
  type ConnectionStatus,
  scopesOverlap,
} from '../../domain/billing/connections.js';
import { DomainError } from '../../domain/errors.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { Database } from '../client.js';
import { column, defineEntity, findEntity, insertRow, listNewest } from '../entity.js';
import { lockByName, type Sealed, sealUnderLock } from '../locks.js';
import { OrgDb, type SystemDb, unscoped } from '../orgDb.js';
import { insertOutboxMessage } from '../runs/outbox.js';

/** A stored connection to a provider's bills, with encrypted credentials. */
export interface BillingConnection {
  id: string;
  provider: Provider;
  name: string;
  status: ConnectionStatus;
  accountId: string;
  /** '' for the whole account. */
  scope: string;
  settings: ConnectionSettings;
  /** null: no key decrypted them and the operator gave them up. */
  ciphertext: Buffer | null;
  backfillFrom: string;
  /** UTC day on which all days that may still be restated were last fetched. */
  revisedOn: string | null;
  lastSyncedAtMicros: bigint | null;
  lastFailedAtMicros: bigint | null;
  lastErrorCode: string | null;
  lastErrorMessage: string | null;
  nextSyncAtMicros: bigint | null;
  createdAtMicros: bigint;
  updatedAtMicros: bigint;
}

const CONNECTION = defineEntity<BillingConnection>('billing_connections', {
  id: column(),
  provider: column(),
  name: column(),
  status: column(),
  accountId: column('provider_account_id'),
  scope: column(),
  settings: column(),
  ciphertext: column(),
  backfillFrom: column(),
  revisedOn: column(),
  lastSyncedAtMicros: column(),
  lastFailedAtMicros: column(),
  lastErrorCode: column(),
  lastErrorMessage: column(),
  nextSyncAtMicros: column(),
  createdAtMicros: column(),
  updatedAtMicros: column(),
});

export interface NewBillingConnection {
  id: string;
  provider: Provider;
  name: string;
  accountId: string;
  scope: string;
  settings: ConnectionSettings;
  backfillFrom: string;
}

/**
 * Stores a connection with its first run and messages. Error: account_already_connected, which does not name the owner.
 */
export async function insertBillingConnection(
  orgDb: OrgDb,
  connection: NewBillingConnection,
  syncRunId: string,
  seal: () => Sealed,
): Promise<void> {
  const { orgId } = orgDb;
  await orgDb.unscoped('an account may be billed once on the whole instance', async (system) => {
    await refuseOverlap(system, { ...connection, orgId });
    const { ciphertext, keyId } = await sealUnderLock(system, seal);
    await lockFirstAccount(system, orgId, connection.provider);
    const { accountId, settings, ...values } = connection;
    await insertRow(system, 'billing_connections', {
      ...{ orgId, ...values, status: 'connecting', providerAccountId: accountId },
      ...{ settings: JSON.stringify(settings), ciphertext, secretKeyId: keyId },
    });
    await system.run(
      `insert into sync_runs (org_id, id, connection_id, trigger, status) values ($1, $2, $3, 'connect', 'queued')`,
      [orgId, syncRunId, connection.id],
    );
    await system.run(
      `insert into outbox (org_id, kind, subject_id) values ($1, 'billing_sync.start', $2), ($1, 'connection.schedule', $3)`,
      [orgId, syncRunId, connection.id],
    );
  });
}

interface WantedScope {
  orgId: string;
  id: string;
  provider: Provider;
  accountId: string;
  scope: string;
}

/** Throws account_already_connected for an overlapping connection. The lock lasts to the end of the transaction. */
async function refuseOverlap(system: SystemDb, wanted: WantedScope): Promise<void> {
  await lockByName(system, 'providerAccount', `${wanted.provider} ${wanted.accountId}`);
  const others = await system.rows<{ org_id: string; scope: string; name: string }>(
    `select org_id, scope, name from billing_connections
     where provider = $1 and provider_account_id = $2 and removed_at is null and not (org_id = $3 and id = $4)`,
    [wanted.provider, wanted.accountId, wanted.orgId, wanted.id],
  );
  const overlapping = others.filter(({ scope }) => scopesOverlap(scope, wanted.scope));
  if (overlapping.length === 0) return;
  const own = overlapping.find(({ org_id }) => org_id === wanted.orgId);
  throw new DomainError(
    'account_already_connected',
    `the ${wanted.provider} account ${wanted.accountId} is connected already${own ? ` as "${own.name}"` : ' on this instance'}: its bill would count twice. Name other projects or workspaces in settings.scope, or end that connection first.`,
  );
}

export async function findBillingConnection(
  orgDb: OrgDb,
  id: string,
): Promise<BillingConnection | undefined> {
  return findEntity(orgDb, CONNECTION, { id, removedAt: null });
}

export async function listBillingConnections(
  orgDb: OrgDb,
  page: { limit: number; offset: number },
): Promise<BillingConnection[]> {
  return listNewest(orgDb, CONNECTION, { and: (query) => query.whereNull('removed_at'), page });
}

export interface ConnectionChanges {
  name?: string;
  paused?: boolean;
  /** With the scope that the settings mean. */
  settings?: { settings: ConnectionSettings; scope: string };
  seal?: () => Sealed;
}

/** Changes a connection; absent fields keep their values. false: it has ended. Error: account_already_connected. */
export async function updateBillingConnection(
  orgDb: OrgDb,
  connection: BillingConnection,
  changes: ConnectionChanges,
): Promise<boolean> {
  const { orgId } = orgDb;
  return orgDb.unscoped('an account may be billed once on the whole instance', async (system) => {
    const scope = changes.settings?.scope ?? connection.scope;
    if (scope !== connection.scope) await refuseOverlap(system, { ...connection, orgId, scope });
    const sealed = changes.seal ? await sealUnderLock(system, changes.seal) : undefined;
    const changed = await system.run(
      `update billing_connections set name = coalesce($3, name), settings = coalesce($4::jsonb, settings), scope = $5,
         ciphertext = coalesce($6, ciphertext), secret_key_id = coalesce($7, secret_key_id),
         status = case when $8::boolean then 'paused'
           when $8 is not null and status = 'paused' then case when last_synced_at is null then 'connecting' else 'active' end
           else status end,
         updated_at = now()
       where org_id = $1 and id = $2 and removed_at is null`,
      [
        orgId,
        connection.id,
        changes.name ?? null,
        changes.settings ? JSON.stringify(changes.settings.settings) : null,
        scope,
        sealed?.ciphertext ?? null,
        sealed?.keyId ?? null,
        changes.paused ?? null,
      ],
    );
    if (changed === 1)
      await system.run(
        `insert into outbox (org_id, kind, subject_id) values ($1, 'connection.schedule', $2)`,
        [orgId, connection.id],
      );
    return changed === 1;
  });
}

/** Ends a connection: erases its credentials, cancels its open sync, keeps its bills. false: it had already ended. */
export async function endBillingConnection(inside: OrgDb, id: string): Promise<boolean> {
  // Runs are locked before connections, as everywhere, so that two transactions that lock both cannot deadlock.
  await inside.run(
    `update sync_runs set status = 'cancelled', stage = 'cancelled', finished_at = now(), error_code = 'connection_ended', error_message = 'the connection was ended',
         waiting_code = null, waiting_message = null, waiting_until = null
       where org_id = $1 and connection_id = $2 and status in ('queued', 'running')`,
    [inside.orgId, id],
  );
  const changed = await inside.run(
    `update billing_connections set status = 'ended', removed_at = now(), updated_at = now(), ciphertext = null, secret_key_id = null
       where org_id = $1 and id = $2 and removed_at is null`,
    [inside.orgId, id],
  );
  if (changed === 0) return false;
  await insertOutboxMessage(inside, 'connection.schedule', id);
  return true;
}

export async function recordNextSync(
  orgDb: OrgDb,
  connectionId: string,
  atMicros: bigint | null,
): Promise<void> {
  await orgDb.run(
    'update billing_connections set next_sync_at = $3 where org_id = $1 and id = $2 and removed_at is null',
    [orgDb.orgId, connectionId, atMicros === null ? null : isoFromMicros(atMicros)],
  );
}

export interface ScheduledConnection {
  orgId: string;
  connectionId: string;
  provider: Provider;
  paused: boolean;
}

/** All open connections of all organizations: each needs a schedule. */
export async function listScheduledConnections(database: Database): Promise<ScheduledConnection[]> {
  return unscoped(database, 'schedules of every organization are made from its connections', (system) =>
    system.rows<ScheduledConnection>(
      `select org_id as "orgId", id as "connectionId", provider, status = 'paused' as paused
       from billing_connections where removed_at is null order by org_id, id`,
    ),
  );
}

/** Blocks new connections of the provider until the transaction ends, so that an ending import knows all of them. */
export function lockFirstAccount(inside: OrgDb | SystemDb, orgId: string, provider: Provider): Promise<void> {
  return lockByName(inside, 'firstAccount', `${orgId} ${provider}`);
}

/** The account of the provider's first connection, ended or not: it owns the bills of the account `default`. */
export async function findFirstAccount(orgDb: OrgDb, provider: Provider): Promise<string | undefined> {
  const rows = await orgDb.rows<{ account: string }>(
    `select provider_account_id as account from billing_connections where org_id = $1 and provider = $2
     order by created_at, id limit 1`,
    [orgDb.orgId, provider],
  );
  return rows[0]?.account;
}

/** A connection's status before and after a statement that may have changed it. */
export interface ConnectionTurn {
  id: string;
  name: string;
  provider: Provider;
  accountId: string;
  lastSyncedAtMicros: bigint | null;
  status: ConnectionStatus;
  statusBefore: ConnectionStatus;
  lastErrorCode: string | null;
  lastErrorMessage: string | null;
  turnedAtMicros: bigint;
}

/** For a statement that names the connection `c` and its former row `before`. */
const TURN = defineEntity<ConnectionTurn>('billing_connections', {
  id: column('c.id'),
  name: column('c.name'),
  provider: column('c.provider'),
  accountId: column('c.provider_account_id'),
  lastSyncedAtMicros: column('c.last_synced_at'),
  status: column('c.status'),
  statusBefore: column('before.status'),
  lastErrorCode: column('c.last_error_code'),
  lastErrorMessage: column('c.last_error_message'),
  turnedAtMicros: column('now()'),
});
export const TURN_COLUMNS = TURN.columns;

/** Stores how the last sync ended; undefined: the connection has ended. */
export async function updateSyncOutcome(
  inside: OrgDb,
  connectionId: string,
  outcome: { error: { code: string; message: string } | null; revisedOn: string | null },
): Promise<ConnectionTurn | undefined> {
  const [turn] = await inside.rows<ConnectionTurn>(
    `update billing_connections c set
       status = case when c.status = 'paused' then 'paused' when $3::text is null then 'active' else 'failing' end,
       last_synced_at = case when $3::text is null then now() else c.last_synced_at end,
       last_failed_at = case when $3::text is null then c.last_failed_at else now() end,
       last_error_code = $3, last_error_message = $4, revised_on = coalesce($5::date, c.revised_on)
     from (select status from billing_connections where org_id = $1 and id = $2 for update) before
     where c.org_id = $1 and c.id = $2 and c.removed_at is null
     returning ${TURN_COLUMNS}`,
    [
      inside.orgId,
      connectionId,
      outcome.error?.code ?? null,
      outcome.error?.message.slice(0, 2_000) ?? null,
      outcome.revisedOn,
    ],
  );
  return turn;
}

const WHY =
  'bills of the account default become those of the first connection: only maintenance rewrites bills';

/** Moves bills of the account `default` to the provider's first connection; returns the number of changed imports. */
export async function giveToFirstConnection(
  database: Database,
  orgId: string,
  provider: Provider,
): Promise<number> {
  const first = await findFirstAccount(new OrgDb(database, orgId), provider);
  return first === undefined ? 0 : adoptDefaultAccount(database, orgId, provider, first);
}

/** Moves rows, days, imports and published results of the account `default`, one import a transaction. Repeatable. */
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
  // An import can have rows with the account's name and rows without one, and therefore days under both; they are
  // joined.
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

/**
 * Moves the account's published results; of a day that is published under both names the one with the real name stays.
 */
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

/** Findings keep their ids and decisions; the next run explains the account again under its real name. */
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
