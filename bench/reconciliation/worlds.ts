/** The generators by name. */
import { makeSecondWorld } from '../generators/second/company.js';
import type { GeneratedWorld } from '../generators/world.js';

export interface WorldOptions {
  seed: number;
  set: string;
  size: number;
}

export const GENERATORS = {
  second: makeSecondWorld,
} as const satisfies Record<string, (options: WorldOptions) => GeneratedWorld>;

export type GeneratorName = keyof typeof GENERATORS;

export function isGeneratorName(name: string): name is GeneratorName {
  return name in GENERATORS;
}
