/**
 * Worlds as the engine receives them, kept in the temporary folder, so that a changed engine is judged without
 * generating, fetching, reading and pricing again.
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import type { GeneratedVisibility, GeneratedWorld } from '../../generators/world.js';
import { pricesOf, repositoryRoot } from './books.js';
import { type ProviderInput, prepareInputs, type WorldFacts } from './judge.js';
import { GENERATORS, type GeneratorName, type WorldOptions } from './worlds.js';

export interface PreparedWorld {
  world: WorldFacts;
  inputs: ProviderInput[];
}

/** Everything that determines the engine's input, from the root: a change of one of these makes other worlds. */
const SOURCES = [
  'data/prices.json',
  'lab/generators',
  'lab/bills',
  'lab/bench/reconciliation/billServer.ts',
  'lab/bench/reconciliation/books.ts',
  'lab/bench/reconciliation/bucketTexts.ts',
  'lab/bench/reconciliation/cells.ts',
  'lab/bench/reconciliation/clocks.ts',
  'lab/bench/reconciliation/fetchRows.ts',
  'lab/bench/reconciliation/judge.ts',
  'lab/bench/reconciliation/observe.ts',
  'lab/bench/reconciliation/preparedWorlds.ts',
  'lab/bench/reconciliation/worlds.ts',
  'adapters/billing',
  'domain/billing',
  'domain/pricing',
  'domain/reconciliation/evidence/dayOffset.ts',
  'domain/reconciliation/matching/cells.ts',
  'api/pricing/ownPrices/wire.ts',
] as const;

const FOLDER = 'trueup-bench-worlds';
/** Worlds of sources that were not judged for so long are removed. */
const KEPT_MS = 24 * 3_600_000;

let known: string | undefined;

/** The folder of the present sources. */
function folderOfSources(): string {
  if (known !== undefined) return known;
  const root = repositoryRoot();
  const hash = createHash('sha256');
  for (const source of SOURCES)
    for (const path of filesOf(join(root, source)))
      hash.update(relative(root, path)).update('\0').update(readFileSync(path)).update('\0');
  const parent = join(tmpdir(), FOLDER);
  known = join(parent, hash.digest('hex').slice(0, 24));
  mkdirSync(known, { recursive: true });
  for (const name of readdirSync(parent)) {
    const path = join(parent, name);
    if (path !== known && Date.now() - statSync(path).mtimeMs > KEPT_MS)
      rmSync(path, { recursive: true, force: true });
  }
  return known;
}

function filesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesOf(join(path, name)));
}

/** The prepared world at each visibility, from the folder where it has them. */
export async function* preparedWorlds(
  generator: GeneratorName,
  options: WorldOptions,
  visibilities: readonly GeneratedVisibility[],
): AsyncGenerator<PreparedWorld & { visibility: GeneratedVisibility }> {
  let made: GeneratedWorld | undefined;
  for (const visibility of visibilities) {
    const { set, seed, size } = options;
    const path = join(folderOfSources(), `${generator}-${set}-${seed}-${size}-${visibility}`);
    if (!existsSync(path)) {
      made ??= GENERATORS[generator](options);
      const inputs = await prepareInputs(made, made.bills[visibility], pricesOf(made));
      const { calls: _, bills: __, ...world } = made;
      keep(path, { world, inputs });
    }
    yield { ...(deserialize(readFileSync(path)) as PreparedWorld), visibility };
  }
}

/** A name of its own until the file is whole, so that two runs at once read no half of one. */
function keep(path: string, prepared: PreparedWorld): void {
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, serialize(prepared));
  renameSync(unfinished, path);
}
