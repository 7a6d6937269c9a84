/** Generates, judges and counts worlds for bench:reconciliation and for the targets of the test suite. */

import { reconcileDays } from '../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import type { GeneratedVisibility, GeneratedWorld } from '../../generators/world.js';
import { pricesOf } from './books.js';
import { type Judged, judgeInputs, judgeWorld, type Reconcile, type WorldFacts } from './judge.js';
import type { Matched } from './matchTruth.js';
import { preparedWorlds } from './preparedWorlds.js';
import { addWorld, emptyTally, type Tally } from './tally.js';
import type { GeneratorName, WorldOptions } from './worlds.js';

export const VISIBILITIES: readonly GeneratedVisibility[] = ['V3', 'V2', 'V1', 'V0'];

/** The engine as a gap run composes it, with the default weights. */
export const reconcile: Reconcile = ({ provider, days, suspects }, prices) =>
  reconcileDays(provider, days, prices, DEFAULT_WEIGHTS, suspects);

/** One world at one visibility, for a closer look. */
export interface Look {
  world: WorldFacts;
  visibility: GeneratedVisibility;
  judged: Judged;
  matched: Matched;
}

/**
 * Judges each world at each visibility and sums the results. Worlds are generated one by one, so that only one is
 * in memory.
 */
export async function runBenchmark(
  worlds: Iterable<GeneratedWorld>,
  visibilities: readonly GeneratedVisibility[],
  options: { reconcile?: Reconcile; onLook?: (look: Look) => void } = {},
): Promise<Map<GeneratedVisibility, Tally>> {
  const tallies = new Map(visibilities.map((visibility) => [visibility, emptyTally()]));
  for (const world of worlds)
    for (const [visibility, tally] of tallies) {
      const judged = await judgeWorld(world, world.bills[visibility], options.reconcile ?? reconcile);
      const matched = addWorld(tally, world, judged, visibility);
      options.onLook?.({ world, visibility, judged, matched });
    }
  return tallies;
}

/** The same for worlds by their options, which are prepared once and kept (preparedWorlds.ts). */
export async function runPrepared(
  generator: GeneratorName,
  worlds: readonly WorldOptions[],
  visibilities: readonly GeneratedVisibility[],
  options: { reconcile?: Reconcile; onLook?: (look: Look) => void } = {},
): Promise<Map<GeneratedVisibility, Tally>> {
  const tallies = new Map(visibilities.map((visibility) => [visibility, emptyTally()]));
  for (const one of worlds)
    for await (const { world, inputs, visibility } of preparedWorlds(generator, one, visibilities)) {
      const judged = judgeInputs(inputs, pricesOf(world), options.reconcile ?? reconcile);
      const matched = addWorld(tallies.get(visibility) as Tally, world, judged, visibility);
      options.onLook?.({ world, visibility, judged, matched });
    }
  return tallies;
}
