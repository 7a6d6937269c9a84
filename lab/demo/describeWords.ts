/** The shared formatting of docs/demo.md. */
import type { PlantedGap } from './answerKey.js';

const PICO_DIGITS = 12;

/** Pico-dollars as an exact decimal with at least two digits after the point. */
export function exact(pico: bigint): string {
  const text = (pico < 0n ? -pico : pico).toString().padStart(PICO_DIGITS + 1, '0');
  const fraction = text.slice(-PICO_DIGITS).replace(/0+$/, '').padEnd(2, '0');
  const whole = text.slice(0, -PICO_DIGITS).replace(/\B(?=(\d{3})+$)/g, ',');
  return `${pico < 0n ? '−' : ''}$${whole}.${fraction}`;
}

/** A planted fault in the document. */
export interface Fault {
  title: string;
  days: { first: number; last: number };
  amount: bigint;
  what: string;
  shows: string;
  curl: string;
  /** Its kind in the answer key, if the engine explains it. */
  planted?: PlantedGap['kind'];
}
