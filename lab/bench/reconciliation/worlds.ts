/** The generators by name. */
import { FIRST_SIZE, generateFirst } from '../../generators/first/generateFirst.js';
import { type FirstSet, SETS } from '../../generators/first/sets.js';
import { makeSecondWorld } from '../../generators/second/company.js';
import { makeThirdWorld } from '../../generators/third/makeThird.js';
import type { GeneratedWorld } from '../../generators/world.js';

export interface WorldOptions {
  seed: number;
  set: string;
  /** Factor on the number of series. */
  size: number;
}

/** The set of worlds without mistakes of a provider. */
export const BENIGN_SET = 'benign_only';

/** Sets of the first generator that are each difficult in one way. */
export const ADVERSARIAL_SETS: readonly string[] = SETS.filter((set) => set !== 'mixed');

function makeFirstWorld({ seed, set, size }: WorldOptions): GeneratedWorld {
  if (!(SETS as readonly string[]).includes(set))
    throw new Error(`the first generator has the sets ${SETS.join(', ')}, not ${set}`);
  const series = Math.max(1, Math.round(FIRST_SIZE.series * size));
  return generateFirst({ seed, set: set as FirstSet, size: { ...FIRST_SIZE, series } });
}

export const GENERATORS = {
  first: makeFirstWorld,
  second: makeSecondWorld,
  third: makeThirdWorld,
} as const satisfies Record<string, (options: WorldOptions) => GeneratedWorld>;

export type GeneratorName = keyof typeof GENERATORS;

export function isGeneratorName(name: string): name is GeneratorName {
  return name in GENERATORS;
}
