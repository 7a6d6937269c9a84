import type { BilledRow } from './billedRow.js';

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
