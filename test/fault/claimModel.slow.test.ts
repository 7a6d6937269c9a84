import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { writeWorkflowBundle } from '../support/engine.js';
import { makeTestFolder } from '../support/testFolder.js';
import { file, goOnWhole } from './support/claimCommands.js';
import { aDraft } from './support/claimModel.js';
import { ClaimSystem } from './support/claimSystem.js';
import { claimCommands } from './support/drawClaimCommands.js';
import { compare, type Known } from './support/knownClaims.js';

/** Fixed in the suite; TEST_SEED and TEST_RUNS request other or more runs. */
const SEED = Number(process.env.TEST_SEED ?? 20_261_122);
const RUNS = Number(process.env.TEST_RUNS ?? 4);
/** Time after which the suite begins no further run; unlimited where runs are requested. */
const BUDGET_MS = process.env.TEST_RUNS === undefined ? 25_000 : Number.POSITIVE_INFINITY;
const CLAIMS = 4;
/** Those that are with the provider when a run begins. */
const FILED = [1, 2];
const COMMANDS = 16;
const RECOVERABLE_CENTS = 12_345;

const folder = makeTestFolder('claim-model');
let system: ClaimSystem;
beforeAll(async () => {
  system = await ClaimSystem.start(await writeWorkflowBundle(folder));
  await system.startWorker();
});
afterAll(async () => {
  await system?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function begin(): Promise<Known> {
  system.mendLine();
  await system.startWorker();
  const each = Array.from({ length: CLAIMS });
  return {
    ids: await Promise.all(each.map(() => system.aClaim())),
    claims: each.map(() => aDraft(RECOVERABLE_CENTS)),
    times: each.map(() => []),
    notices: each.map(() => 0),
    reminded: each.map(() => new Set<string>()),
    owed: new Map(),
    isLineWhole: true,
    isWorking: true,
    kept: [],
  };
}

describe(`the life of claims (TEST_SEED=${SEED})`, () => {
  it('equals the model for any sequence of requests and faults of Temporal', {
    timeout: RUNS * 300_000,
  }, async () => {
    const started = performance.now();
    let hasFailed = false;
    await fc.assert(
      fc.asyncProperty(
        fc.commands(claimCommands(CLAIMS), { maxCommands: COMMANDS, size: 'max' }),
        async (commands) => {
          if (!hasFailed && performance.now() - started > BUDGET_MS) return;
          try {
            const known = await begin();
            await file(known, system, FILED);
            await fc.asyncModelRun(() => ({ model: known, real: system }), commands);
            await goOnWhole(known, system);
            await compare(known, system);
          } catch (error) {
            hasFailed = true;
            throw error;
          }
        },
      ),
      { seed: SEED, numRuns: RUNS, interruptAfterTimeLimit: RUNS * 240_000, markInterruptAsFailure: true },
    );
  });
});
