import type { AuditDetails } from '../access/auditLog.js';
import { ALLOCATIONS, type Allocation } from '../usage/chargeback.js';

/** The settings of an organization, stored as one JSON object; an absent field has its default. */

export interface CountedScope {
  /** OTel `service.name`; null: calls without a service name. */
  service: string | null;
  /** Name of the instrumentation scope, as ingest health shows it. */
  scope: string;
}

export interface OrganizationSettings {
  /** Payloads, tool inputs and tool outputs of calls are not stored. */
  dropPayloads: boolean;
  /** Days (`YYYY-MM-DD`) without work, ascending and unique. */
  holidays: readonly string[];
  /** IANA name, used to display or schedule in local time. All totals use UTC. */
  timeZone: string;
  /** Scopes that count in a service that is instrumented twice. In all other services every scope counts. */
  countedScopes: readonly CountedScope[];
  /** The division of spend without a bucket in a chargeback. */
  chargebackAllocation: Allocation;
}

export const DEFAULT_SETTINGS: OrganizationSettings = {
  dropPayloads: false,
  holidays: [],
  timeZone: 'UTC',
  countedScopes: [],
  chargebackAllocation: 'none',
};

/** Ten years. */
export const HOLIDAYS_MAX = 3_660;
export const COUNTED_SCOPES_MAX = 1_000;

/** The name of each field, both stored and on the wire. */
export const SETTING_FIELDS = {
  dropPayloads: 'drop_payloads',
  holidays: 'holidays',
  timeZone: 'time_zone',
  countedScopes: 'counted_scopes',
  chargebackAllocation: 'chargeback_allocation',
} as const satisfies Record<keyof OrganizationSettings, string>;

type FieldName = keyof typeof SETTING_FIELDS;
const FIELD_NAMES = Object.keys(SETTING_FIELDS) as FieldName[];

/** Fields to change. null resets a field to its default; undefined keeps it. */
export type SettingsChange = { [name in FieldName]?: OrganizationSettings[name] | null | undefined };

/** Applies a change, each field as a whole. Days are sorted and made unique. */
export function changeSettings(settings: OrganizationSettings, change: SettingsChange): OrganizationSettings {
  const changed = { ...settings };
  for (const name of FIELD_NAMES) {
    const value = change[name];
    if (value !== undefined) Object.assign(changed, { [name]: value ?? DEFAULT_SETTINGS[name] });
  }
  changed.holidays = [...new Set(changed.holidays)].sort();
  changed.countedScopes = [...new Map(changed.countedScopes.map((one) => [keyOf(one), one])).values()];
  return changed;
}

function keyOf({ service, scope }: CountedScope): string {
  return JSON.stringify([service, scope]);
}

/** Names of the stored fields that differ between the two. */
export function changedFields(one: OrganizationSettings, other: OrganizationSettings): string[] {
  const [a, b] = [storedSettings(one), storedSettings(other)];
  return FIELD_NAMES.map((name) => SETTING_FIELDS[name]).filter(
    (field) => JSON.stringify(a[field]) !== JSON.stringify(b[field]),
  );
}

/** The JSON to store. Fields with default values are left out, so that a later default applies to them. */
export function storedSettings(settings: OrganizationSettings): { [field: string]: unknown } {
  const stored: { [field: string]: unknown } = {};
  for (const name of FIELD_NAMES) {
    const value = settings[name];
    if (JSON.stringify(value) !== JSON.stringify(DEFAULT_SETTINGS[name]))
      stored[SETTING_FIELDS[name]] = value;
  }
  return stored;
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Settings as they were read from storage. */
export interface StoredSettings {
  settings: OrganizationSettings;
  /** Stored fields whose value `storedSettings` cannot have written; their defaults apply. */
  unreadable: string[];
}

/** Unreadable fields get their defaults, since a manual mistake must not stop ingest or its own correction. */
export function parseSettings(stored: unknown): StoredSettings {
  const object = isObject(stored) ? stored : {};
  const unreadable = isObject(stored) ? [] : ['settings'];
  const settings = { ...DEFAULT_SETTINGS };
  for (const name of FIELD_NAMES) {
    const value = object[SETTING_FIELDS[name]];
    if (value === undefined) continue;
    if (IS_STORED[name](value)) Object.assign(settings, { [name]: value });
    else unreadable.push(SETTING_FIELDS[name]);
  }
  const known = new Set<string>(Object.values(SETTING_FIELDS));
  unreadable.push(...Object.keys(object).filter((field) => !known.has(field)));
  return { settings, unreadable };
}

const isObject = (value: unknown): value is { [field: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isBoolean = (value: unknown) => typeof value === 'boolean';
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isList = (value: unknown, is: (item: unknown) => boolean) => Array.isArray(value) && value.every(is);

function isCountedScope(value: unknown): boolean {
  return (
    isObject(value) &&
    Object.keys(value).length === 2 &&
    (value.service === null || isText(value.service)) &&
    typeof value.scope === 'string'
  );
}

const IS_STORED: Record<FieldName, (value: unknown) => boolean> = {
  dropPayloads: isBoolean,
  holidays: (value) => isList(value, (day) => isText(day) && DAY.test(day)),
  timeZone: isText,
  countedScopes: (value) => isList(value, isCountedScope),
  chargebackAllocation: (value) => ALLOCATIONS.some((one) => one === value),
};

/** The spelling of the IANA database, each part capitalized, which every program can read. */
const ZONE_NAME = /^[A-Z][A-Za-z0-9_+-]*(?:\/[A-Z][A-Za-z0-9_+-]*){0,2}$/;

/** Whether a text is a name of the IANA time zone database; UTC offsets are not. */
export function isTimeZone(name: string): boolean {
  if (!ZONE_NAME.test(name)) return false;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions();
    // Intl accepts every case of letters; if it resolves to another spelling, the name is not spelled as in the
    // database.
    return timeZone === name || timeZone.toLowerCase() !== name.toLowerCase();
  } catch {
    return false;
  }
}

/** The audit log's details of a change: old and new values, and for lists the added and removed items. */
export function describeChange(before: OrganizationSettings, after: OrganizationSettings): AuditDetails {
  const details: { [name: string]: AuditDetails[string] } = { fields: changedFields(before, after) };
  for (const name of ['dropPayloads', 'timeZone', 'chargebackAllocation'] as const) {
    if (before[name] === after[name]) continue;
    details[`old_${SETTING_FIELDS[name]}`] = before[name];
    details[`new_${SETTING_FIELDS[name]}`] = after[name];
  }
  compareLists(details, SETTING_FIELDS.holidays, before.holidays, after.holidays);
  const scopes = (settings: OrganizationSettings) =>
    settings.countedScopes.map(({ service, scope }) => `${service ?? '(no service)'}: ${scope}`);
  compareLists(details, SETTING_FIELDS.countedScopes, scopes(before), scopes(after));
  return details;
}

function compareLists(
  details: { [name: string]: AuditDetails[string] },
  field: string,
  before: readonly string[],
  after: readonly string[],
): void {
  const added = after.filter((item) => !before.includes(item));
  const removed = before.filter((item) => !after.includes(item));
  if (added.length > 0) details[`${field}_added`] = added;
  if (removed.length > 0) details[`${field}_removed`] = removed;
}
