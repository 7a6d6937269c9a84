/**
 * Generated requests to every operation of openapi.json, by schemathesis, against a running API with data and a worker:
 * no server error, and no answer that the document lacks. `npm run test:fuzz`; needs python3. FUZZ_SEED and
 * FUZZ_EXAMPLES select another run; FUZZ_ONLY an operation.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadDemo } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { DEMO_SEED, generateDemo } from '../../lab/demo/generateDemo.js';
import { loadConfig } from '../../platform/config.js';
import { createLogger } from '../../platform/logger.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { startTestEngine, type TestEngine } from '../support/engine.js';
import { yesterday } from '../support/plantedFaults.js';

const FOLDER = import.meta.dirname;
const INSTALL_TIME_MS = 600_000;
const RUN_TIME_MS = 1_800_000;
const SEED = process.env.FUZZ_SEED ?? '20260101';
const EXAMPLES = process.env.FUZZ_EXAMPLES ?? '20';
/** The calls of the demo's last days: enough to have rows everywhere, few enough for many requests. */
const EVENTS = 2_000;

let program: string;
let api: TestApi;
let engine: TestEngine;
let fullOrganization: TestOrganization;

beforeAll(async () => {
  program = installSchemathesis();
  const logger = createLogger({ name: 'api', level: 'error' });
  api = await startTestApi({ logger });
  engine = await startTestEngine(api.database.database);
  await engine.startWorker();
  fullOrganization = await api.addOrganization('Fuzz');
  const demo = generateDemo({ seed: DEMO_SEED, endDay: yesterday });
  const events = demo.events.slice(-EVENTS);
  const screen = createScreen(false, createLogger({ name: 'demo', level: 'silent' }));
  await loadDemo({ base: api.baseUrl, key: fullOrganization.adminKey }, { ...demo, events }, screen);
}, INSTALL_TIME_MS);

afterAll(async () => {
  await engine?.close();
  await api?.close();
});

/** The pinned schemathesis in a separate environment, created once a machine. */
function installSchemathesis(): string {
  const requirements = join(FOLDER, 'requirements.txt');
  const version = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = join(loadConfig().cacheDir, `fuzz-${version}`);
  const found = join(folder, 'bin/schemathesis');
  if (existsSync(found)) return found;
  execFileSync('python3', ['-m', 'venv', folder]);
  execFileSync(join(folder, 'bin/pip'), ['install', '--quiet', '--requirement', requirements], {
    stdio: 'inherit',
  });
  return found;
}

interface Run {
  key: string | null;
  phases: string;
  /** Cases for each operation. */
  examples: string;
}

/** One run over the whole document; prints its findings. Returns its exit code. */
function fuzz({ key, phases, examples }: Run): Promise<number | null> {
  const args = [
    ...['--config-file', join(FOLDER, 'schemathesis.toml'), 'run', `${api.baseUrl}/openapi.json`],
    ...['--seed', SEED, '--max-examples', examples, '--phases', phases],
    ...['--continue-on-failure', '--warnings', 'off', '--no-color'],
    ...['--generation-database', 'none', '--request-timeout', '30'],
    // The time that a loaded machine takes to generate a request proves nothing.
    ...['--suppress-health-check', 'all'],
    ...(key === null ? [] : ['--header', `Authorization: Bearer ${key}`]),
    ...(process.env.FUZZ_ONLY ? ['--include-operation-id', process.env.FUZZ_ONLY] : []),
  ];
  return new Promise((resolve, reject) => {
    const env = { ...process.env, SCHEMATHESIS_HOOKS: join(FOLDER, 'hooks.py') };
    // It leaves a folder where it runs.
    const child = spawn(program, args, {
      cwd: dirname(program),
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code));
  });
}

describe(`every operation under generated requests (FUZZ_SEED=${SEED})`, () => {
  it(
    'answers an admin with data as the documents say, in every state that operations lead to',
    async () => {
      const { adminKey } = fullOrganization;
      const code = await fuzz({
        key: adminKey,
        phases: 'examples,coverage,fuzzing,stateful',
        examples: EXAMPLES,
      });
      expect(code).toBe(0);
      // A run that had ended its own key would have seen nothing but 401.
      expect((await api.get('/api/v1/usage/summary', adminKey)).status).toBe(200);
    },
    RUN_TIME_MS,
  );

  it(
    'answers a key that may only send calls as the documents say',
    async () => {
      const { ingestKey } = fullOrganization;
      expect(await fuzz({ key: ingestKey, phases: 'coverage,fuzzing', examples: '5' })).toBe(0);
    },
    RUN_TIME_MS,
  );

  it(
    'answers somebody without a key as the documents say',
    async () => {
      expect(await fuzz({ key: null, phases: 'coverage,fuzzing', examples: '5' })).toBe(0);
    },
    RUN_TIME_MS,
  );
});
