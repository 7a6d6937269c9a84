/**
 * bench:reconciliation — measures what the engine finds, and what it claims wrongly, in generated bills with known
 * mistakes. docs/benchmarks.md explains the measurement and the figures.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import type { GeneratedVisibility } from '../generators/world.js';
import { ablate } from './reconciliation/ablation/ablate.js';
import { type Look, runPrepared, VISIBILITIES } from './reconciliation/benchmark.js';
import { repositoryRoot } from './reconciliation/books.js';
import { expectedCalibrationError, reliabilityBins } from './reconciliation/calibration.js';
import { fitCalibration, outcomesOf } from './reconciliation/fitCalibration.js';
import { lookCloser } from './reconciliation/lookCloser.js';
import { reliabilityPlot } from './reconciliation/reliabilityPlot.js';
import {
  calibrationTable,
  causeTable,
  falseTable,
  mainTable,
  setTable,
  sizeLine,
  targetLines,
} from './reconciliation/report.js';
import { judgeInRotation } from './reconciliation/rotation.js';
import type { Tally } from './reconciliation/tally.js';
import {
  ADVERSARIAL_SETS,
  BENIGN_SET,
  GENERATORS,
  type GeneratorName,
  isGeneratorName,
} from './reconciliation/worlds.js';

const PLOT = 'docs/images/reconciliation-reliability.svg';

/** Judges every generator, with a line for each, and calibration that is fitted on the others. */
const ALL_GENERATORS = 'all';
const GENERATOR_NAMES = Object.keys(GENERATORS) as GeneratorName[];

function readOptions() {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1,2,3' },
      set: { type: 'string', default: 'mixed' },
      generator: { type: 'string', default: 'first' },
      size: { type: 'string', default: '1' },
      visibility: { type: 'string', default: VISIBILITIES.join(',') },
      verbose: { type: 'boolean', default: false },
      plot: { type: 'boolean', default: false },
      fit: { type: 'boolean', default: false },
      'fit-seeds': { type: 'string', default: '' },
      ablate: { type: 'string', default: '' },
      'no-gate': { type: 'boolean', default: false },
    },
  });
  const seeds = seedsOf('seeds', values.seeds);
  const fitSeeds = values['fit-seeds'] === '' ? [] : seedsOf('fit-seeds', values['fit-seeds']);
  const generators = values.generator === ALL_GENERATORS ? GENERATOR_NAMES : [values.generator];
  if (!generators.every(isGeneratorName))
    throw new Error(`--generator takes ${GENERATOR_NAMES.join(', ')} or ${ALL_GENERATORS}`);
  const size = Number(values.size);
  if (!(size > 0)) throw new Error('--size takes a factor such as 0.5');
  const wanted = values.visibility.split(',');
  return { ...values, seeds, fitSeeds, size, generators, wanted };
}

function seedsOf(option: string, text: string): number[] {
  const seeds = text.split(',').map(Number);
  if (seeds.some((seed) => !Number.isInteger(seed)))
    throw new Error(`--${option} takes whole numbers, as 1,2,3`);
  return seeds;
}

/** Set name that selects every adversarial set of the first generator at V3, with a line for each. */
const ADVERSARIAL = 'adversarial';

function optionsOrEnd() {
  try {
    return readOptions();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  }
}

const options = optionsOrEnd();

const worldsOf = (set: string, seeds = options.seeds) =>
  seeds.map((seed) => ({ seed, set, size: options.size }));

function print(text = ''): void {
  process.stdout.write(`${text}\n`);
}

function onLook({ world, visibility, judged, matched }: Look): void {
  if (!options.verbose) return;
  print(`\nseed ${world.seed}, ${visibility}`);
  print(lookCloser(judged, matched, BigInt(world.readAtSeconds) * 1_000_000n));
}

const visibilities = VISIBILITIES.filter((visibility) => options.wanted.includes(visibility));

async function judgeSet(generator: GeneratorName, set: string): Promise<void> {
  const tallies = new Map<GeneratedVisibility | 'benign', Tally>(
    await runPrepared(generator, worldsOf(set), visibilities, { onLook }),
  );
  if (set === 'mixed') {
    const [benign] = (await runPrepared(generator, worldsOf(BENIGN_SET), ['V3'], { onLook })).values();
    if (benign) tallies.set('benign', benign);
  }
  print(`generator ${generator}, set ${set}, seeds ${options.seeds.join(', ')}\n`);
  print(mainTable(tallies));
  for (const [name, tally] of tallies) {
    print(`\n### ${name}: ${sizeLine(tally)}\n`);
    print(causeTable(tally));
    print(`\n${falseTable(tally)}`);
    if (options.verbose) print(`\n${calibrationTable(tally)}`);
  }
  const { text, missed } = targetLines(tallies, generator !== 'first');
  print(`\n${text}`);
  const widest = tallies.get('V3');
  if (options.plot && widest) writePlot(widest);
  if (missed > 0 && set === 'mixed' && !options['no-gate']) process.exitCode = 1;
}

function writePlot({ predictions }: Tally): void {
  const path = join(repositoryRoot(), PLOT);
  mkdirSync(dirname(path), { recursive: true });
  const error = expectedCalibrationError(predictions);
  writeFileSync(path, reliabilityPlot(reliabilityBins(predictions), error, 'Findings at V3'));
  print(`\nwritten: ${PLOT}`);
}

async function judgeAdversarial(generator: GeneratorName): Promise<void> {
  const tallies = new Map<string, Tally>();
  for (const set of ADVERSARIAL_SETS) {
    const [tally] = (await runPrepared(generator, worldsOf(set), ['V3'], { onLook })).values();
    if (tally) tallies.set(set, tally);
  }
  print(`generator ${generator}, adversarial sets at V3, seeds ${options.seeds.join(', ')}\n`);
  print(setTable(tallies));
}

async function judgeAll(): Promise<void> {
  const { generators, fitSeeds } = options;
  const tuned = fitSeeds.length > 0 ? await outcomesOf(generators, worldsOf('mixed', fitSeeds)) : undefined;
  const { text, missed } = await judgeInRotation(generators, worldsOf, visibilities, onLook, tuned);
  if (tuned) print(`calibration of the others fitted on seeds ${fitSeeds.join(', ')}`);
  print(`seeds ${options.seeds.join(', ')}, size ${options.size}\n\n${text}`);
  if (missed > 0 && !options['no-gate']) process.exitCode = 1;
}

const [first] = options.generators;
if (options.ablate === 'rules' || options.ablate === 'numbers')
  await ablate(options.ablate, options.generators, worldsOf, visibilities[0] ?? 'V3', print, (world) =>
    process.stderr.write(`${world}\n`),
  );
else if (options.fit) print(await fitCalibration(GENERATOR_NAMES, worldsOf('mixed')));
else if (options.generators.length > 1) await judgeAll();
else if (first) await (options.set === ADVERSARIAL ? judgeAdversarial(first) : judgeSet(first, options.set));
