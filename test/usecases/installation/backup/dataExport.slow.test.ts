import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ExportManifest, exportToFile, importFromFile } from '../../../../bin/backup/dataFile.js';
import { blobStoreOf } from '../../../../bin/wiring/outside.js';
import { openDatabase } from '../../../../db/client.js';
import { insertOrganization } from '../../../../db/installation/organizations.js';
import { migrate } from '../../../../db/migrate.js';
import { MIGRATIONS } from '../../../../db/migrations/index.js';
import type { Migration } from '../../../../db/migrations/migration.js';
import { OrgDb } from '../../../../db/orgDb.js';
import { microsFromDate } from '../../../../domain/period.js';
import { readArchive } from '../../../../platform/archive/archiveReader.js';
import { parseConfig } from '../../../../platform/config.js';
import { closePeriod } from '../../../../usecases/billing/periods.js';
import {
  isTransactionColumn,
  RENUMBERINGS,
  readCatalogue,
} from '../../../../usecases/installation/backup/catalogue.js';
import { seedPrices } from '../../../../usecases/pricing/priceSeed.js';
import { putText } from '../../../adapters/blobs/contract.js';
import { compareCells, compareRead, foldAll } from '../../../db/support/compareTotals.js';
import { DIMENSIONS, FIRST } from '../../../db/support/drawSteps.js';
import { startS3Fake } from '../../../fakes/s3Fake.js';
import { testSeed } from '../../../fakes/seededRandom.js';
import { aCall } from '../../../support/aCall.js';
import { createTestOrganization } from '../../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../../support/database.js';
import { makeTestFolder } from '../../../support/testFolder.js';
import { aHistory, decisions, send } from './support/histories.js';
import {
  removeDataDir,
  runCommand,
  startInstallation,
  type TestInstallation,
} from './support/installation.js';

const SEED = testSeed();
const ORGANIZATIONS = 4;

let source: TestDatabase;
const folders: string[] = [];

function aFolder(): string {
  const folder = makeTestFolder('export');
  folders.push(folder);
  return folder;
}

beforeAll(async () => {
  source = await createTestDatabase({ poolMax: 10 });
});
afterAll(async () => {
  await source?.close();
  for (const folder of folders) removeDataDir(folder);
});

const embedded = (dataDir: string) => parseConfig({ DATA_DIR: dataDir });
const owned = (url: string) => parseConfig({ DATABASE_URL: url, DATA_DIR: folders[0] });
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: Error) => error.message,
  );

async function exported(url: string): Promise<{ file: string; manifest: ExportManifest }> {
  const file = join(aFolder(), 'e.tar.gz');
  await exportToFile(owned(url), file);
  const manifest = await readArchive<ExportManifest>(file, async (entry) => {
    for await (const _ of entry.body);
  });
  return { file, manifest };
}

describe(`./trueup export data and import data (TEST_SEED=${SEED})`, () => {
  it('carry every row, total and decision into a younger cluster, where work continues and nothing counts twice', async () => {
    const histories: OrgDb[] = [];
    for (let index = 0; index < ORGANIZATIONS; index += 1)
      histories.push(await aHistory(source, SEED, index));
    // Simulates a version whose folds lacked project totals.
    const late = histories[0]?.orgId;
    for (const table of ['project_cells', 'project_adjustments'])
      await source.superuser.query(`delete from ${table} where org_id = $1`, [late]);
    await source.superuser.query('update rollup_state set projects_xid = 0 where org_id = $1', [late]);
    const before = await decisions(source.superuser);
    expect(new Set(before.map((row) => row.folded)).size).toBe(2);
    expect(new Set(before.flatMap((row) => row.seen ?? [])).size).toBe(2);
    const first = await exported(source.url);
    expect(
      first.manifest.books.organizations.map((books) => books.calls).reduce((a, b) => a + b),
    ).toBeGreaterThan(10);

    const dataDir = aFolder();
    await importFromFile(embedded(dataDir), first.file);
    const target: TestInstallation = await startInstallation(dataDir);
    try {
      expect(await decisions(target.superuser)).toEqual(before);
      // Exported again, every table is the same to the byte.
      const again = await exported(target.url);
      expect(again.manifest.tables).toEqual(first.manifest.tables);
      expect(again.manifest.books.organizations).toEqual(first.manifest.books.organizations);
      for (const { orgId } of histories) {
        const here = new OrgDb(target.database, orgId);
        await send(target.database, orgId, [
          aCall({ requestId: 'last' }),
          aCall({ requestId: 'new', startMicros: FIRST + 5n }),
        ]);
        for (const isFolded of [false, true]) {
          if (isFolded) await foldAll(target.superuser, here);
          for (const dimension of isFolded ? DIMENSIONS : (['provider', 'session'] as const))
            for (const filter of [{}, { boundProjectId: 'p1' }])
              await compareRead(target.superuser, here, {
                dimension,
                filter,
                fromMicros: undefined,
                toMicros: undefined,
              });
          await compareCells(target.superuser, here);
        }
        const calls = await target.superuser.query(
          `select count(*)::int as n from events where org_id = $1 and request_id in ('last', 'new')`,
          [orgId],
        );
        expect(calls.rows[0].n).toBe(2);
      }
      await closePeriod(target.database, histories[1]?.orgId ?? '', {
        month: '2026-05',
        closedBy: null,
        nowMicros: microsFromDate(new Date()),
      });
      const { rows } = await target.superuser.query(
        `select nextval('event_adjustments_id_seq') > coalesce(max(id), 0) as ahead from event_adjustments`,
      );
      expect(rows[0].ahead).toBe(true);
    } finally {
      await target.close();
    }
  }, 300_000);

  it('carry uploaded files between stores, but none out of a bucket', async () => {
    const from = embedded(aFolder());
    await putText(blobStoreOf(from), 'invoices/org/a.pdf', '%PDF-1.7');
    const file = join(aFolder(), 'e.tar.gz');
    const { blobs } = await exportToFile({ ...owned(source.url), blobs: from.blobs }, file);
    expect(blobs).toBe(1);
    const s3 = await startS3Fake();
    const dataDir = aFolder();
    try {
      const imported = await importFromFile({ ...embedded(dataDir), blobs: s3.settings }, file);
      expect(imported.blobs).toBe(1);
      expect([...s3.objects].map(([key, bytes]) => [key, bytes.toString()])).toEqual([
        ['invoices/org/a.pdf', '%PDF-1.7'],
      ]);
      const again = join(aFolder(), 'e.tar.gz');
      expect((await exportToFile({ ...owned(source.url), blobs: s3.settings }, again)).blobs).toBeUndefined();
    } finally {
      await s3.close();
    }
  }, 300_000);

  it('name the columns that hold transactions: each has its rule, and no rule is without its column', async () => {
    const client = await source.superuser.connect();
    const { tables } = await readCatalogue(client);
    const found = tables.flatMap(({ name, columns }) =>
      columns.filter(isTransactionColumn).map((column) => `${name}.${column.name}`),
    );
    const ruled = Object.entries(RENUMBERINGS).flatMap(([table, { columns }]) =>
      Object.keys(columns).map((name) => `${table}.${name}`),
    );
    expect(found.sort()).toEqual(ruled.sort());
    // Columns that the transaction's number fills must be listed, whatever their name.
    const { rows } = await client.query<{ column: string }>(
      `select c.relname || '.' || a.attname as "column" from pg_attrdef d join pg_class c on c.oid = d.adrelid
       join pg_attribute a on a.attrelid = c.oid and a.attnum = d.adnum
       where not c.relispartition and pg_get_expr(d.adbin, d.adrelid) ~ 'xid|xact|snapshot|txid'`,
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.map((row) => row.column).filter((column) => !ruled.includes(column))).toEqual([]);
    client.release();
  });

  it('refuse a column of transactions that has no rule, rather than carry it along', async () => {
    const other = await createTestDatabase();
    await other.superuser.query('create table later (org_id uuid, seen_xid bigint)');
    expect(await refusal(exportToFile(owned(other.url), join(aFolder(), 'e.tar.gz')))).toMatch(
      /later\.seen_xid contains transaction numbers/,
    );
    await other.close();
  });

  it('bring old partitions along, and keep row-level security as it was', async () => {
    const from = await createTestDatabase();
    const { orgId } = await createTestOrganization(from.database);
    await from.superuser.query(`alter table events detach partition events_older; drop table events_older`);
    for (const [name, bound] of [
      ['events_older', `from (minvalue) to ('2019-05-01')`],
      ['events_2019_05', `from ('2019-05-01') to ('2019-06-01')`],
    ])
      await from.superuser.query(
        `create table ${name} (like events including all); alter table ${name} enable row level security; alter table ${name} force row level security; alter table events attach partition ${name} for values ${bound}`,
      );
    await send(from.database, orgId, [
      aCall({ requestId: 'old', startMicros: microsFromDate(new Date('2019-05-03T00:00:00Z')) }),
    ]);
    const { file } = await exported(from.url);
    const dataDir = aFolder();
    await importFromFile(embedded(dataDir), file);
    const target = await startInstallation(dataDir);
    const { rows } = await target.superuser.query('select tableoid::regclass::text as partition from events');
    expect(rows).toEqual([{ partition: 'events_2019_05' }]);
    const open = await target.superuser.query(
      `select c.relname from pg_class c join pg_class o on o.relname = 'organizations' where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace
         and c.relrowsecurity and not c.relforcerowsecurity group by 1`,
    );
    expect(open.rows).toEqual([]);
    await target.close();
    await from.close();
  }, 300_000);

  it('need no superuser: the owner of the tables may do both', async () => {
    const owner = `owner_${createHash('sha256').update(randomUUID()).digest('hex').slice(0, 8)}`;
    const admin = source.superuser;
    await admin.query(
      `create role ${owner} login password 'x'; grant app_rw, app_system, app_workspace to ${owner}`,
    );
    const urls: string[] = [];
    for (const name of [`${owner}_a`, `${owner}_b`]) {
      await admin.query(`create database ${name} owner ${owner}`);
      const url = new URL(source.url);
      Object.assign(url, { username: owner, password: 'x', pathname: `/${name}` });
      urls.push(url.href);
    }
    const [from = '', to = ''] = urls;
    await migrate(from);
    const database = openDatabase({
      url: from,
      poolMax: 2,
      applicationName: 'test',
      statementTimeoutMs: 20_000,
    });
    await seedPrices(database);
    const orgId = randomUUID();
    await insertOrganization(database, { id: orgId, name: 'plain owner' });
    await send(database, orgId, [
      aCall({ requestId: 'a' }),
      aCall({ requestId: 'b', startMicros: 1_770_000_000_000_000n }),
    ]);
    await database.close();
    const { file, manifest } = await exported(from);
    expect(manifest.books.organizations).toMatchObject([{ organization_id: orgId, calls: 2 }]);
    const { books } = await importFromFile(owned(to), file);
    expect(books).toEqual(manifest.books.organizations);
    for (const name of [`${owner}_a`, `${owner}_b`]) await admin.query(`drop database ${name}`);
    await admin.query(`drop role ${owner}`);
  }, 300_000);

  it('import into an empty database only, whole or not at all', async () => {
    const { file } = await exported(source.url);
    expect(await refusal(importFromFile(owned(source.url), file))).toMatch(
      /^Nothing was imported: the database holds data already \(in \w+\): import into an empty one/,
    );
    const fresh = await createTestDatabase();
    const other = await createTestDatabase();
    await other.superuser.query(`insert into organizations (id, name) values ($1, 'x')`, [randomUUID()]);
    const lacking = await exported(other.url);
    // A row that the target's constraints refuse: nothing of the rest stays.
    await fresh.superuser.query(`alter table organizations add constraint not_x check (name <> 'x')`);
    expect(await refusal(importFromFile(owned(fresh.url), lacking.file))).toMatch(
      /^Nothing was imported: a row of the export breaks a rule of the database \(.*not_x/,
    );
    const { rows } = await fresh.superuser.query(
      'select (select count(*)::int from organizations) as organizations, (select count(*)::int from price_models) > 0 as has_prices',
    );
    expect(rows).toEqual([{ organizations: 0, has_prices: true }]);
    await fresh.superuser.query('alter table organizations drop constraint not_x');
    await importFromFile(owned(fresh.url), lacking.file);
    await fresh.close();
    await other.close();
  }, 300_000);

  it('of an older version come under its own tables, and are brought up to date then', async () => {
    const { file, manifest } = await exported(source.url);
    const later: Migration = {
      name: '9998_later',
      up: `alter table organizations add column later text not null default 'x'`,
      down: '',
    };
    const dataDir = aFolder();
    (MIGRATIONS as Migration[]).push(later);
    try {
      const { books } = await importFromFile(embedded(dataDir), file);
      expect(books).toEqual(manifest.books.organizations);
      const target = await startInstallation(dataDir);
      const { rows } = await target.superuser.query('select count(later)::int as n from organizations');
      expect(rows[0].n).toBe(books.length);
      await target.close();
    } finally {
      (MIGRATIONS as Migration[]).pop();
    }
  }, 300_000);

  it('print plain messages as commands', async () => {
    const dataDir = aFolder();
    const file = join(aFolder(), 'e.tar.gz');
    const out = await runCommand('export data', ['--to', file], {
      DATABASE_URL: source.url,
      DATA_DIR: dataDir,
    });
    expect(out, out.output).toMatchObject({ exit: 0 });
    expect(out.output).toMatch(/rows of \d+ tables in .*\n {2}books at .* calls, cost .* USD/);
    const backIn = await runCommand('import data', [file], { DATA_DIR: dataDir });
    expect(backIn, backIn.output).toMatchObject({ exit: 0 });
    expect(backIn.output).toMatch(/^Imported [\d,]+ rows .*\n.*\n {2}Next: copy admin-key and secret-key/);
  }, 300_000);
});
