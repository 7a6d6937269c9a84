import { parseAzureScope } from './azureScope.js';
import type { ConnectionSettings } from './connectionScope.js';

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
