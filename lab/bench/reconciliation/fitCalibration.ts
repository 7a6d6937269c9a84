/** Fits the lapse rates that ship on all generators, and writes them into the engine's calibration. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runPrepared } from './benchmark.js';
import { repositoryRoot } from './books.js';
import { expectedCalibrationError } from './calibration.js';
import { type FindingDayOutcome, fitLapseRates, type LapseRates, probabilityBy } from './leaveOut.js';
import { formatShare, formatTable } from './report.js';
import type { GeneratorName, WorldOptions } from './worlds.js';

const CALIBRATION = 'domain/reconciliation/engine/calibration.ts';
const LINE = /^export const LAPSE = .*$/m;
/** Rates are written in hundredths: a few hundred findings do not determine more, and the prior alone leaves less. */
const WRITTEN_DECIMALS = 2;
const DECIMALS = 4;

/** Judges the worlds at V3, writes the rates, and returns a table of the fits. */
export async function fitCalibration(
  generators: readonly GeneratorName[],
  worlds: readonly WorldOptions[],
): Promise<string> {
  const days = new Map<GeneratorName, FindingDayOutcome[]>();
  for (const generator of generators) {
    const [tally] = (await runPrepared(generator, worlds, ['V3'])).values();
    days.set(generator, tally?.predictions ?? []);
  }
  const all = [...days.values()].flat();
  const shipped = fitLapseRates(all);
  writeRates(shipped);
  const rows = generators.map((generator) => {
    const own = days.get(generator) ?? [];
    const others = [...days].flatMap(([name, other]) => (name === generator ? [] : other));
    return rowOf(`${generator}, fitted on the others`, own, fitLapseRates(others));
  });
  const table = formatTable(HEAD, [...rows, rowOf('all', all, shipped)]);
  return `${table}\n\nwritten: ${CALIBRATION}`;
}

const HEAD = [
  'generator',
  'findings',
  'days',
  'lapse, all gates',
  'lapse, a gate missing',
  'ECE of the model',
  'ECE',
];

function rowOf(name: string, days: readonly FindingDayOutcome[], rates: LapseRates): string[] {
  const by = (to: LapseRates) =>
    expectedCalibrationError(days.map((one) => ({ ...one, probability: probabilityBy(one.finding, to) })));
  return [
    name,
    String(new Set(days.map(({ finding }) => finding)).size),
    String(days.length),
    rates.allGates.toFixed(DECIMALS),
    rates.missingGate.toFixed(DECIMALS),
    formatShare(by({ allGates: 0, missingGate: 0 })),
    formatShare(by(rates)),
  ];
}

function writeRates({ allGates, missingGate }: LapseRates): void {
  const path = join(repositoryRoot(), CALIBRATION);
  const source = readFileSync(path, 'utf8');
  if (!LINE.test(source)) throw new Error(`${CALIBRATION} has no line of LAPSE`);
  const rate = (value: number) => String(Number(value.toFixed(WRITTEN_DECIMALS)));
  const line = `export const LAPSE = { allGates: ${rate(allGates)}, missingGate: ${rate(missingGate)} } as const;`;
  writeFileSync(path, source.replace(LINE, line));
}
