import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { embeddedDatabaseUrl } from '../../platform/runtimeFile.js';
import { SeededRandom, testSeed } from '../fakes/seededRandom.js';
import { type ChildProgram, startTrueup } from '../support/childProgram.js';
import { mountSmallDisk, type SmallDisk } from '../support/smallDisk.js';
import { makePlace, type Place, parts, START_LIMIT_MS, untilWhole } from '../support/startedService.js';
import { auditBook, LoadClient, pause } from './support/loadClient.js';

const SEED = testSeed();
const CLIENTS = 4;
/** The database, its log and Temporal's file take 75 MB; the rest before it is filled exceeds `low`. */
const DISK_MEGABYTES = 220;
const FULL_MS = 20_000;

let disk: SmallDisk;
let place: Place;
let service: ChildProgram;
let base: string;
let adminKey: string;
let superuser: pg.Pool;

beforeAll(async () => {
  disk = mountSmallDisk('full-disk', DISK_MEGABYTES);
  place = await makePlace();
  place.environment.DATA_DIR = join(disk.path, 'data');
  place.environment.RATE_LIMITS = 'off';
  place.dataDir = place.environment.DATA_DIR;
  service = startTrueup(['start'], place.environment);
  await service.sees(/— ready in/, START_LIMIT_MS);
  await untilWhole(place);
  base = `http://127.0.0.1:${place.environment.PORT}`;
  adminKey = readFileSync(join(place.dataDir, 'admin-key'), 'utf8').trim();
  const { address = '' } = parts(place).postgres;
  superuser = new pg.Pool({ connectionString: embeddedDatabaseUrl(place.dataDir, address), max: 1 });
  superuser.on('error', () => undefined);
});

afterAll(async () => {
  await superuser?.end();
  service?.child.kill('SIGTERM');
  await service?.ended();
  disk?.remove();
});

async function read(path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(base + path, { headers: { authorization: `Bearer ${adminKey}` } });
  return { status: response.status, text: await response.text() };
}

async function readyz(): Promise<{ status: string; storage: string; reasons: string[] }> {
  return JSON.parse((await read('/readyz')).text);
}

async function command(...args: string[]): Promise<{ exit: number | string; output: string }> {
  const program = startTrueup(args, place.environment);
  return { exit: await program.ended(), output: program.stdout() };
}

const FULL = /The disk of the database is full/;

describe(`a service whose disk is full (TEST_SEED=${SEED})`, () => {
  it('reports it everywhere, answers reads, refuses calls with 503, loses none that it took, and goes on when there is room', async () => {
    await expect.poll(async () => (await readyz()).status).toBe('ok');
    const client = new LoadClient({ baseUrl: base, key: adminKey, random: new SeededRandom(SEED) });
    client.start(CLIENTS);
    while (client.acknowledged < 20) await pause(5);

    disk.fill();
    await expect.poll(async () => (await readyz()).storage).toBe('full');
    const begun = performance.now();
    while (performance.now() - begun < FULL_MS) {
      expect((await read('/api/v1/events?limit=5')).status).toBe(200);
      expect((await read('/healthz')).text).toBe('{"status":"ok"}');
      const ready = await read('/readyz');
      expect([ready.status, JSON.parse(ready.text)]).toEqual([
        200,
        expect.objectContaining({
          status: 'degraded',
          storage: 'full',
          reasons: [expect.stringMatching(FULL)],
        }),
      ]);
      await pause(500);
    }
    expect((await read('/metrics')).text).toMatch(/^trueup_storage_full 1$/m);
    const status = await command('status', '--json');
    expect(status.exit).toBe(1);
    expect(JSON.parse(status.output).postgres).toMatchObject({
      status: 'degraded',
      detail: expect.stringMatching(FULL),
    });
    const doctor = await command('doctor');
    expect(doctor.exit).toBe(1);
    expect(doctor.output).toMatch(/✗ Postgres .*The disk of the database is full/);
    expect(doctor.output).toMatch(/✗ disk /);
    const acknowledged = client.acknowledged;
    await pause(1_000);
    expect(client.acknowledged).toBe(acknowledged);

    disk.empty();
    while (client.acknowledged < acknowledged + 20) await pause(5);
    await client.stop();
    await expect.poll(async () => (await readyz()).status).toBe('ok');
    expect((await read('/metrics')).text).toMatch(/^trueup_storage_full 0$/m);
    expect((await command('status', '--json')).exit).toBe(0);
    const [org] = (await superuser.query<{ id: string }>('select id from organizations')).rows;
    expect(await auditBook(client, superuser, org?.id ?? '')).toEqual([]);
    expect(new Set(client.answers.map((answer) => answer.status))).toEqual(new Set([202, 503]));
    const refused = client.answers.filter((answer) => answer.status === 503);
    expect(refused.length).toBeGreaterThan(100);
    expect(new Set(refused.map(({ retryAfter }) => retryAfter))).toEqual(new Set(['30']));
  });
});
