/**
 * Judges every generator, each with the calibration that is fitted on the others: figures of data on which nothing was
 * tuned.
 */
import type { Fitted } from '../../../domain/reconciliation/engine/index.js';
import type { GeneratedVisibility } from '../../generators/world.js';
import { type Look, runPrepared } from './benchmark.js';
import { pricesOf } from './books.js';
import { type FindingDayOutcome, fitCalibrated, recalibrated } from './leaveOut.js';
import { type Metrics, metricsOf } from './metrics.js';
import { rotationTables } from './rotationReport.js';
import { addWorld, emptyTally, type Tally } from './tally.js';
import { BENIGN_SET, type GeneratorName, type WorldOptions } from './worlds.js';

/** A generator's metrics by data: as the engine shipped, and at V3 with the calibration of the other generators. */
export interface GeneratorMetrics {
  generator: GeneratorName;
  shipped: Map<GeneratedVisibility | 'benign', Metrics>;
  leftOut: { V3: Metrics; benign: Metrics };
}

type Kept = Pick<Look, 'world' | 'visibility' | 'judged'>;

interface Judgement {
  generator: GeneratorName;
  tallies: Map<GeneratedVisibility | 'benign', Tally>;
  mixed: Kept[];
  benign: Kept[];
}

/**
 * The tables of all generators, their means and the targets. V3 is always judged, since the rates are of V3. `tuned`: what
 * each generator's calibration is fitted on by the others, in place of the judged worlds; five worlds hold too few findings
 * that lack a gate to determine it.
 */
export async function judgeInRotation(
  generators: readonly GeneratorName[],
  worldsOf: (set: string) => readonly WorldOptions[],
  visibilities: readonly GeneratedVisibility[],
  onLook: (look: Look) => void,
  tuned?: ReadonlyMap<GeneratorName, readonly FindingDayOutcome[]>,
): Promise<{ text: string; missed: number }> {
  const wanted = visibilities.includes('V3') ? visibilities : (['V3', ...visibilities] as const);
  const judgements: Judgement[] = [];
  for (const generator of generators) judgements.push(await judgeOne(generator, worldsOf, wanted, onLook));
  return rotationTables(
    judgements.map((one) => {
      const others = judgements.filter((other) => other !== one);
      const fitted = fitCalibrated(
        others.flatMap(
          ({ generator, tallies }) => tuned?.get(generator) ?? tallies.get('V3')?.predictions ?? [],
        ),
      );
      return {
        generator: one.generator,
        shipped: new Map([...one.tallies].map(([name, tally]) => [name, metricsOf(tally)])),
        leftOut: {
          V3: metricsOf(judgedAgain(one.mixed, fitted)),
          benign: metricsOf(judgedAgain(one.benign, fitted)),
        },
      };
    }),
  );
}

async function judgeOne(
  generator: GeneratorName,
  worldsOf: (set: string) => readonly WorldOptions[],
  visibilities: readonly GeneratedVisibility[],
  onLook: (look: Look) => void,
): Promise<Judgement> {
  const [mixed, benign]: [Kept[], Kept[]] = [[], []];
  const keepIn = (kept: Kept[]) => (look: Look) => {
    onLook(look);
    // Evidence of many worlds does not fit into memory, and findings have all that is needed.
    const judged = { ...look.judged, inputs: [], explanations: [], buckets: [] };
    if (look.visibility === 'V3') kept.push({ world: look.world, visibility: 'V3', judged });
  };
  const tallies = new Map<GeneratedVisibility | 'benign', Tally>(
    await runPrepared(generator, worldsOf('mixed'), visibilities, { onLook: keepIn(mixed) }),
  );
  const [nothingWrong] = (
    await runPrepared(generator, worldsOf(BENIGN_SET), ['V3'], { onLook: keepIn(benign) })
  ).values();
  if (nothingWrong) tallies.set('benign', nothingWrong);
  return { generator, tallies, mixed, benign };
}

function judgedAgain(kept: readonly Kept[], fitted: Fitted): Tally {
  const tally = emptyTally();
  for (const { world, judged } of kept) {
    const findings = recalibrated(judged.findings, fitted);
    addWorld(tally, world, { ...judged, prices: pricesOf(world), findings }, 'V3');
  }
  return tally;
}
