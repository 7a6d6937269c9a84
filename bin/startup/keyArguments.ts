import { isKeyId } from '../../domain/access/keyFormat.js';
import { GRACE_SECONDS_DEFAULT, GRACE_SECONDS_MAX, KEY_STATUSES } from '../../domain/access/keyRules.js';
import { ROLES, type Role, SCOPES, type Scope } from '../../domain/access/scopes.js';
import { findUuid } from '../../domain/ids.js';
import { parseInstant } from '../../domain/period.js';
import { misused, readCommandLine } from './commandLine.js';

export const USAGE = `Usage: npm run key:create -- --role ${ROLES.join('|')} --name NAME [--scopes SCOPE,…] [--workspace wsp_…] [--expires TIME]
       npm run key:create -- --offline      prints a key for INIT_ADMIN_KEY, stored nowhere
       npm run key:list [-- --status ${KEY_STATUSES.join('|')}]
       npm run key:revoke -- key_…
       npm run key:rotate -- key_… [--grace SECONDS]     prints the new key; the old one holds for a day, or for the grace
       npm run key:check -- KEY                          says offline whether a key has a slip of the pen
Each but key:check takes --org org_… where there are several organizations.`;

/** The terms of a key that is to be stored. */
export interface AskedKey {
  name: string;
  role: Role;
  scopes: readonly Scope[] | null;
  workspaceId: string | null;
  expiresAtMicros: bigint | null;
}

export type KeyArguments =
  | { command: 'check'; key: string }
  /** A key that is stored nowhere. */
  | { command: 'draw' }
  | { command: 'create'; org: string | undefined; key: AskedKey }
  | { command: 'list'; org: string | undefined; status: string | undefined }
  | { command: 'revoke'; org: string | undefined; id: string }
  | { command: 'rotate'; org: string | undefined; id: string; graceSeconds: number };

/**
 * What a command about keys asks for, from the words of its line.
 * @throws StartError with the usage.
 */
export function readKeyArguments(args: readonly string[]): KeyArguments {
  const { values, positionals } = readCommandLine(USAGE, {
    options: {
      role: { type: 'string' },
      name: { type: 'string' },
      scopes: { type: 'string' },
      workspace: { type: 'string' },
      expires: { type: 'string' },
      status: { type: 'string' },
      grace: { type: 'string' },
      org: { type: 'string' },
      offline: { type: 'boolean', default: false },
    },
    args: [...args],
    allowPositionals: true,
  });
  const [command, word, ...more] = positionals;
  const { org } = values;
  if (more.length > 0) throw misused('There are more words than one.', USAGE);
  refuseUnused(command, values);
  switch (command) {
    case 'create':
      return values.offline ? { command: 'draw' } : { command, org, key: readAskedKey(values) };
    case 'list':
      return { command, org, status: readStatus(values.status) };
    case 'revoke':
      return { command, org, id: readId(word) };
    case 'rotate':
      return { command, org, id: readId(word), graceSeconds: readGrace(values.grace) };
    case 'check':
      if (word === undefined) throw misused('The key is missing.', USAGE);
      return { command, key: word };
    default:
      throw misused('What is to be done?', USAGE);
  }
}

/** The options of each command; what another one takes would be passed over unseen. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  create: ['role', 'name', 'scopes', 'workspace', 'expires', 'org', 'offline'],
  list: ['status', 'org'],
  revoke: ['org'],
  rotate: ['grace', 'org'],
  check: [],
};

function refuseUnused(
  command: string | undefined,
  values: Record<string, string | boolean | undefined>,
): void {
  const taken = OPTIONS[command ?? ''];
  const unused = Object.keys(values).find((name) => values[name] !== false && !taken?.includes(name));
  if (taken && unused !== undefined) throw misused(`key:${command} does not take --${unused}.`, USAGE);
}

function readAskedKey(values: Record<string, string | boolean | undefined>): AskedKey {
  const { role, name, scopes, workspace, expires } = values as Record<string, string | undefined>;
  const known = ROLES.find((one) => one === role);
  if (!known) throw misused(`--role is ${role ?? 'missing'}: give one of ${ROLES.join(', ')}.`, USAGE);
  if (!name || name.length > 256) throw misused('--name is missing: give 1 to 256 characters.', USAGE);
  return {
    name,
    role: known,
    scopes: scopes === undefined ? null : readScopes(scopes),
    workspaceId: workspace === undefined ? null : readWorkspace(workspace),
    expiresAtMicros: expires === undefined ? null : readTime(expires),
  };
}

function readScopes(text: string): Scope[] {
  const named = text.split(',').map((word) => word.trim());
  const unknown = named.find((word) => !SCOPES.some((scope) => scope === word));
  if (unknown !== undefined)
    throw misused(`--scopes names ${unknown || 'nothing'}: give some of ${SCOPES.join(', ')}.`, USAGE);
  return SCOPES.filter((scope) => named.includes(scope));
}

function readWorkspace(text: string): string {
  const uuid = findUuid('wsp', text);
  if (uuid === undefined) throw misused(`--workspace is ${text}: give its id, wsp_….`, USAGE);
  return uuid;
}

function readTime(text: string): bigint {
  const instant = parseInstant(text);
  if (!instant) throw misused(`--expires is ${text}: give a time such as 2026-12-31T00:00:00Z.`, USAGE);
  return instant.micros;
}

function readStatus(text: string | undefined): string | undefined {
  if (text === undefined || KEY_STATUSES.some((status) => status === text)) return text;
  throw misused(`--status is ${text}: give one of ${KEY_STATUSES.join(', ')}.`, USAGE);
}

function readId(word: string | undefined): string {
  if (word !== undefined && isKeyId(word)) return word;
  const fault = word === undefined ? 'The id of the key is missing' : `${word} is no id of a key`;
  throw misused(`${fault}: give key_… as npm run key:list shows it.`, USAGE);
}

function readGrace(text: string | undefined): number {
  if (text === undefined) return GRACE_SECONDS_DEFAULT;
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= GRACE_SECONDS_MAX) return seconds;
  throw misused(`--grace is ${text}: give seconds from 0 to ${GRACE_SECONDS_MAX}.`, USAGE);
}
