import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicId } from '../../domain/ids.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { TEST_SECRET_KEY } from '../support/connectors.js';
import { makeTestFolder } from '../support/testFolder.js';
import { runTrueup } from '../support/trueup.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

/** Runs the command for the organization and returns its output. */
async function signIn(...args: string[]): Promise<string> {
  const environment = {
    ...api.database.environment,
    TRUEUP_SECRET_KEY: TEST_SECRET_KEY,
    DATA_DIR: makeTestFolder('sign-in'),
    BASE_URL: 'https://trueup.example',
  };
  const words = ['sign-in', '--org', publicId('org', api.orgId), ...args];
  return (await runTrueup(words, { environment })).output;
}

const tokenOf = (output: string) => /#\/welcome\/([0-9A-Za-z]{43})/.exec(output)?.[1];

const exchange = async (token: string | undefined) => {
  const answer = await fetch(`${api.baseUrl}/api/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  const session = await fetch(`${api.baseUrl}/api/v1/session`, { headers: { cookie } });
  return { status: answer.status, session: (await session.json()) as { role?: string } };
};

describe('./trueup sign-in', () => {
  it('prints a link to BASE_URL, with which one browser signs in as an administrator', async () => {
    const output = await signIn();
    expect(output).toMatch(
      /^https:\/\/trueup\.example\/#\/welcome\/[0-9A-Za-z]{43}\nIt signs one browser in, once, within 10 minutes\.\n$/,
    );
    const { status, session } = await exchange(tokenOf(output));
    expect([status, session.role]).toEqual([204, 'admin']);
    expect((await exchange(tokenOf(output))).status).toBe(401);
  });

  it('makes a link of another role or of a workspace, as JSON where that is asked', async () => {
    const workspace = publicId('wsp', await api.addWorkspace(api.orgId, 'p'));
    const { link, minutes } = JSON.parse(
      await signIn('--role', 'auditor', '--workspace', workspace, '--json'),
    );
    expect(minutes).toBe(10);
    expect((await exchange(tokenOf(link))).session).toMatchObject({
      role: 'auditor',
      workspace: { id: workspace },
    });
    await expect(signIn('--workspace', workspace)).rejects.toThrow(/a key of the role admin/);
    await expect(signIn('--workspace', 'here')).rejects.toThrow('--workspace is here: give its id, wsp_….');
  });

  it('is in the audit log as its author', async () => {
    await signIn();
    const { rows } = await api.database.superuser.query(
      `select action, actor_kind, actor_id from audit_log where org_id = $1 order by seq desc limit 1`,
      [api.orgId],
    );
    expect(rows).toEqual([{ action: 'session.link_created', actor_kind: 'command', actor_id: 'sign-in' }]);
  });
});
