/** Measures the effect of every rule and number: each is left out or changed, and the worlds are judged again. */
import { register } from 'node:module';
import type { GeneratedVisibility } from '../../../generators/world.js';
import { type Metrics, metricsOf } from '../metrics.js';
import { preparedWorlds } from '../preparedWorlds.js';
import { addTally, emptyTally, type Tally } from '../tally.js';
import { BENIGN_SET, type GeneratorName, type WorldOptions } from '../worlds.js';
import { Ablation, matchWorld } from './measureWorld.js';
import { numbers, type Rule, rules } from './rules.js';

/** Effects below this, in every metric and generator, are none. */
const NO_EFFECT = 0.005;

/** Sums over worlds with mistakes and without. */
export interface Measured {
  mixed: Tally;
  benign: Tally;
}

export const emptyMeasured = (): Measured => ({ mixed: emptyTally(), benign: emptyTally() });

/**
 * Prints a table for each generator as soon as its worlds are judged, and meanwhile calls `progress` with each world.
 * Numbers are changed in worlds with mistakes only: 260 judgements of a world cost minutes.
 */
export async function ablate(
  what: 'rules' | 'numbers',
  generators: readonly GeneratorName[],
  worldsOf: (set: string) => readonly WorldOptions[],
  visibility: GeneratedVisibility,
  print: (text: string) => void,
  progress: (text: string) => void,
): Promise<void> {
  register('./hooks.js', import.meta.url);
  const all = what === 'rules' ? rules() : numbers();
  const ablation = new Ablation(all);
  for (const generator of generators) {
    const usual = emptyMeasured();
    const without = all.map(emptyMeasured);
    let [series, again] = [0, 0];
    for (const [set, of] of what === 'rules' ? SETS : SETS.slice(0, 1))
      for (const options of worldsOf(set))
        for await (const prepared of preparedWorlds(generator, options, [visibility])) {
          const measured = await ablation.measure(matchWorld(prepared, visibility));
          addTally(usual[of], measured.usual);
          for (const [at, { tally }] of measured.without.entries())
            addTally((without[at] as Measured)[of], tally);
          series += measured.series * all.length;
          again += measured.without.reduce((sum, one) => sum + one.again, 0);
          progress(`${generator}, ${set}, seed ${options.seed}: ${measured.series} series`);
        }
    print(`generator ${generator} at ${visibility}: ${again} of ${series} series explained again\n`);
    print(effectTable(usual, all, without));
  }
}

/** The sets of worlds, and where their judgements are added. */
const SETS = [
  ['mixed', 'mixed'],
  [BENIGN_SET, 'benign'],
] as const;

const METRICS: readonly (readonly [name: string, of: (mixed: Metrics, benign: Metrics) => number])[] = [
  ['recall HIGH', (mixed) => mixed.recallHigh],
  ['any grade', (mixed) => mixed.recall],
  ['precision HIGH', (mixed) => mixed.precisionHigh],
  ['any grade', (mixed) => mixed.precision],
  ['type', (mixed) => mixed.typeByDollars],
  ['ECE', (mixed) => mixed.calibrationError],
  ['benign HIGH', (_, benign) => benign.high],
];

/** One line for each rule: by how much each metric changes without it. */
export function effectTable(usual: Measured, all: readonly Rule[], without: readonly Measured[]): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const before = valuesOf(usual);
  return [
    row(['without', ...METRICS.map(([name]) => name), 'largest']),
    row(['---', ...METRICS.map(() => '---:'), '---:']),
    row(['as it is', ...before.map((value) => value.toFixed(3)), '']),
    ...all.map((rule, at) => {
      const effects = effectsOf(before, valuesOf(without[at] as Measured));
      const most = Math.max(...effects.map(Math.abs));
      const cells = effects.map((value) => value.toFixed(3));
      return row([nameOf(rule), ...cells, most < NO_EFFECT ? 'none' : most.toFixed(3)]);
    }),
  ].join('\n');
}

/** `doubt isGuess`, `number STAY × 0.75`. */
export const nameOf = ({ kind, name, quarters }: Rule): string =>
  `${kind} ${name}${quarters === undefined ? '' : ` × ${quarters / 4}`}`;

function valuesOf({ mixed, benign }: Measured): number[] {
  const [ofMixed, ofBenign] = [metricsOf(mixed), metricsOf(benign)];
  return METRICS.map(([, of]) => of(ofMixed, ofBenign));
}

/** Differences to the engine as it is; a metric that is not defined on one side has none. */
function effectsOf(before: readonly number[], after: readonly number[]): number[] {
  return after.map((value, at) => {
    const difference = value - (before[at] ?? Number.NaN);
    return Number.isNaN(difference) ? 0 : difference;
  });
}
