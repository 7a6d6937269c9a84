import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BenchProgram, startProgram } from '../../../lab/bench/support/programs.js';
import { Bystander } from '../../../lab/bench/support/worstRequests/bystander.js';
import { sendWorst } from '../../../lab/bench/support/worstRequests/sendWorst.js';
import { worstRequests } from '../../../lab/bench/support/worstRequests/worstBodies.js';
import { createTestOrganization, type TestOrganization } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

/** The longest block of the API's event loop, in processor time. */
const PAUSE_MS_MAX = 250;

const REQUESTS = worstRequests();

let database: TestDatabase;
let sender: TestOrganization;
let api: BenchProgram;
let bystander: Bystander;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  sender = await createTestOrganization(database.database, 'Sender');
  const other = await createTestOrganization(database.database, 'Other');
  folder = mkdtempSync(join(tmpdir(), 'trueup-worst-'));
  const pauseFile = join(folder, 'pauses');
  api = await startProgram({ name: 'api', url: database.url, folder, pauseFile, fromSources: true });
  bystander = new Bystander(api.port, other.ingestKey, pauseFile);
});
afterAll(async () => {
  await api?.stop();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('the most costly requests that ingest takes, at every limit', () => {
  it.each(REQUESTS.map((request) => [request.name, request] as const))(
    'lets others be served meanwhile: %s',
    async (_name, request) => {
      const body = request.make();
      const { outcome, failures, pauseMs } = await bystander.watch(() =>
        sendWorst(api.port, sender.ingestKey, request, body),
      );
      if (outcome instanceof Error) throw outcome;
      expect(outcome.status).toBe(request.status);
      if (request.accepted !== undefined) expect(outcome.accepted).toBe(request.accepted);
      expect(failures).toBe(0);
      expect(pauseMs).toBeLessThan(PAUSE_MS_MAX);
    },
  );
});
