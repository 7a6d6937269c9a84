/**
 * That calls which nobody saw were of a cheaper use: a line of the bill that does not tell batch from other calls is then
 * rightly charged less than what was seen of it makes one expect.
 */
import { touchedOf } from './history.js';
import type { JudgedDay, RunOfDays } from './runs.js';

/** Batch and flexible service cost half of the standard one. */
const CHEAPER = 0.5;
const ROUNDING = 1.01;

/** Whether all that a run of lower rates is short of can be so. */
export function isCheaperUse(run: RunOfDays): boolean {
  const { hypothesis } = run.state;
  if (hypothesis?.nature !== 'rate' || hypothesis.blame !== 'provider') return false;
  return run.days.every(({ judged, impactPico }) => impactPico < 0n && canBeUnseen(judged));
}

function canBeUnseen(judged: JudgedDay): boolean {
  let [short, unseen] = [0, 0];
  for (const { of, amount, billed, observed } of touchedOf(judged)) {
    if (of.meter.isBatch !== null || !(billed > 0)) return false;
    const expected = Number(of.expectedPico ?? 0n);
    short += Math.max(0, expected - amount);
    unseen += expected * Math.max(0, 1 - observed / billed);
  }
  return short > 0 && short <= unseen * CHEAPER * ROUNDING;
}
