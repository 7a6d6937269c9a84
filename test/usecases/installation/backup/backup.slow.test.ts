import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fileBlobStore } from '../../../../adapters/blobs/fileBlobStore.js';
import { restoreBackup } from '../../../../bin/backup/restoreBackup.js';
import { foldUsage } from '../../../../db/usage/rollups.js';
import { readArchive } from '../../../../platform/archive/archiveReader.js';
import { readTar } from '../../../../platform/archive/tar.js';
import { parseConfig } from '../../../../platform/config.js';
import { takeFileLock } from '../../../../platform/embedded/fileLock.js';
import { makeSecretKey } from '../../../../platform/secretBox.js';
import { SecretKeys } from '../../../../platform/secretKeys.js';
import { openBaseBackup } from '../../../../usecases/installation/backup/baseBackup.js';
import {
  BookSampler,
  inOneSnapshot,
  readBooks,
  recountBooks,
} from '../../../../usecases/installation/backup/bookTotals.js';
import { putText } from '../../../adapters/blobs/contract.js';
import { SeededRandom, testSeed } from '../../../fakes/seededRandom.js';
import { LoadClient, pause } from '../../../fault/support/loadClient.js';
import { startTestApi, type TestApi } from '../../../support/api.js';
import { startTypeScript } from '../../../support/childProgram.js';
import { startTestEngine, until } from '../../../support/engine.js';
import { makeTestFolder } from '../../../support/testFolder.js';
import { anArchive, flip, flipEvent, runLimited } from './support/damage.js';
import {
  removeDataDir,
  runCommand,
  startInstallation,
  type TestInstallation,
} from './support/installation.js';
import { holdEndOfCopy } from './support/lateEnd.js';

const SEED = testSeed();
const CLIENTS = 4;

let installation: TestInstallation;
let api: TestApi;
const folders: string[] = [];

/** A folder that is deleted after the test. */
function aFolder(): string {
  const folder = makeTestFolder('restored');
  folders.push(folder);
  return folder;
}

const settings = () => ({ DATA_DIR: installation.dataDir });
/** The error of a refused restore. */
const refusal = (file: string, dataDir: string, replace = false) =>
  restoreBackup(parseConfig(settings()), { file, dataDir, replace }).then(
    () => 'restored',
    (error: Error) => error.message,
  );
const restore = (...args: string[]) => runCommand('restore', args, settings());
const modeOf = (path: string) => statSync(path).mode & 0o777;

async function backUp(to: string): Promise<string> {
  const end = await runCommand('backup', ['--to', to], settings());
  expect(end, end.output).toMatchObject({ exit: 0 });
  return end.output;
}

/** Postgres's state of backups in progress. */
async function traces() {
  const { rows } = await installation.superuser.query(
    `select (select count(*)::int from pg_replication_slots) as slots, (select count(*)::int from pg_stat_progress_basebackup) as backups,
       (select count(*)::int from pg_stat_activity where application_name = 'trueup-backup') as sessions`,
  );
  return rows[0];
}

/** A gap run as a killed service leaves it: queued, or running in a Temporal that is gone. */
async function aLostRun(period: string, status: string, startWaits: boolean): Promise<string> {
  const { rows } = await installation.superuser.query(
    `insert into gap_runs (org_id, id, period, status, window_start, window_end, created_at) values
       ($1, $2, $3, $4, '2026-02-01', '2026-02-08', now() - interval '1 hour') returning id`,
    [api.orgId, randomUUID(), period, status],
  );
  await installation.superuser.query(
    `insert into outbox (org_id, kind, subject_id, dispatched_at) values ($1, 'gap_run.start', $2, ${startWaits ? 'null' : 'now()'})`,
    [api.orgId, rows[0].id],
  );
  return rows[0].id;
}

beforeAll(async () => {
  installation = await startInstallation();
  api = await startTestApi({ database: installation });
  for (const [name, text] of [
    ['secret-key', `${'k'.repeat(43)}=\n`],
    ['admin-key', `${api.adminKey}\n`],
  ] as const) {
    writeFileSync(join(installation.dataDir, name), text, { mode: 0o600 });
  }
  await putText(fileBlobStore(join(installation.dataDir, 'blobs')), 'invoices/org/a.pdf', '%PDF-1.7');
  writeFileSync(join(installation.dataDir, 'blobs/.drafts/half'), '%PDF');
});

afterAll(async () => {
  await api?.close();
  await installation?.close();
  for (const folder of [...folders, ...(installation ? [installation.dataDir] : [])]) removeDataDir(folder);
});

describe(`./trueup backup (TEST_SEED=${SEED})`, () => {
  it('under load holds every call that was acknowledged before it began; restored, twice, its books are those of its manifest', async () => {
    const runs = [await aLostRun('7d', 'queued', true), await aLostRun('30d', 'running', false)];
    const client = new LoadClient({
      baseUrl: api.baseUrl,
      key: api.ingestKey,
      random: new SeededRandom(SEED),
    });
    client.start(CLIENTS);
    let isFolding = true;
    const folds = (async () => {
      while (isFolding) {
        await foldUsage(installation.database, api.orgId).catch(() => undefined);
        await pause(50);
      }
    })();
    while (client.acknowledged < 50) await pause(5);
    const acknowledged = client.batches
      .filter((batch) => batch.accepted.length > 0)
      .flatMap((batch) => batch.ids);
    const file = join(aFolder(), 'b.tar.gz');
    const output = await backUp(file);
    const before = client.acknowledged;
    while (client.acknowledged < before + 20) await pause(5);
    await client.stop();
    isFolding = false;
    await folds;
    expect(output).toContain('secret-key');
    expect(output).toContain('1 uploaded file, 8 B');
    expect(modeOf(file)).toBe(0o600);
    expect(await traces()).toEqual({ slots: 0, backups: 0, sessions: 0 });
    expect(new Set(client.answers.map((answer) => answer.status))).toEqual(new Set([202]));

    const targets = [aFolder(), aFolder()];
    for (const into of targets) {
      const end = await restore(file, '--into', into);
      expect(end, end.output).toMatchObject({ exit: 0 });
      expect(end.output).toContain('add up to the same');
      expect(readFileSync(join(into, 'admin-key'), 'utf8').trim()).toBe(api.adminKey);
      expect(modeOf(join(into, 'secret-key'))).toBe(0o600);
      expect(readFileSync(join(into, 'blobs/invoices/org/a.pdf'), 'utf8')).toBe('%PDF-1.7');
      expect(modeOf(join(into, 'blobs/invoices/org/a.pdf'))).toBe(0o600);
      expect(readdirSync(join(into, 'blobs'))).toEqual(['invoices']);
      expect(readdirSync(into).sort()).toEqual(
        expect.arrayContaining(['admin-key', 'blobs', 'postgres-password', 'secret-key']),
      );
      const restored = await startInstallation(into);
      try {
        const { rows } = await restored.superuser.query<{ request_id: string }>(
          'select request_id from events',
        );
        const stored = new Set(rows.map((row) => row.request_id));
        expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
        const manifest = await readArchive<never>(file, async (entry) => {
          for await (const _ of entry.body);
        });
        const { books } = manifest as { books: { snapshot: string; organizations: object[] } };
        const there = await restored.superuser.connect();
        await inOneSnapshot(there, async () => {
          const counted = await recountBooks(there, books.snapshot);
          expect(books.organizations).toEqual([
            { organization_id: api.orgId, billed_usd: '0', ...counted.get(api.orgId) },
          ]);
          const [now] = (await readBooks(there, { billed: true })).organizations;
          expect(now).toMatchObject((await recountBooks(there)).get(api.orgId) ?? {});
        });
        there.release();
        if (into !== targets[0]) continue;
        // Runs come back from the rows: the engine that they ran in is not in the backup.
        const engine = await startTestEngine(restored.database, {
          sweep: { queuedSeconds: 0, silentSeconds: 0 },
        });
        await engine.startWorker();
        await engine.sweeper.sweep();
        await until(
          'the end of both runs',
          async () =>
            (await restored.superuser.query('select id, status from gap_runs where id = any($1)', [runs]))
              .rows,
          (found) =>
            found.length === 2 &&
            found.every((run) => ['succeeded', 'partial', 'failed'].includes(run.status)),
        );
        await engine.close();
      } finally {
        await restored.close();
      }
    }
  }, 300_000);

  it('holds no uploaded files that are in a bucket, and names the bucket, as its restore does', async () => {
    const s3 = {
      BLOB_STORE: 's3',
      S3_BUCKET: 'files',
      S3_ACCESS_KEY_ID: 'an-id',
      S3_SECRET_ACCESS_KEY: 'a-secret',
    };
    const [folder, into] = [aFolder(), aFolder()];
    const file = join(folder, 'b.tar.gz');
    const end = await runCommand('backup', ['--to', file], { ...settings(), ...s3 });
    expect(end.output).toContain('does not hold uploaded files: they are in s3://files');
    const restored = await restore(file, '--into', into);
    expect(restored.output).toContain('Uploaded files are in s3://files: start with the same settings S3_…');
  });

  it('killed with -9 in the middle leaves no file, no slot and a service that works; the next one clears up', async () => {
    const folder = aFolder();
    const program = startTypeScript(
      'bin/trueup.ts',
      ['backup', '--to', join(folder, 'k.tar.gz')],
      settings(),
    );
    await until('a backup under way', traces, ({ backups }) => backups === 1);
    program.child.kill('SIGKILL');
    expect(await program.ended()).toBe('SIGKILL');
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^k\.tar\.gz\.partial-\d+$/)]);
    await until(
      'the end of it in Postgres',
      traces,
      ({ slots, backups, sessions }) => slots + backups + sessions === 0,
    );
    expect((await api.get('/api/v1/usage/summary')).status).toBe(200);
    await backUp(`${folder}/`);
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^trueup-\d{8}T\d{6}Z\.tar\.gz$/)]);
  }, 300_000);

  it('asked to stop in the middle removes what it has written', async () => {
    const folder = aFolder();
    const program = startTypeScript(
      'bin/trueup.ts',
      ['backup', '--to', join(folder, 'k.tar.gz')],
      settings(),
    );
    await until('a backup under way', traces, ({ backups }) => backups === 1);
    program.child.kill('SIGTERM');
    expect(await program.ended()).toBe(143);
    expect(readdirSync(folder)).toEqual([]);
  }, 300_000);

  it('leaves nothing and prints why when it cannot write on; Postgres is out of backup mode', async () => {
    const folder = aFolder();
    const tsx = ['--import', 'tsx', 'bin/trueup.ts', 'backup', '--to', join(folder, 'f.tar.gz')];
    const end = await runLimited(tsx, settings());
    expect(end).toEqual({
      exit: 1,
      output: expect.stringMatching(/^f\.tar\.gz grows larger than files may be here .*\n$/),
    });
    expect(readdirSync(folder)).toEqual([]);
    await until(
      'the end of it in Postgres',
      traces,
      ({ slots, backups, sessions }) => slots + backups + sessions === 0,
    );
  }, 300_000);

  it('is one at a time, never over another file, and not for a database of one’s own', async () => {
    const lock = takeFileLock(join(installation.dataDir, 'backup.lock'));
    expect(await runCommand('backup', [], settings())).toEqual({
      exit: 1,
      output: `Process ${process.pid} is backing ${installation.dataDir} up: wait until it is done.\n`,
    });
    if ('release' in lock) lock.release();
    const file = join(aFolder(), 'there.tar.gz');
    writeFileSync(file, 'mine');
    expect((await runCommand('backup', ['--to', file], settings())).output).toMatch(/is there already/);
    expect(readFileSync(file, 'utf8')).toBe('mine');
    const owned = { ...settings(), DATABASE_URL: installation.url };
    expect(await runCommand('backup', [], owned)).toEqual({
      exit: 1,
      output: expect.stringMatching(
        /^DATABASE_URL names a database of your own, .* \.\/trueup backup is for the embedded Postgres\.\n$/,
      ),
    });
  }, 300_000);

  it('reads the books at instants of which the last before its end is in it', async () => {
    const sampler = await BookSampler.start(installation.url, { billed: true });
    const { rows } = await installation.superuser.query<{ lsn: string }>(
      'select pg_current_wal_insert_lsn()::text as lsn',
    );
    await installation.superuser.query('update organizations set name = name');
    await pause(400);
    const { books, billedSettled } = await sampler.finish(rows[0]?.lsn ?? '');
    await sampler.close();
    expect(billedSettled).toBe(true);
    const { rows: later } = await installation.superuser.query('select $1::pg_lsn <= $2::pg_lsn as fits', [
      books.lsn,
      rows[0]?.lsn,
    ]);
    expect(later[0].fits).toBe(true);
  });
});

describe('a base backup', () => {
  it('whose end comes late is waited for: the reader of its tar finishes before the server reports where it stopped', async () => {
    const between = await holdEndOfCopy(installation.url);
    const backup = await openBaseBackup(between.url);
    let bytes = 0;
    for await (const { body } of readTar(backup.tar)) for await (const piece of body) bytes += piece.length;
    expect(bytes).toBeGreaterThan(1_000_000);
    const stop = backup.stopLsn();
    between.letGo();
    expect(await stop).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/);
    await backup.close();
    await between.close();
  });
});

describe('./trueup restore', () => {
  let file: string;
  beforeAll(async () => {
    file = join(aFolder(), 'b.tar.gz');
    await backUp(file);
  }, 300_000);

  it.each([
    ['a flipped byte', (bytes: Buffer) => flip(bytes)],
    ['a half of it', (bytes: Buffer) => bytes.subarray(0, bytes.length >> 1)],
    ['another text', () => Buffer.from('hello')],
    [
      'a file that was changed inside',
      (bytes: Buffer) => gzipSync(flipEvent(gunzipSync(bytes)), { level: 1 }),
    ],
  ])('puts nothing in place of a damaged file: %s', async (_what, damage) => {
    const damaged = join(aFolder(), 'damaged.tar.gz');
    writeFileSync(damaged, damage(readFileSync(file)));
    const into = aFolder();
    expect(await refusal(damaged, into)).toMatch(
      /^damaged\.tar\.gz is damaged or no archive of Trueup: .*\.$/,
    );
    expect(readdirSync(into).filter((name) => name !== 'pg-location')).toEqual([]);
  });

  it.each([
    [
      'another major version of Postgres',
      { postgres_version: '17.4' },
      /^The backup is of Postgres 17 and this version brings Postgres 18: .*export data/,
    ],
    ['another machine', { architecture: 'vax' }, /^The backup is of a \w+ vax machine .*export data/],
    [
      'a later Trueup',
      { migrations: ['0001_roles_and_tenancy', '9999_later'] },
      /was written by Trueup 9\.9\.9, which is newer/,
    ],
    ['an export', { kind: 'export' }, /is an export: \.\/trueup import data takes it/],
    ['something else', { format: 'zip' }, /is no archive of Trueup/],
  ])('refuses what this installation cannot read: %s', async (_what, header, sentence) => {
    const into = aFolder();
    expect(await refusal(await anArchive(aFolder(), header), into)).toMatch(sentence);
    expect(readdirSync(into)).toEqual([]);
  });

  it('refuses a data directory that a service runs on, and with --replace too', async () => {
    const sentence = new RegExp(`^DATA_DIR ${installation.dataDir} is in use by process ${process.pid}: `);
    expect(await refusal(file, installation.dataDir)).toMatch(sentence);
    expect(await refusal(file, installation.dataDir, true)).toMatch(sentence);
  });

  it('overwrites no data, unless it may move them aside, and deletes nothing then', async () => {
    const into = aFolder();
    writeFileSync(join(into, 'secret-key'), 'older');
    mkdirSync(join(into, 'backups'));
    expect(await refusal(file, into)).toMatch(/^There is data in .* already \(.*secret-key\): .*--replace/);
    expect(readFileSync(join(into, 'secret-key'), 'utf8')).toBe('older');
    const end = await restore(file, '--into', into, '--replace');
    expect(end, end.output).toMatchObject({ exit: 0 });
    const [aside] = readdirSync(into).filter((name) => name.startsWith('replaced-'));
    expect(readFileSync(join(into, aside ?? '', 'secret-key'), 'utf8')).toBe('older');
    expect(readFileSync(join(into, 'secret-key'), 'utf8')).not.toBe('older');
    expect(existsSync(join(into, 'backups'))).toBe(true);
    expect(readdirSync(into).filter((name) => name.includes('restoring'))).toEqual([]);
  }, 300_000);

  it('reports what is missing when the key at hand did not seal the credentials, and so does ./trueup doctor', async () => {
    const { orgId } = await api.addOrganization();
    const lost = makeSecretKey();
    await installation.superuser.query(
      `insert into billing_connections (org_id, id, provider, name, status, provider_account_id, ciphertext, secret_key_id, backfill_from)
       values ($1, $2, 'openai', 'x', 'active', 'org-1', '\\x00', $3, '2026-01-01')`,
      [orgId, randomUUID(), SecretKeys.of(lost).currentId],
    );
    await installation.superuser.query(
      `insert into webhook_endpoints (org_id, id, url, description, status, ciphertext, secret_key_id, created_by)
       values ($1, $2, 'https://hooks.example.com/', '', 'active', '\\x00', $3, 'test')`,
      [orgId, randomUUID(), SecretKeys.of(lost).currentId],
    );
    const missing = new RegExp(
      `secret key:? .*1 billing connection and the secrets of 1 webhook endpoint .*${SecretKeys.of(lost).currentId}.*\\.\n`,
      'i',
    );
    const doctor = await runCommand('doctor', [], settings());
    expect(doctor.output).toMatch(new RegExp(`✗ ${missing.source}`));
    const sealed = join(aFolder(), 'b.tar.gz');
    await backUp(sealed);
    const end = await restore(sealed, '--into', aFolder());
    expect(end, end.output).toMatchObject({ exit: 0, output: expect.stringMatching(missing) });
    // The settings of the next start count, as they do for it.
    const withKey = { ...settings(), TRUEUP_SECRET_KEY: lost };
    expect((await runCommand('doctor', [], withKey)).output).toMatch(/✓ secret key in TRUEUP_SECRET_KEY\n/);
    const right = await runCommand('restore', [sealed, '--into', aFolder()], withKey);
    expect(right, right.output).toMatchObject({ exit: 0, output: expect.not.stringMatching(missing) });
  }, 300_000);
});
