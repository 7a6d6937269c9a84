import type { Pico } from '../money.js';

/** Stages of the search for calls that an earlier version counted more than once (docs/decisions/0001). */
export const REPAIR_STAGES = ['search', 'merge', 'done'] as const;
export type RepairStage = (typeof REPAIR_STAGES)[number];

/** What a repair changed. */
export interface CallRepair {
  /** Calls that were counted more than once. */
  calls: number;
  /** Their events that count no more. */
  events: number;
  /** What those events had counted for. */
  costPico: Pico;
}
