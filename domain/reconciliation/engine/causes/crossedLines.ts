/**
 * Use that a line of the bill holds and the provider's usage report counts under other circumstances
 * (matching/joinTotals.ts). The provider's two reports contradict each other, and the line shows how the use was charged:
 * no call is needed for it.
 */
import type { Circumstances } from '../../audit/dayRates.js';
import type { MeterDay, SeriesDay, Variant } from './cause.js';
import { amountAs, rateVariant } from './predict.js';

type Field = 'region' | 'longContext' | 'serviceTier' | 'isBatch';

/** Cache writes on the line of another lifetime, charged as the line names it. */
export function asLinesLast(day: SeriesDay, name: string): Variant[] {
  const isTouched = ({ meter, mix }: MeterDay) =>
    mix.some(({ tokenClass }) => tokenClass !== undefined && tokenClass !== meter.tokenClass);
  if (!day.meters.some(isTouched)) return [];
  const amountOf = (meter: MeterDay, quantity: bigint) =>
    amountAs(day, meter, quantity, { tokenClass: meter.tokenClass });
  return [rateVariant(day, name, amountOf, isTouched)];
}

/** Charged as the lines name it, against the report; none where no line differs in this field. */
export function asLinesName(day: SeriesDay, name: string, field: Field): Variant[] {
  const isTouched = ({ meter, mix }: MeterDay) =>
    meter.crossed === true && mix.some(({ circumstances }) => circumstances[field] !== meter[field]);
  if (!day.meters.some(isTouched)) return [];
  return [
    rateVariant(
      day,
      name,
      (meter, quantity) =>
        amountAs(day, meter, quantity, { circumstances: (at) => namedOtherwise(at, meter, field) }),
      isTouched,
    ),
  ];
}

function namedOtherwise(at: Circumstances, { meter }: MeterDay, field: Field): Circumstances {
  const named = meter[field];
  return at[field] === named || (named === null && field !== 'region') ? at : { ...at, [field]: named };
}
