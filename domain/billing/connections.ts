import { DomainError } from '../errors.js';
import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import type { Notice } from '../policies/alert.js';
import type { SealBinding, Sealer } from '../sealer.js';
import type { BilledRow } from './billedRow.js';

/** A connection and the part of an account that it reads. */
export const CONNECTION_STATUSES = ['connecting', 'active', 'failing', 'paused', 'ended'] as const;
export type ConnectionStatus = (typeof CONNECTION_STATUSES)[number];

export const SYNC_TRIGGERS = ['connect', 'schedule', 'request', 'settings'] as const;
export type SyncTrigger = (typeof SYNC_TRIGGERS)[number];

/** UTC days that a new connection requests, up to today; as long as the longest gap period. */
export const BACKFILL_DAYS = 90;

export const WHOLE_ACCOUNT = '';

/** The part of an account as one order-independent text: '' for all, else e.g. `project:proj_a,project:proj_b`. */
export function scopeText(settings: ConnectionSettings): string {
  const parts = [
    ...(settings.scope?.projects ?? []).map((id) => `project:${id}`),
    ...(settings.scope?.workspaces ?? []).map((id) => `workspace:${id}`),
    ...(settings.scope?.accounts ?? []).map((id) => `account:${id}`),
    ...resourceGroupsOf(settings).map((name) => `resource_group:${name}`),
  ];
  return [...new Set(parts)].sort().join(',');
}

/** Azure's scope is the account itself, unless it names one resource group. */
function resourceGroupsOf({ scope }: ConnectionSettings): string[] {
  const group =
    scope?.resource === undefined ? null : (parseAzureScope(scope.resource)?.resourceGroup ?? null);
  return group === null ? [] : [group];
}

/**
 * Whether two scopes may bill the same charge: one is the whole account, they share a part, or they divide it by
 * different fields.
 */
export function scopesOverlap(a: string, b: string): boolean {
  if (a === WHOLE_ACCOUNT || b === WHOLE_ACCOUNT) return true;
  const parts = new Set(a.split(','));
  const kinds = new Set([...a.split(','), ...b.split(',')].map((part) => part.split(':')[0]));
  return kinds.size > 1 || b.split(',').some((part) => parts.has(part));
}

/** A connection whose status has just turned `failing`. */
export interface BrokenConnection {
  id: string;
  name: string;
  provider: string;
  accountId: string;
  /** The end of the last successful sync; null: there was none. */
  lastSyncedAtMicros: bigint | null;
  error: { code: string; message: string };
}

/** The notice of a connection that turned `failing` at `atMicros`; one for each such change. */
export function connectionBroken(connection: BrokenConnection, atMicros: bigint): Notice {
  const { provider, accountId, name, error, lastSyncedAtMicros } = connection;
  const id = publicId('con', connection.id);
  return {
    code: 'connection_broken',
    key: `connection_broken:${id}:${atMicros}`,
    subject: { type: 'connection', id },
    severity: 'high',
    message: `The bills of the ${provider} account ${accountId} ("${name}") cannot be fetched: ${error.message}`,
    details: {
      error_code: error.code,
      last_synced_at: lastSyncedAtMicros === null ? null : isoFromMicros(lastSyncedAtMicros),
    },
    provider,
  };
}

/** The name of Anthropic's default workspace in a scope; its id is null in every report. */
export const DEFAULT_WORKSPACE = 'default';

/** Optional settings of a connection beside its credentials. */
export interface ConnectionSettings {
  /** The provider's organization, account or subscription, for providers whose API does not return it. */
  account?: string;
  /** US dollars per unit of the currency, for bills in other currencies that contain no rate; a decimal. */
  fxRate?: string;
  /** The same for single months (`YYYY-MM`), which counts before `fxRate`. */
  fxRates?: Record<string, string>;
  /** AWS: the region for signing requests if the address has none; default us-east-1. */
  region?: string;
  /** The part of the account that the connection reads; absent or empty: the whole account. */
  scope?: ConnectionScope;
}

/** The rate for a day of the bill (`YYYY-MM-DD`): its month's, else the general one; undefined: there is none. */
export function fxRateOn({ fxRate, fxRates }: ConnectionSettings, day: string): string | undefined {
  return fxRates?.[day.slice(0, 7)] ?? fxRate;
}

export function hasOtherRates(a: ConnectionSettings, b: ConnectionSettings): boolean {
  const months = Object.keys({ ...a.fxRates, ...b.fxRates });
  return a.fxRate !== b.fxRate || months.some((month) => fxRateOn(a, month) !== fxRateOn(b, month));
}

/** OpenAI is divided by projects, Anthropic by workspaces (`default`: the default workspace). */
export interface ConnectionScope {
  projects?: string[];
  workspaces?: string[];
  /** AWS: the linked accounts to read. */
  accounts?: string[];
  /** Azure: the subscription, resource group or billing account to read, as a resource path. */
  resource?: string;
}

export function scopedProjects(settings: ConnectionSettings): readonly string[] {
  return [...(settings.scope?.projects ?? []), ...(settings.scope?.workspaces ?? [])];
}

/** Whether a row is in the connection's scope. Charges without a project are only in the scope of the whole account. */
export function isInScope(row: Pick<BilledRow, 'project'>, settings: ConnectionSettings): boolean {
  const projects = scopedProjects(settings);
  if (projects.length === 0) return true;
  return projects.includes(row.project ?? '') || (row.project === null && includesDefaultWorkspace(settings));
}

/** The default workspace has no id to filter by. */
export function includesDefaultWorkspace(settings: ConnectionSettings): boolean {
  return (settings.scope?.workspaces ?? []).includes(DEFAULT_WORKSPACE);
}

/** The fields that a provider requires, e.g. `{admin_key}`. */
export type Credentials = Readonly<Record<string, string>>;

const bindingOf = (orgId: string, connectionId: string): SealBinding => ({
  orgId,
  subjectId: connectionId,
  purpose: 'billing-credentials',
});

export function sealCredentials(
  sealer: Sealer,
  orgId: string,
  connectionId: string,
  credentials: Credentials,
): { ciphertext: Buffer; keyId: string } {
  return sealer.seal(JSON.stringify(credentials), bindingOf(orgId, connectionId));
}

/** Credentials as text, to be sealed under another key; undefined: no available key opens them. */
export function findSealedText(
  sealer: Sealer,
  orgId: string,
  connectionId: string,
  sealed: Buffer,
): string | undefined {
  return sealer.open(sealed, bindingOf(orgId, connectionId));
}

export function resealText(
  sealer: Sealer,
  orgId: string,
  connectionId: string,
  text: string,
): { ciphertext: Buffer; keyId: string } {
  return sealer.seal(text, bindingOf(orgId, connectionId));
}

/** Errors: credentials_missing if they were deleted, secret_key_missing if no available key opens them. */
export function openCredentials(
  sealer: Sealer,
  orgId: string,
  connection: { id: string; ciphertext: Buffer | null },
): Credentials {
  if (connection.ciphertext === null) {
    throw new DomainError(
      'credentials_missing',
      'the connection has no credentials any more; give new ones with PATCH, in credentials',
    );
  }
  const text = findSealedText(sealer, orgId, connection.id, connection.ciphertext);
  if (text === undefined) {
    throw new DomainError(
      'secret_key_missing',
      'the credentials cannot be opened: wrong or missing secret key; whoever runs the service gives back the key that sealed them (DATA_DIR/secret-key, or TRUEUP_SECRET_KEY), or new credentials are given with PATCH',
    );
  }
  return JSON.parse(text) as Credentials;
}

/** The part of Azure that a connection reads, in the notation of Azure Resource Manager. */
export interface AzureScope {
  /** The path before the query, in its original case and without a slash at the end. */
  path: string;
  /** The id of the billed subscription, billing account or management group. */
  account: string;
  /** Within a subscription charges are grouped by resource; above it Azure groups them by subscription only. */
  groupsByResource: boolean;
  /** The only resource group of the subscription to read. */
  resourceGroup: string | null;
}

const GUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';
/** Names cannot begin or end with a dot, so that none leaves its place in a path. */
const NAME = '[A-Za-z0-9_()](?:[A-Za-z0-9_.()-]{0,88}[A-Za-z0-9_()-])?';
/** A billing account of a Customer Agreement has two ids and a date with colons and underscores between. */
const BILLING = '[A-Za-z0-9](?:[A-Za-z0-9_:.-]{0,198}[A-Za-z0-9_-])?';

const SUBSCRIPTION = new RegExp(`^/subscriptions/(${GUID})(?:/resourceGroups/(${NAME}))?$`, 'i');
const ABOVE = new RegExp(
  `^/providers/Microsoft\\.(?:Billing/billingAccounts/(${BILLING})(?:/(?:billingProfiles|departments|enrollmentAccounts|invoiceSections|customers)/${BILLING}){0,2}|Management/managementGroups/(${NAME}))$`,
  'i',
);

/** Parses `subscriptions/…` with or without slashes around it; undefined: no valid scope. */
export function parseAzureScope(text: string): AzureScope | undefined {
  const path = `/${text.trim().replace(/^\/+|\/+$/g, '')}`;
  const [, subscription, resourceGroup] = SUBSCRIPTION.exec(path) ?? [];
  if (subscription !== undefined) {
    return {
      path,
      account: subscription.toLowerCase(),
      groupsByResource: true,
      resourceGroup: resourceGroup?.toLowerCase() ?? null,
    };
  }
  const [, billingAccount, group] = ABOVE.exec(path) ?? [];
  const account = billingAccount ?? group;
  return account === undefined ? undefined : { path, account, groupsByResource: false, resourceGroup: null };
}
