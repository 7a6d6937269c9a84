import type { BillingConnectors } from '../../adapters/billing/connectors.js';
import {
  type BillingConnection,
  type ConnectionChanges,
  endBillingConnection,
  findBillingConnection,
  insertBillingConnection,
  updateBillingConnection,
} from '../../db/billing/billingConnections.js';
import { SYNC_RUNS, type SyncRun } from '../../db/billing/syncRuns.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findRun } from '../../db/runs/runTable.js';
import type { AuditAction, AuditDetails } from '../../domain/access/auditLog.js';
import {
  BACKFILL_DAYS,
  type ConnectionSettings,
  type Credentials,
  hasOtherRates,
  openCredentials,
  scopeText,
  sealCredentials,
} from '../../domain/billing/connections.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { lastDays } from '../../domain/period.js';
import type { Sealer } from '../../domain/sealer.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import {
  askProvider,
  changedSettings,
  checkCredentials,
  checkSameAccount,
  checkScope,
  connectorOf,
  identifyAccount,
} from './providerAccounts.js';
import { openSettingsSync } from './sync.js';

export interface ConnectionDeps {
  connectors: BillingConnectors;
  secretKeys: Sealer;
  nowMicros(): bigint;
}

export interface ConnectionRequest {
  provider: string;
  name?: string | undefined;
  settings: ConnectionSettings;
  credentials: Credentials;
}

export interface AcceptedConnection {
  connection: Parameters<typeof insertBillingConnection>[1];
  credentials: Credentials;
}

/** Verifies a new connection's credentials at the provider. Errors: invalid_body and those of `askProvider`. */
export async function tryConnection(
  deps: ConnectionDeps,
  { provider, name, settings: given, credentials }: ConnectionRequest,
  signal: AbortSignal,
): Promise<AcceptedConnection> {
  const connector = connectorOf(deps, provider);
  checkCredentials(connector, credentials);
  checkScope(connector, given);
  const account = await identifyAccount(connector, credentials, given, signal);
  const settings = { ...given, account };
  return {
    credentials,
    connection: {
      id: newUuid(deps.nowMicros()),
      provider: connector.provider,
      name: name ?? connector.provider,
      settings,
      accountId: account,
      scope: scopeText(settings),
      backfillFrom: lastDays(BACKFILL_DAYS, deps.nowMicros()).fromDay,
    },
  };
}

/** Stores a new connection with its first sync, in the request's transaction. Error account_already_connected. */
export async function storeConnection(
  inside: OrgDb,
  deps: ConnectionDeps,
  { connection, credentials }: AcceptedConnection,
  author: RequestAuthor,
): Promise<{ connection: BillingConnection; sync: SyncRun | undefined }> {
  const { id, name, provider, accountId } = connection;
  const runId = newUuid(deps.nowMicros());
  await insertBillingConnection(inside, connection, runId, () =>
    sealCredentials(deps.secretKeys, inside.orgId, id, credentials),
  );
  const stored = { connection: await getOpen(inside, id), sync: await findRun(inside, SYNC_RUNS, runId) };
  await record(inside, author, 'connection.created', id, { name, provider, account: accountId });
  return stored;
}

export interface ConnectionChange {
  name?: string | undefined;
  paused?: boolean | undefined;
  settings?: ConnectionSettings | undefined;
  credentials?: Credentials | undefined;
}

export interface AcceptedChange {
  changes: ConnectionChanges;
  /** Whether the connection has to be fetched again. */
  needsSync: boolean;
  details: AuditDetails;
}

/**
 * Verifies a change at the provider when it contains credentials. Errors: account_mismatch, invalid_body and those of
 * `askProvider`.
 */
export async function tryChange(
  deps: ConnectionDeps,
  orgId: string,
  connection: BillingConnection,
  change: ConnectionChange,
  signal: AbortSignal,
): Promise<AcceptedChange> {
  const { name, paused, credentials } = change;
  const connector = connectorOf(deps, connection.provider);
  const settings = change.settings && changedSettings(connector, connection, change.settings);
  if (credentials) await checkSameAccount(connector, connection, credentials, signal);
  const isOtherScope = settings !== undefined && scopeText(settings) !== connection.scope;
  const isOtherRate = settings !== undefined && hasOtherRates(settings, connection.settings);
  return {
    changes: {
      ...(name === undefined ? {} : { name }),
      ...(paused === undefined ? {} : { paused }),
      ...(settings ? { settings: { settings, scope: scopeText(settings) } } : {}),
      ...(credentials
        ? { seal: () => sealCredentials(deps.secretKeys, orgId, connection.id, credentials) }
        : {}),
    },
    needsSync: (isOtherScope || isOtherRate || credentials !== undefined) && paused !== true,
    // The log lists the changed fields, never the credentials.
    details: { changed: Object.keys(change).sort(), name, paused },
  };
}

/**
 * Stores a change, with a sync when one is needed, in the request's transaction. Errors: not_found,
 * account_already_connected.
 */
export async function storeChange(
  inside: OrgDb,
  deps: ConnectionDeps,
  connection: BillingConnection,
  { changes, needsSync, details }: AcceptedChange,
  author: RequestAuthor,
): Promise<{ connection: BillingConnection; sync: SyncRun | undefined }> {
  if (!(await updateBillingConnection(inside, connection, changes))) throw endedJustNow();
  const sync = needsSync ? await openSettingsSync(inside, connection.id, deps.nowMicros()) : undefined;
  const changed = await getOpen(inside, connection.id);
  await record(inside, author, 'connection.changed', connection.id, details);
  return { connection: changed, sync };
}

/** Ends a connection. Error: not_found when it had already ended. */
export async function endConnection(
  orgDb: OrgDb,
  { id, name }: Pick<BillingConnection, 'id' | 'name'>,
  author: RequestAuthor,
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    if (!(await endBillingConnection(inside, id)))
      throw new DomainError('not_found', 'there is no billing connection with this id');
    await record(inside, author, 'connection.ended', id, { name });
  });
}

/**
 * Verifies a connection's stored credentials, with one check for each permission. Errors: credentials_missing and those
 * of `askProvider`.
 */
export async function testConnection(
  deps: ConnectionDeps,
  orgDb: OrgDb,
  connection: BillingConnection,
  author: RequestAuthor,
  signal: AbortSignal,
) {
  const connector = connectorOf(deps, connection.provider);
  const credentials = openCredentials(deps.secretKeys, orgDb.orgId, connection);
  const checks = await askProvider(connector, signal, (limited) =>
    connector.test({ credentials, settings: connection.settings, signal: limited }),
  );
  const ok = checks.every((check) => check.ok);
  await record(orgDb, author, 'connection.tested', connection.id, { ok });
  return { ok, checks };
}

async function getOpen(inside: OrgDb, id: string): Promise<BillingConnection> {
  const connection = await findBillingConnection(inside, id);
  if (!connection) throw endedJustNow();
  return connection;
}

function endedJustNow(): DomainError {
  return new DomainError('not_found', 'the connection was ended just now');
}

function record(
  orgDb: OrgDb,
  author: RequestAuthor,
  action: AuditAction,
  id: string,
  details: AuditDetails,
): Promise<void> {
  return recordAction(orgDb, author, action, { type: 'connection', id: publicId('con', id) }, details);
}
