import { Argument, Command, Option } from 'commander';
import { type ApiKey, listApiKeys } from '../../db/access/keys.js';
import { OrgDb } from '../../db/orgDb.js';
import {
  findKeyFault,
  GRACE_SECONDS_DEFAULT,
  GRACE_SECONDS_MAX,
  isKeyId,
  KEY_STATUSES,
  parseKey,
  ROLES,
  type Role,
  SCOPES,
  type Scope,
} from '../../domain/access/keyRules.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { isoFromMicros, microsFromDate, parseInstant } from '../../domain/period.js';
import { Misuse, StartError } from '../../platform/startError.js';
import {
  createKey,
  drawKey,
  type KeyAuthor,
  revokeKey,
  rotateKey,
} from '../../usecases/access/keyChanges.js';
import { chooseOrganization, withToolDatabase } from '../service/toolDatabase.js';
import { jsonOption, organizationOption, print, printJson, type Terminal } from '../terminal/terminal.js';
import { left, textTable } from '../terminal/textTable.js';

/** Most keys that a list prints; the API lists all, page by page. */
const LIST_MAX = 1_000;
const NAME_CHARS_MAX = 256;

interface CreateOptions {
  role?: Role;
  name?: string;
  scopes?: Scope[];
  workspace?: string;
  expires?: bigint;
  offline?: boolean;
  org?: string;
}

/**
 * Creates, lists, rotates, revokes and checks keys by the rules of the API; everyone who can run it may grant every
 * scope. A key is printed once: only its digest is stored.
 */
export function command(terminal: Terminal): Command {
  return new Command('keys')
    .addCommand(
      new Command('create')
        .description('make a key and print it')
        .addOption(new Option('--role <role>', 'what the key may do').choices(ROLES))
        .addOption(new Option('--name <name>', 'what it is for').argParser(readName))
        .addOption(
          new Option(
            '--scopes <scopes>',
            `some of the scopes of its role, with commas between them: ${SCOPES.join(', ')}`,
          ).argParser(readScopes),
        )
        .addOption(
          new Option('--workspace <id>', 'the workspace to which it is bound, wsp_…').argParser(
            readWorkspace,
          ),
        )
        .addOption(new Option('--expires <time>', 'when it stops to hold').argParser(readTime))
        .option('--offline', 'print a key for INIT_ADMIN_KEY, stored nowhere')
        .addOption(organizationOption())
        .action((options: CreateOptions) => create(terminal, options)),
    )
    .addCommand(
      new Command('list')
        .description('list the keys of an organization')
        .addOption(new Option('--status <status>', 'those in this state').choices(KEY_STATUSES))
        .addOption(organizationOption())
        .addOption(jsonOption())
        .action((options: { status?: string; org?: string; json?: boolean }) => list(terminal, options)),
    )
    .addCommand(
      new Command('revoke')
        .description('end a key at once')
        .addArgument(keyArgument())
        .addOption(organizationOption())
        .action((id: string, { org }: { org?: string }) => revoke(terminal, id, org)),
    )
    .addCommand(
      new Command('rotate')
        .description('print a new key for an old one, which holds for a day, or for the grace')
        .addArgument(keyArgument())
        .addOption(
          new Option('--grace <seconds>', 'how long the old key holds')
            .argParser(readGrace)
            .default(GRACE_SECONDS_DEFAULT),
        )
        .addOption(organizationOption())
        .action((id: string, options: { grace: number; org?: string }) => rotate(terminal, id, options)),
    )
    .addCommand(
      new Command('check')
        .description('find out offline whether a key has a slip of the pen')
        .argument('<key>', 'the whole key')
        .action((key: string) => print(terminal, checkKey(key))),
    );
}

function keyArgument(): Argument {
  return new Argument('<key-id>', 'key_… as trueup keys list shows it').argParser((text) => {
    if (isKeyId(text)) return text;
    throw new Misuse(`${text} is no id of a key: give key_… as ./trueup keys list shows it.`);
  });
}

function readName(text: string): string {
  if (text !== '' && text.length <= NAME_CHARS_MAX) return text;
  throw new Misuse(`--name is missing: give 1 to ${NAME_CHARS_MAX} characters.`);
}

function readScopes(text: string): Scope[] {
  const named = text.split(',').map((word) => word.trim());
  const unknown = named.find((word) => !SCOPES.some((scope) => scope === word));
  if (unknown !== undefined)
    throw new Misuse(`--scopes names ${unknown || 'nothing'}: give some of ${SCOPES.join(', ')}.`);
  return SCOPES.filter((scope) => named.includes(scope));
}

function readWorkspace(text: string): string {
  const uuid = findUuid('wsp', text);
  if (uuid === undefined) throw new Misuse(`--workspace is ${text}: give its id, wsp_….`);
  return uuid;
}

function readTime(text: string): bigint {
  const instant = parseInstant(text);
  if (!instant) throw new Misuse(`--expires is ${text}: give a time such as 2026-12-31T00:00:00Z.`);
  return instant.micros;
}

function readGrace(text: string): number {
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= GRACE_SECONDS_MAX) return seconds;
  throw new Misuse(`--grace is ${text}: give seconds from 0 to ${GRACE_SECONDS_MAX}.`);
}

/** @throws StartError with the fault and the remedy. */
async function inOrganization<T>(
  terminal: Terminal,
  org: string | undefined,
  work: (orgDb: OrgDb) => Promise<T>,
): Promise<T> {
  try {
    return await withToolDatabase(terminal.readConfig(), async (database) =>
      work(new OrgDb(database, await chooseOrganization(database, org))),
    );
  } catch (error) {
    throw error instanceof DomainError ? new StartError(`${error.message}.`, { cause: error }) : error;
  }
}

/** `action` is the name in the audit log; older rows have the same names. */
function author(terminal: Terminal, action: string): KeyAuthor {
  return {
    giver: { allows: () => true },
    actor: { kind: 'command', id: `key:${action}` },
    requestId: null,
    nowMicros: microsFromDate(terminal.now()),
  };
}

async function create(terminal: Terminal, options: CreateOptions): Promise<void> {
  const { text, ...digest } = drawKey();
  if (!options.offline) {
    const { role, name, scopes = null, workspace = null, expires = null } = options;
    if (!role) throw new Misuse(`--role is missing: give one of ${ROLES.join(', ')}.`);
    if (!name) throw new Misuse(`--name is missing: give 1 to ${NAME_CHARS_MAX} characters.`);
    const key = { ...digest, role, name, scopes, workspaceId: workspace, expiresAtMicros: expires };
    await inOrganization(terminal, options.org, (orgDb) => createKey(orgDb, key, author(terminal, 'create')));
  }
  print(terminal, text);
}

async function revoke(terminal: Terminal, id: string, org: string | undefined): Promise<void> {
  const revoked = await inOrganization(terminal, org, (orgDb) =>
    revokeKey(orgDb, id, author(terminal, 'revoke')),
  );
  print(
    terminal,
    revoked ? `${id} (${revoked.name}) is revoked.` : `${id} was revoked before; nothing changed.`,
  );
}

async function rotate(
  terminal: Terminal,
  asked: string,
  { grace, org }: { grace: number; org?: string },
): Promise<void> {
  const { text, id, ...secret } = drawKey(asked);
  await inOrganization(terminal, org, (orgDb) =>
    rotateKey(orgDb, id, { ...secret, graceSeconds: grace }, author(terminal, 'rotate')),
  );
  print(terminal, text);
}

async function list(
  terminal: Terminal,
  { status, org, json }: { status?: string; org?: string; json?: boolean },
): Promise<void> {
  const keys = await inOrganization(terminal, org, (orgDb) =>
    listApiKeys(orgDb, { status }, { limit: LIST_MAX, offset: 0 }),
  );
  const rows = keys.map(presentKey);
  if (json) return printJson(terminal, rows);
  const headings = ['id', 'status', 'role', 'scopes', 'workspace', 'last used', 'expires', 'name'];
  const time = (iso: string | null) => iso?.slice(0, 16) ?? '-';
  const cells = rows.map((row) => [
    ...[row.id, row.status, row.role, row.scopes?.join(',') ?? 'all', row.workspace ?? '-'],
    ...[time(row.last_used_at), time(row.expires_at), row.name],
  ]);
  print(terminal, textTable(headings.map(left), cells).join('\n'));
}

/** A key as a list shows it; null: every scope of its role, no workspace, never. */
function presentKey(key: ApiKey) {
  const time = (micros: bigint | null) => (micros === null ? null : isoFromMicros(micros));
  return {
    id: key.id,
    status: key.status,
    role: key.role,
    scopes: key.scopes,
    workspace: key.workspaceId === null ? null : publicId('wsp', key.workspaceId),
    last_used_at: time(key.lastUsedAtMicros),
    expires_at: time(key.expiresAtMicros),
    name: key.name,
  };
}

/** Checks offline whether a text has the format and checksum of a key. */
function checkKey(text: string): string {
  const fault = findKeyFault(text);
  if (fault !== undefined) throw new StartError(`This is no key: ${fault}.`);
  return `The form and the check sum are right. Its id is ${parseKey(text)?.keyId}; ./trueup keys list shows whether it is valid.`;
}
