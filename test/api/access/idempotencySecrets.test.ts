import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rotateSecrets } from '../../../bin/commands/secrets.js';
import { parseConfig } from '../../../platform/config.js';
import { makeSecretKey } from '../../../platform/secretBox.js';
import { SecretKeys } from '../../../platform/secretKeys.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { aKey, perform, seenOf } from '../support/repeats.js';

const OLD = makeSecretKey();
const NEW = makeSecretKey();
const createKey = { method: 'POST', path: '/api/v1/keys' } as const;
const aMember = { json: { name: 'somebody', role: 'member' } };

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi({ secretKeys: SecretKeys.of(OLD) });
});
afterAll(() => api?.close());

/** A process that has these keys. */
async function withKeys<T>(text: string, work: (process: TestApi) => Promise<T>): Promise<T> {
  const process = await startTestApi({ database: api.database, secretKeys: SecretKeys.of(text) });
  return work(process).finally(() => process.close());
}

const rotate = (keys: string, forget = false) =>
  rotateSecrets(
    parseConfig({ ...api.database.environment, TRUEUP_SECRET_KEY: keys }),
    api.database.database,
    forget,
  );

describe('an answer that shows a secret once', () => {
  it('shows it to a repeat too, and is nowhere in the database but sealed', async () => {
    const owner = await api.addOrganization();
    const key = aKey();
    const first = await perform(createKey, aMember, { owner, key, api });
    const again = await perform(createKey, aMember, { owner, key, api });
    expect([first.status, first.body.key]).toEqual([201, expect.stringMatching(/^tu_live_/)]);
    expect(seenOf(again)).toEqual(seenOf(first));
    const secret: string = first.body.key;
    const { rows } = await api.database.superuser.query(
      'select t::text as line, ciphertext from idempotency_keys t where org_id = $1',
      [owner.orgId],
    );
    expect(rows).toHaveLength(1);
    expect(rows[0].line).not.toContain(secret);
    expect(rows[0].line).not.toContain(Buffer.from(secret).toString('hex'));
    expect(rows[0].ciphertext.includes(secret)).toBe(false);
  });

  it('of another row does not open: it is sealed for the one key whose repeats it answers', async () => {
    const owner = await api.addOrganization();
    const [one, other] = [aKey(), aKey()];
    await perform(createKey, aMember, { owner, key: one, api });
    await perform(createKey, aMember, { owner, key: other, api });
    await api.database.superuser.query(
      `update idempotency_keys set ciphertext = (select ciphertext from idempotency_keys where org_id = $1 and idempotency_key = $2)
       where org_id = $1 and idempotency_key = $3`,
      [owner.orgId, one, other],
    );
    const stolen = await perform(createKey, aMember, { owner, key: other, api });
    expect([stolen.status, stolen.body.code]).toEqual([503, 'secret_key_missing']);
  });

  it('is repeated after the secret key was changed and the old one discarded', async () => {
    const owner = await api.addOrganization();
    const key = aKey();
    const first = await perform(createKey, aMember, { owner, key, api });
    expect((await rotate(`${NEW},${OLD}`)).isWhole).toBe(true);
    await withKeys(NEW, async (process) => {
      const again = await perform(createKey, aMember, { owner, key, api: process });
      expect(seenOf(again)).toEqual(seenOf(first));
    });
    await rotate(`${OLD},${NEW}`);
  });

  it('whose secret key is lost is not invented: the repeat gets an error, and nothing is done again', async () => {
    const owner = await api.addOrganization();
    const key = aKey();
    await perform(createKey, aMember, { owner, key, api });
    const count = async () =>
      (await api.get('/api/v1/keys?role=member', owner.adminKey)).body.keys.length as number;
    const refused = async () => {
      await withKeys(NEW, async (process) => {
        const { status, body } = await perform(createKey, aMember, { owner, key, api: process });
        expect([status, body.code]).toEqual([503, 'secret_key_missing']);
      });
      expect(await count()).toBe(1);
    };
    await refused();
    // A rotation without the old key discards the answer, and the request stays known as done.
    expect((await rotate(NEW)).isWhole).toBe(true);
    await refused();
    const { status, body } = await perform(createKey, aMember, { owner, key, api });
    expect([status, body.code]).toEqual([503, 'secret_key_missing']);
  });
});
