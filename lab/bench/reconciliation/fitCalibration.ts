/** Fits the calibration that ships on all generators, and writes it into the engine's calibration. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Fitted } from '../../../domain/reconciliation/engine/index.js';
import { runPrepared } from './benchmark.js';
import { repositoryRoot } from './books.js';
import { expectedCalibrationError } from './calibration.js';
import { type FindingDayOutcome, fitCalibrated, probabilityBy } from './leaveOut.js';
import { formatShare, formatTable } from './report.js';
import type { GeneratorName, WorldOptions } from './worlds.js';

const CALIBRATION = 'domain/reconciliation/engine/calibration.ts';
const LINE = /^export const FITTED = .*$/m;
/** Numbers are written in hundredths: a few hundred findings do not determine more, and the prior alone leaves less. */
const WRITTEN_DECIMALS = 2;
const DECIMALS = 4;

/** Each generator's findings at V3, a day each, with whether they are true. */
export async function outcomesOf(
  generators: readonly GeneratorName[],
  worlds: readonly WorldOptions[],
): Promise<Map<GeneratorName, FindingDayOutcome[]>> {
  const days = new Map<GeneratorName, FindingDayOutcome[]>();
  for (const generator of generators) {
    const [tally] = (await runPrepared(generator, worlds, ['V3'])).values();
    days.set(generator, tally?.predictions ?? []);
  }
  return days;
}

/** Judges the worlds at V3, writes the numbers, and returns a table of the fits. */
export async function fitCalibration(
  generators: readonly GeneratorName[],
  worlds: readonly WorldOptions[],
): Promise<string> {
  const days = await outcomesOf(generators, worlds);
  const all = [...days.values()].flat();
  const shipped = fitCalibrated(all);
  writeFitted(shipped);
  const rows = generators.map((generator) => {
    const own = days.get(generator) ?? [];
    const others = [...days].flatMap(([name, other]) => (name === generator ? [] : other));
    return rowOf(`${generator}, fitted on the others`, own, fitCalibrated(others));
  });
  const table = formatTable(HEAD, [...rows, rowOf('all', all, shipped)]);
  return `${table}\n\nwritten: ${CALIBRATION}`;
}

const HEAD = [
  'generator',
  'findings',
  'days',
  'lapse, all gates',
  'nats, a gate missing',
  'ECE of the model',
  'ECE',
];

function rowOf(name: string, days: readonly FindingDayOutcome[], fitted: Fitted): string[] {
  const by = (to: Fitted) =>
    expectedCalibrationError(days.map((one) => ({ ...one, probability: probabilityBy(one.finding, to) })));
  return [
    name,
    String(new Set(days.map(({ finding }) => finding)).size),
    String(days.length),
    fitted.lapse.toFixed(DECIMALS),
    fitted.surer.toFixed(DECIMALS),
    formatShare(by({ lapse: 0, surer: 0 })),
    formatShare(by(fitted)),
  ];
}

function writeFitted({ lapse, surer }: Fitted): void {
  const path = join(repositoryRoot(), CALIBRATION);
  const source = readFileSync(path, 'utf8');
  if (!LINE.test(source)) throw new Error(`${CALIBRATION} has no line of FITTED`);
  const written = (value: number) => String(Number(value.toFixed(WRITTEN_DECIMALS)));
  const line = `export const FITTED = { lapse: ${written(lapse)}, surer: ${written(surer)} } as const;`;
  writeFileSync(path, source.replace(LINE, line));
}
