import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { composeKey, parseKey } from '../../domain/access/keyRules.js';
import { publicId } from '../../domain/ids.js';
import { StartError } from '../../platform/startError.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { TEST_SECRET_KEY } from '../support/connectors.js';
import { runTrueup } from '../support/trueup.js';
import { runCommand } from '../usecases/installation/backup/support/installation.js';

const LIMIT_MS = 180_000;
const NO_DATABASE = {
  DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  TRUEUP_SECRET_KEY: TEST_SECRET_KEY,
};

let api: TestApi;
let org: TestOrganization;

beforeAll(async () => {
  api = await startTestApi();
  org = await api.addOrganization('Keys by command');
});
afterAll(() => api.close());

const idOf = (key: string) => `key_${key.split('_')[2]}`;

const environment = () => ({ ...api.database.environment, TRUEUP_SECRET_KEY: TEST_SECRET_KEY });

/** Runs a command in this process and returns its output; rejects with its final sentence. */
async function run(...args: string[]): Promise<string> {
  const words = ['keys', ...args, '--org', publicId('org', org.orgId)];
  return (await runTrueup(words, { environment: environment() })).output.trimEnd();
}

const statusWith = async (key: string) => (await api.get('/api/v1/events?limit=1', key)).status;

describe('./trueup keys check', { timeout: LIMIT_MS }, () => {
  it('detects a typing error without a database, and never repeats the key', async () => {
    const key = composeKey('0123456789', 'S'.repeat(43));
    expect(await runCommand('keys', ['check', key], NO_DATABASE)).toEqual({
      exit: 0,
      output: expect.stringMatching(/^The form and the check sum are right\. Its id is key_0123456789;/),
    });
    expect(await runCommand('keys', ['check', key.replace('S', 'T')], NO_DATABASE)).toEqual({
      exit: 1,
      output: 'This is no key: the check sum does not fit, so at least one character is wrong.\n',
    });
  });
});

describe('a command about keys', { timeout: LIMIT_MS }, () => {
  it('makes a key with scopes, workspace and end; lists, rotates and revokes it; all of it is in the log', async () => {
    const workspaceId = await api.addWorkspace(org.orgId, 'p');
    const made = await run(
      ...['create', '--role', 'member', '--name', 'by command', '--scopes', 'events:read,ingest'],
      ...['--workspace', publicId('wsp', workspaceId), '--expires', '2099-01-01'],
    );
    const key = made.trim();
    expect(parseKey(key)).toBeDefined();
    const listed = await run('list');
    const line = listed.split('\n').find((one) => one.startsWith(idOf(key)));
    expect(line?.split(/ {2,}/)).toEqual([
      idOf(key),
      'active',
      'member',
      'ingest,events:read',
      publicId('wsp', workspaceId),
      '-',
      '2099-01-01T00:00',
      'by command',
    ]);
    expect(listed).not.toContain(parseKey(key)?.secret);
    const other = await run('create', '--role', 'auditor', '--name', 'x');
    expect(await statusWith(other)).toBe(200);
    const rotated = await run('rotate', idOf(other), '--grace', '0');
    await expect.poll(() => statusWith(other)).toBe(401);
    expect(await statusWith(rotated)).toBe(200);
    expect(await run('revoke', idOf(other))).toBe(`${idOf(other)} (x) is revoked.`);
    expect(await run('revoke', idOf(other))).toBe(`${idOf(other)} was revoked before; nothing changed.`);
    await expect.poll(() => statusWith(rotated)).toBe(401);
    expect(await run('list', '--status', 'revoked')).toContain(idOf(other));
    const { rows } = await api.database.superuser.query(
      'select action, actor_kind, actor_id from audit_log where org_id = $1 and subject_id = $2 order by seq',
      [org.orgId, idOf(other)],
    );
    expect(rows.filter(({ action }) => action.startsWith('key.'))).toEqual(
      ['create', 'rotate', 'revoke'].map((word) => ({
        action: `key.${word}d`,
        actor_kind: 'command',
        actor_id: `key:${word}`,
      })),
    );
  });

  it('follows the rules of the API and prints in one sentence what is wrong', async () => {
    const foreign = idOf(api.adminKey);
    for (const [args, message] of [
      [['revoke', idOf(org.adminKey)], /^it is the last key of the role admin .*make another one first\.$/],
      [['revoke', foreign], /^there is no key with this id\.$/],
      [['rotate', foreign], /^there is no key with this id\.$/],
      [['create', '--role', 'auditor', '--name', 'n', '--scopes', 'ingest'], /auditor cannot hold ingest/],
      [
        ['create', '--role', 'auditor', '--name', 'n', '--scopes', 'all'],
        /^--scopes names all: give some of/,
      ],
      [['create', '--role', 'auditor', '--name', 'n', '--expires', '2020-01-01'], /must lie in the future/],
      [['create', '--role', 'owner', '--name', 'n'], /^--role is owner/],
      [['create', '--role', 'admin'], /^--name is missing/],
      [['revoke', 'x'], /^x is no id of a key/],
      [['rotate'], /^Missing required argument 'key-id'\./],
      [['list', '--role', 'admin'], /^Unknown option '--role'\./],
      [['rotate', foreign, '--expires', '2030-01-01'], /^Unknown option '--expires'\./],
      [['rotate', foreign, '--grace', '604801'], /^--grace is 604801/],
      [['rename'], /^Unknown command 'rename'/],
    ] as const) {
      const refused = await run(...args).catch((error: unknown) => error);
      expect(refused, args.join(' ')).toBeInstanceOf(StartError);
      expect((refused as StartError).message, args.join(' ')).toMatch(message);
    }
  });

  it('names the existing organizations where the given one is unknown', async () => {
    const refused = runTrueup(['keys', 'list', '--org', 'org_none'], { environment: environment() });
    await expect(refused).rejects.toThrow(
      /^There is no organization org_none\. Give --org with one of these:\n {2}org_/,
    );
  });

  it('lists as JSON what the table shows: --json', async () => {
    await run('create', '--role', 'ingest', '--name', 'for json', '--expires', '2099-01-01');
    const rows = (await run('list'))
      .split('\n')
      .slice(2)
      .map((line) => line.split(/ {2,}/));
    // biome-ignore lint/suspicious/noExplicitAny: the output that is being tested
    const keys = JSON.parse(await run('list', '--json')) as any[];
    const time = (iso: string | null) => iso?.slice(0, 16) ?? '-';
    expect(
      keys.map((key) => [
        ...[key.id, key.status, key.role, key.scopes?.join(',') ?? 'all', key.workspace ?? '-'],
        ...[time(key.last_used_at), time(key.expires_at), key.name],
      ]),
    ).toEqual(rows);
    expect(keys.some(({ name }) => name === 'for json')).toBe(true);
  });

  it('draws a key that is stored nowhere: --offline', async () => {
    expect(parseKey(await run('create', '--offline'))).toBeDefined();
  });
});
