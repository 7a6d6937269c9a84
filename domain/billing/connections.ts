import { DomainError } from '../errors.js';
import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import type { Notice } from '../policies/alert.js';
import type { SealBinding, Sealer } from '../sealer.js';
import type { BilledRow } from './billedRow.js';

/** What a connection is and which part of an account it reads. */
export const CONNECTION_STATUSES = ['connecting', 'active', 'failing', 'paused', 'ended'] as const;
export type ConnectionStatus = (typeof CONNECTION_STATUSES)[number];

export const SYNC_TRIGGERS = ['connect', 'schedule', 'request', 'settings'] as const;
export type SyncTrigger = (typeof SYNC_TRIGGERS)[number];

/** UTC days that a new connection asks for; they end with today, as the longest gap period does. */
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

/** Azure's scope is the account itself, unless it names one resource group of it. */
function resourceGroupsOf({ scope }: ConnectionSettings): string[] {
  const group =
    scope?.resource === undefined ? null : (parseAzureScope(scope.resource)?.resourceGroup ?? null);
  return group === null ? [] : [group];
}

/** Whether scopes may bill the same charge: one is everything, they share a part, or they cut by different things. */
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
  /** When the last sync that went well ended; null where none ever did. */
  lastSyncedAtMicros: bigint | null;
  error: { code: string; message: string };
}

/** One notice for each time that the status turns, at `atMicros`. */
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

/** The name under which a scope lists Anthropic's default workspace, whose id is null in every report. */
export const DEFAULT_WORKSPACE = 'default';

/** What a connection may be told beside its credentials. */
export interface ConnectionSettings {
  /** The provider's own organization, account or subscription, where the provider cannot be asked for it. */
  account?: string;
  /** US dollars for one unit of the currency of a bill that is not in dollars and names no rate; a decimal. */
  fxRate?: string;
  /** The same for single months (`YYYY-MM`), before `fxRate`. */
  fxRates?: Record<string, string>;
  /** AWS: the region that requests are signed for where the address does not say it; us-east-1 where absent. */
  region?: string;
  /** The part of the account that the connection reads; absent or empty lists mean the whole account. */
  scope?: ConnectionScope;
}

/** The rate for a day of the bill (`YYYY-MM-DD`): its month's, else the one for all; undefined without any. */
export function fxRateOn({ fxRate, fxRates }: ConnectionSettings, day: string): string | undefined {
  return fxRates?.[day.slice(0, 7)] ?? fxRate;
}

export function hasOtherRates(a: ConnectionSettings, b: ConnectionSettings): boolean {
  const months = Object.keys({ ...a.fxRates, ...b.fxRates });
  return a.fxRate !== b.fxRate || months.some((month) => fxRateOn(a, month) !== fxRateOn(b, month));
}

/** OpenAI narrows by projects, Anthropic by workspaces (`default` names the default workspace). */
export interface ConnectionScope {
  projects?: string[];
  workspaces?: string[];
  /** AWS: the linked accounts of an organization that are read. */
  accounts?: string[];
  /** Azure: the subscription, resource group or billing account that is read, as its resource manager names it. */
  resource?: string;
}

export function scopedProjects(settings: ConnectionSettings): readonly string[] {
  return [...(settings.scope?.projects ?? []), ...(settings.scope?.workspaces ?? [])];
}

/** Whether a row belongs to the connection. Charges without a project belong to the connection of the whole account. */
export function isInScope(row: Pick<BilledRow, 'project'>, settings: ConnectionSettings): boolean {
  const projects = scopedProjects(settings);
  if (projects.length === 0) return true;
  return projects.includes(row.project ?? '') || (row.project === null && includesDefaultWorkspace(settings));
}

/** The default workspace has no id to filter by. */
export function includesDefaultWorkspace(settings: ConnectionSettings): boolean {
  return (settings.scope?.workspaces ?? []).includes(DEFAULT_WORKSPACE);
}

/** What a provider asks for, e.g. `{admin_key}`. */
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

/** Credentials as text, to be sealed under another key; undefined when no key opens them. */
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

/** The credentials. Errors: credentials_missing when given up, secret_key_missing without the key. */
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

/** The part of Azure that a connection reads, as Azure's resource manager writes it. */
export interface AzureScope {
  /** The path in front of the query: letters in the case in which they were given, no slash at the end. */
  path: string;
  /** The subscription's id, or that of the billing account or management group: whose bill it is. */
  account: string;
  /** Within a subscription charges are told by resource; above it Azure tells them by subscription only. */
  groupsByResource: boolean;
  /** The resource group that the subscription is narrowed to. */
  resourceGroup: string | null;
}

const GUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';
/** Names neither begin nor end with a dot, so none leads out of its place in a path. */
const NAME = '[A-Za-z0-9_()](?:[A-Za-z0-9_.()-]{0,88}[A-Za-z0-9_()-])?';
/** A billing account of a Customer Agreement has two ids and a date with colons and underscores between. */
const BILLING = '[A-Za-z0-9](?:[A-Za-z0-9_:.-]{0,198}[A-Za-z0-9_-])?';

const SUBSCRIPTION = new RegExp(`^/subscriptions/(${GUID})(?:/resourceGroups/(${NAME}))?$`, 'i');
const ABOVE = new RegExp(
  `^/providers/Microsoft\\.(?:Billing/billingAccounts/(${BILLING})(?:/(?:billingProfiles|departments|enrollmentAccounts|invoiceSections|customers)/${BILLING}){0,2}|Management/managementGroups/(${NAME}))$`,
  'i',
);

/** A scope from its text, `subscriptions/…` with or without the slashes around it; undefined where it is none. */
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
