import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { TEST_SECRET_KEY } from '../support/connectors.js';
import { makeTestFolder } from '../support/testFolder.js';
import { removeDataDir, runCommand } from '../usecases/installation/backup/support/installation.js';

const LIMIT_MS = 180_000;
let folder: string;

beforeAll(() => {
  folder = makeTestFolder('commands');
});
afterAll(() => removeDataDir(folder));

describe('a command', () => {
  it('without data of a service prints one sentence, and makes no data', {
    timeout: LIMIT_MS,
  }, async () => {
    const dataDir = join(folder, 'slip-of-the-pen');
    for (const [command, ...args] of [
      ['audit', '--provider', 'openai'],
      ['export data', '--to', join(folder, 'e.tar.gz')],
      ['demo reset'],
      ['secrets rotate'],
    ] as const)
      expect(await runCommand(command, args, { DATA_DIR: dataDir }), command).toEqual({
        exit: 1,
        output: `There is no data in DATA_DIR ${dataDir}: run npm start first, or set DATA_DIR to the folder of the service.\n`,
      });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('whose user of Postgres may make no roles prints one sentence, with what to grant', {
    timeout: LIMIT_MS,
  }, async () => {
    const name = `plain_${randomBytes(4).toString('hex')}`;
    const admin = new pg.Client({ connectionString: inject('postgresUrl') });
    await admin.connect();
    await admin.query(`create role ${name} login password 'x'`);
    await admin.query(`create database ${name} owner ${name}`);
    const url = new URL(inject('postgresUrl'));
    Object.assign(url, { username: name, password: 'x', pathname: `/${name}` });
    const end = await runCommand('migrate', [], {
      DATABASE_URL: url.href,
      TRUEUP_SECRET_KEY: TEST_SECRET_KEY,
      DATA_DIR: folder,
    });
    expect(end).toEqual({
      exit: 1,
      output: expect.stringMatching(
        /^Postgres at \S+ does not allow its user to prepare the schema \(migration 0001_\w+ failed: permission denied .*\): make it the database's owner and give it CREATEROLE, .*\.\n$/,
      ),
    });
    await admin.query(`drop database ${name}`);
    await admin.query(`drop role ${name}`);
    await admin.end();
  });
});
