/**
 * bench:reconciliation — what the engine finds in generated bills of which the truth is known, and what it claims wrongly.
 * docs/benchmarks.md says what is measured and what the figures mean.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import type { GeneratedWorld } from './generators/world.js';
import { type Look, runBenchmark, VISIBILITIES } from './reconciliation/benchmark.js';
import { repositoryRoot } from './reconciliation/books.js';
import { expectedCalibrationError, reliabilityBins } from './reconciliation/calibration.js';
import { lookCloser } from './reconciliation/lookCloser.js';
import { reliabilityPlot } from './reconciliation/reliabilityPlot.js';
import {
  calibrationTable,
  causeTable,
  falseTable,
  mainTable,
  sizeLine,
  type Tallies,
  targetLines,
} from './reconciliation/report.js';
import { BENIGN_SET, GENERATORS, type GeneratorName, isGeneratorName } from './reconciliation/worlds.js';

const PLOT = 'docs/images/reconciliation-reliability.svg';

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
      'no-gate': { type: 'boolean', default: false },
    },
  });
  const seeds = values.seeds.split(',').map(Number);
  if (seeds.some((seed) => !Number.isInteger(seed))) throw new Error('--seeds takes whole numbers, as 1,2,3');
  if (!isGeneratorName(values.generator))
    throw new Error(`--generator takes ${Object.keys(GENERATORS).join(' or ')}`);
  const size = Number(values.size);
  if (!(size > 0)) throw new Error('--size takes a factor such as 0.5');
  const wanted = values.visibility.split(',');
  return { ...values, seeds, size, generator: values.generator, wanted };
}

function makeWorlds(
  generator: GeneratorName,
  seeds: readonly number[],
  set: string,
  size: number,
): GeneratedWorld[] {
  return seeds.map((seed) => GENERATORS[generator]({ seed, set, size }));
}

function print(text = ''): void {
  process.stdout.write(`${text}\n`);
}

const options = readOptions();
const visibilities = VISIBILITIES.filter((visibility) => options.wanted.includes(visibility));
const onLook = ({ world, visibility, judged, matched }: Look) => {
  if (!options.verbose) return;
  print(`\nseed ${world.seed}, ${visibility}`);
  print(lookCloser(judged, matched, BigInt(world.readAtSeconds) * 1_000_000n));
};
const worlds = makeWorlds(options.generator, options.seeds, options.set, options.size);
const tallies: Tallies = new Map(await runBenchmark(worlds, visibilities, { onLook }));
if (options.set === 'mixed') {
  const benign = makeWorlds(options.generator, options.seeds, BENIGN_SET, options.size);
  const [tally] = (await runBenchmark(benign, ['V3'], { onLook })).values();
  if (tally) (tallies as Map<'benign', typeof tally>).set('benign', tally);
}

print(`generator ${options.generator}, set ${options.set}, seeds ${options.seeds.join(', ')}\n`);
print(mainTable(tallies));
for (const [name, tally] of tallies) {
  print(`\n### ${name}: ${sizeLine(tally)}\n`);
  print(causeTable(tally));
  print(`\n${falseTable(tally)}`);
  if (options.verbose) print(`\n${calibrationTable(tally)}`);
}
const { text, missed } = targetLines(tallies, options.generator === 'second');
print(`\n${text}`);
const widest = tallies.get('V3');
if (options.plot && widest) {
  const path = join(repositoryRoot(), PLOT);
  mkdirSync(dirname(path), { recursive: true });
  const error = expectedCalibrationError(widest.predictions);
  writeFileSync(path, reliabilityPlot(reliabilityBins(widest.predictions), error, 'Findings at V3'));
  print(`\nwritten: ${PLOT}`);
}
if (missed > 0 && options.set === 'mixed' && !options['no-gate']) process.exitCode = 1;
