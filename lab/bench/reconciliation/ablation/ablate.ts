/** Measures the effect of every rule and number: each is left out or changed, and all worlds are judged again. */
import { register } from 'node:module';
import { DEFAULT_WEIGHTS } from '../../../../domain/reconciliation/weights/weightSet.js';
import { pricesOf } from '../books.js';
import { judgeInputs, type Reconcile } from '../judge.js';
import { type Metrics, metricsOf } from '../metrics.js';
import { type PreparedWorld, preparedWorlds } from '../preparedWorlds.js';
import { formatTable } from '../report.js';
import { addWorld, emptyTally } from '../tally.js';
import { BENIGN_SET, type GeneratorName, type WorldOptions } from '../worlds.js';
import { type Edit, withEdit } from './hooks.js';
import { numbers, type Rule, rules } from './rules.js';

/** Effects below this, in every metric and generator, are none. */
const NO_EFFECT = 0.005;

type Reconciler = typeof import('../../../../domain/reconciliation/reconcileDays.js');

interface Measured {
  mixed: Metrics;
  benign: Metrics;
}

/** Prints a line for each rule or number as it is measured. */
export async function ablate(
  what: 'rules' | 'numbers',
  generators: readonly GeneratorName[],
  worldsOf: (set: string) => readonly WorldOptions[],
  print: (text: string) => void,
): Promise<void> {
  register('./hooks.js', import.meta.url);
  const worlds = new Map<GeneratorName, { mixed: PreparedWorld[]; benign: PreparedWorld[] }>();
  for (const generator of generators)
    worlds.set(generator, {
      mixed: await preparedOf(generator, worldsOf('mixed')),
      benign: await preparedOf(generator, worldsOf(BENIGN_SET)),
    });
  const measure = async (edit?: Edit): Promise<Measured[]> => {
    const reconcile = await reconcilerWith(edit);
    return [...worlds.values()].map(({ mixed, benign }) => ({
      mixed: judge(mixed, reconcile),
      benign: judge(benign, reconcile),
    }));
  };
  const usual = await measure();
  print(formatTable(HEAD, [['as it is', ...usual.map(figuresOf), '']]));
  for (const rule of what === 'rules' ? rules() : numbers()) {
    const effects = (await measure(rule.edit)).map((one, at) => effectsOf(usual[at] as Measured, one));
    const most = Math.max(...effects.flat().map(Math.abs));
    const cells = effects.map((one) => one.map((value) => value.toFixed(3)).join(' '));
    print(rowOf(rule, cells, most));
  }
}

const HEAD = [
  'rule',
  'recall HIGH, any, precision HIGH, any, type, ECE, benign HIGH by generator',
  '',
  '',
  'largest',
];

const figuresOf = (one: Measured): string =>
  valuesOf(one)
    .map((value) => value.toFixed(3))
    .join(' ');

const rowOf = ({ kind, name }: Rule, cells: readonly string[], most: number): string =>
  `| ${[`${kind} ${name}`, ...cells, most < NO_EFFECT ? 'none' : most.toFixed(3)].join(' | ')} |`;

async function preparedOf(
  generator: GeneratorName,
  options: readonly WorldOptions[],
): Promise<PreparedWorld[]> {
  const made: PreparedWorld[] = [];
  for (const one of options)
    for await (const { world, inputs } of preparedWorlds(generator, one, ['V3']))
      made.push({ world, inputs });
  return made;
}

async function reconcilerWith(edit: Edit | undefined): Promise<Reconcile> {
  const url = new URL('../../../../domain/reconciliation/reconcileDays.js', import.meta.url);
  const { reconcileDays } = (await import(edit ? withEdit(url, edit).href : url.href)) as Reconciler;
  return ({ provider, days, suspects }, prices) =>
    reconcileDays(provider, days, prices, DEFAULT_WEIGHTS, suspects);
}

function judge(worlds: readonly PreparedWorld[], reconcile: Reconcile): Metrics {
  const tally = emptyTally();
  for (const { world, inputs } of worlds)
    addWorld(tally, world, judgeInputs(inputs, pricesOf(world), reconcile), 'V3');
  return metricsOf(tally);
}

function valuesOf({ mixed, benign }: Measured): number[] {
  const { recallHigh, recall, precisionHigh, precision, typeByDollars, calibrationError } = mixed;
  return [recallHigh, recall, precisionHigh, precision, typeByDollars, calibrationError, benign.high];
}

/** Differences to the engine as it is; a metric that is not defined on one side has none. */
function effectsOf(usual: Measured, changed: Measured): number[] {
  const before = valuesOf(usual);
  return valuesOf(changed).map((value, at) => {
    const difference = value - (before[at] ?? Number.NaN);
    return Number.isNaN(difference) ? 0 : difference;
  });
}
