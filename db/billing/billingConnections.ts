import {
  type ConnectionSettings,
  type ConnectionStatus,
  scopesOverlap,
} from '../../domain/billing/connections.js';
import { DomainError } from '../../domain/errors.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { Database } from '../client.js';
import { column, defineEntity } from '../entity.js';
import { INSTALLATION_LOCKS, lockByName } from '../locks.js';
import { type OrgDb, type SystemDb, unscoped } from '../orgDb.js';

/** A connection to a provider's bills as it is stored, its credentials sealed. */
export interface BillingConnection {
  id: string;
  provider: Provider;
  name: string;
  status: ConnectionStatus;
  accountId: string;
  /** '' for the whole account. */
  scope: string;
  settings: ConnectionSettings;
  /** Null when no key opens them any more and the operator has given them up. */
  ciphertext: Buffer | null;
  backfillFrom: string;
  /** UTC day on which the days that may still be restated were last asked for again. */
  revisedOn: string | null;
  lastSyncedAtMicros: bigint | null;
  lastFailedAtMicros: bigint | null;
  lastErrorCode: string | null;
  lastErrorMessage: string | null;
  nextSyncAtMicros: bigint | null;
  createdAtMicros: bigint;
  updatedAtMicros: bigint;
}

interface ConnectionRow {
  id: string;
  provider: Provider;
  name: string;
  status: ConnectionStatus;
  provider_account_id: string;
  scope: string;
  settings: ConnectionSettings;
  ciphertext: Buffer | null;
  backfill_from: string;
  revised_on: string | null;
  last_synced_at: bigint | null;
  last_failed_at: bigint | null;
  last_error_code: string | null;
  last_error_message: string | null;
  next_sync_at: bigint | null;
  created_at: bigint;
  updated_at: bigint;
}

const COLUMNS = `id, provider, name, status, provider_account_id, scope, settings, ciphertext, backfill_from, revised_on, last_synced_at,
  last_failed_at, last_error_code, last_error_message, next_sync_at, created_at, updated_at`;

function fromConnectionRow(row: ConnectionRow): BillingConnection {
  return {
    id: row.id,
    provider: row.provider,
    name: row.name,
    status: row.status,
    accountId: row.provider_account_id,
    scope: row.scope,
    settings: row.settings,
    ciphertext: row.ciphertext,
    backfillFrom: row.backfill_from,
    revisedOn: row.revised_on,
    lastSyncedAtMicros: row.last_synced_at,
    lastFailedAtMicros: row.last_failed_at,
    lastErrorCode: row.last_error_code,
    lastErrorMessage: row.last_error_message,
    nextSyncAtMicros: row.next_sync_at,
    createdAtMicros: row.created_at,
    updatedAtMicros: row.updated_at,
  };
}

/** Seals credentials with the key that is current at that moment; called under the lock that a rotation takes. */
export type SealCredentials = () => { ciphertext: Buffer; keyId: string };

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
 * Stores a connection, with the run that fills it and the messages that start and schedule it, unless another one of
 * this instance, of whichever organization, reads the same part of the account: error account_already_connected,
 * which does not tell whose it is. Two requests at once are decided one after the other.
 */
export async function insertBillingConnection(
  orgDb: OrgDb,
  connection: NewBillingConnection,
  syncRunId: string,
  seal: SealCredentials,
): Promise<void> {
  const { orgId } = orgDb;
  await orgDb.unscoped('an account may be billed once on the whole instance', async (system) => {
    await refuseOverlap(system, { ...connection, orgId });
    const { ciphertext, keyId } = await sealUnderLock(system, seal);
    await lockFirstAccount(system, orgId, connection.provider);
    await system.run(
      `insert into billing_connections (org_id, id, provider, name, status, provider_account_id, scope, settings, ciphertext, secret_key_id, backfill_from)
       values ($1, $2, $3, $4, 'connecting', $5, $6, $7::jsonb, $8, $9, $10)`,
      [
        orgId,
        connection.id,
        connection.provider,
        connection.name,
        connection.accountId,
        connection.scope,
        JSON.stringify(connection.settings),
        ciphertext,
        keyId,
        connection.backfillFrom,
      ],
    );
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

/** A rotation drops an old key only while nobody seals with it: it takes the same lock for itself alone. */
async function sealUnderLock(
  system: SystemDb,
  seal: SealCredentials,
): Promise<{ ciphertext: Buffer; keyId: string }> {
  await system.run('select pg_advisory_xact_lock_shared($1)', [INSTALLATION_LOCKS.secrets]);
  return seal();
}

interface WantedScope {
  orgId: string;
  id: string;
  provider: Provider;
  accountId: string;
  scope: string;
}

/** Error account_already_connected. The lock holds to the end of the transaction. */
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

/** The connection, unless it has ended. */
export async function findBillingConnection(
  orgDb: OrgDb,
  id: string,
): Promise<BillingConnection | undefined> {
  const rows = await orgDb.rows<ConnectionRow>(
    `select ${COLUMNS} from billing_connections where org_id = $1 and id = $2 and removed_at is null`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromConnectionRow(rows[0]);
}

/** Connections that have not ended, newest first. */
export async function listBillingConnections(
  orgDb: OrgDb,
  page: { limit: number; offset: number },
): Promise<BillingConnection[]> {
  const rows = await orgDb.rows<ConnectionRow>(
    `select ${COLUMNS} from billing_connections where org_id = $1 and removed_at is null
     order by created_at desc, id desc limit $2 offset $3`,
    [orgDb.orgId, page.limit, page.offset],
  );
  return rows.map(fromConnectionRow);
}

export interface ConnectionChanges {
  name?: string;
  paused?: boolean;
  /** With the scope that they mean. */
  settings?: { settings: ConnectionSettings; scope: string };
  seal?: SealCredentials;
}

/**
 * Changes a connection; what is not named stays. False when it has ended. Another scope is checked as at the
 * beginning: error account_already_connected.
 */
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

/**
 * Ends a connection: its credentials are erased, its open sync is cancelled, its bills stay. False when it had ended.
 */
export async function endBillingConnection(inside: OrgDb, id: string): Promise<boolean> {
  // Runs before connections, as everywhere: two that lock both never wait for each other.
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
  await inside.run(`insert into outbox (org_id, kind, subject_id) values ($1, 'connection.schedule', $2)`, [
    inside.orgId,
    id,
  ]);
  return true;
}

/** Notes when the schedule fires next. */
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

/** A connection as its schedule knows it. */
export interface ScheduledConnection {
  orgId: string;
  connectionId: string;
  provider: Provider;
  paused: boolean;
}

/** Every connection of every organization that has not ended: what there must be a schedule for. */
export async function listScheduledConnections(database: Database): Promise<ScheduledConnection[]> {
  const rows = await unscoped(
    database,
    'schedules of every organization are made from its connections',
    (system) =>
      system.rows<{ org_id: string; id: string; provider: Provider; status: ConnectionStatus }>(
        'select org_id, id, provider, status from billing_connections where removed_at is null order by org_id, id',
      ),
  );
  return rows.map((row) => ({
    orgId: row.org_id,
    connectionId: row.id,
    provider: row.provider,
    paused: row.status === 'paused',
  }));
}

/** The account of the provider's first connection, ended or not: it takes over the bills of the account `default`. */
/**
 * Keeps connections of the provider from being made until the transaction ends: an import that ends knows all of them, and
 * a connection that is made later knows the import.
 */
export function lockFirstAccount(inside: OrgDb | SystemDb, orgId: string, provider: Provider): Promise<void> {
  return lockByName(inside, 'firstAccount', `${orgId} ${provider}`);
}

export async function findFirstAccount(orgDb: OrgDb, provider: Provider): Promise<string | undefined> {
  const rows = await orgDb.rows<{ account: string }>(
    `select provider_account_id as account from billing_connections where org_id = $1 and provider = $2
     order by created_at, id limit 1`,
    [orgDb.orgId, provider],
  );
  return rows[0]?.account;
}

/** A connection after a statement that may have changed its status. */
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

/** For a statement that names the connection `c` and its row as it was `before`. */
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

/** Stores how the last sync ended; undefined when the connection has ended. */
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
