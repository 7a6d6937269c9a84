import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import type { Notice } from '../policies/alerts/alert.js';
import { parseAzureScope } from './azureScope.js';
import type { BilledRow } from './billedRow.js';

/** What a connection is and which part of an account it reads. */
export const CONNECTION_STATUSES = ['connecting', 'active', 'failing', 'paused', 'ended'] as const;
export type ConnectionStatus = (typeof CONNECTION_STATUSES)[number];

/** Why a sync was begun. */
export const SYNC_TRIGGERS = ['connect', 'schedule', 'request', 'settings'] as const;
export type SyncTrigger = (typeof SYNC_TRIGGERS)[number];

/** UTC days that a new connection asks for; they end with today, as the longest gap period does. */
export const BACKFILL_DAYS = 90;

/** The scope of a connection that reads everything. */
export const WHOLE_ACCOUNT = '';

/**
 * The part of an account that settings name, as one text that is the same whatever the order in which they name it:
 * '' for the whole account, else its parts, e.g. `project:proj_a,project:proj_b`.
 */
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

/**
 * Whether two scopes of one account may bill the same charge: one of them is the whole account, they share a part, or
 * they cut the account by different things, so that nobody can tell.
 */
export function scopesOverlap(a: string, b: string): boolean {
  if (a === WHOLE_ACCOUNT || b === WHOLE_ACCOUNT) return true;
  const parts = new Set(a.split(','));
  const kinds = new Set([...a.split(','), ...b.split(',')].map((part) => part.split(':')[0]));
  return kinds.size > 1 || b.split(',').some((part) => parts.has(part));
}

/** A connection whose status has just turned `failing`. */
export interface BrokenConnection {
  /** uuid */
  id: string;
  name: string;
  provider: string;
  accountId: string;
  /** When the last sync that went well ended; null where none ever did. */
  lastSyncedAtMicros: bigint | null;
  error: { code: string; message: string };
}

/**
 * The notice that bills come in no more. One for each time that the status turns, at `atMicros`: the syncs that fail
 * after it while it lasts say nothing new.
 */
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

/** Whether two settings name another rate for some month. */
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

/** The projects or workspaces that a connection reads; empty for the whole account. */
export function scopedProjects(settings: ConnectionSettings): readonly string[] {
  return [...(settings.scope?.projects ?? []), ...(settings.scope?.workspaces ?? [])];
}

/**
 * Whether a row belongs to what the connection reads. A provider filters where it can; where it cannot (Anthropic's
 * cost report) the rows are narrowed here. A charge that names no project (a credit, a tax) belongs to the account
 * as a whole: a narrowed connection leaves it to the one that reads everything.
 */
export function isInScope(row: Pick<BilledRow, 'project'>, settings: ConnectionSettings): boolean {
  const projects = scopedProjects(settings);
  if (projects.length === 0) return true;
  return projects.includes(row.project ?? '') || (row.project === null && includesDefaultWorkspace(settings));
}

/** The default workspace has no id to filter by. */
export function includesDefaultWorkspace(settings: ConnectionSettings): boolean {
  return (settings.scope?.workspaces ?? []).includes(DEFAULT_WORKSPACE);
}
