/**
 * The days of the faults, as offsets from the demo's last day. No two faults share a day of one model, and none is
 * on the last days, which a provider may still restate.
 */
export interface Days {
  first: number;
  last: number;
}

const days = (first: number, last = first): Days => ({ first, last });

export const SCHEDULE = {
  stalePrice: days(-64, -56),
  restated: days(-50),
  doubled: days(-47),
  cacheAtFullRate: days(-43, -40),
  runawayLoop: days(-36),
  contractForgotten: days(-33, -29),
  unlabelled: days(-30, 0),
  batchForgotten: days(-26, -21),
  credit: days(-20),
  strayKey: days(-19, -14),
  staging: days(-12),
  missingWindow: days(-9),
  secrets: days(-6, -5),
  preview: days(-4),
} as const;

/** Hours of the day, half-open, in which no OpenAI call was reported. */
export const MISSING_HOURS = { from: 9, to: 14 } as const;

export function covers({ first, last }: Days, offset: number): boolean {
  return offset >= first && offset <= last;
}

/**
 * Whether a model's day has a planted fault. Such days count as working days, so that a fault's dollars do not
 * depend on the day on which the demo is made.
 */
export function isFaultDay(model: string, offset: number): boolean {
  const isOpenai = model.startsWith('gpt-');
  const own: Days[] = [];
  if (isOpenai) own.push(SCHEDULE.restated, SCHEDULE.doubled, SCHEDULE.missingWindow);
  else own.push(SCHEDULE.contractForgotten);
  if (model === 'gpt-5.6-terra') own.push(SCHEDULE.stalePrice);
  if (model === 'gpt-6-sol') own.push(SCHEDULE.cacheAtFullRate, SCHEDULE.staging);
  if (model === 'claude-haiku-4-5-20251001') own.push(SCHEDULE.batchForgotten);
  return own.some((one) => covers(one, offset));
}
