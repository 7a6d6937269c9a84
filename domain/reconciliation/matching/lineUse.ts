/** The use that a line of the bill takes, by the circumstances that it names. */
import type { UsageCell } from './cells.js';
import type { Meter } from './meters.js';

/** A bill without a separate batch line includes other tiers in its plain line, unless it has a line for them. */
function takesTier(meter: Meter, others: readonly Meter[], tier: string): boolean {
  if (meter.serviceTier === tier) return true;
  if (meter.serviceTier !== 'standard' || meter.isBatch !== null) return false;
  return !others.some((other) => other.serviceTier === tier);
}

/** A cost report that is not grouped by place includes every place in its lines. */
function takesRegion(meter: Meter, others: readonly Meter[], region: string | null): boolean {
  if (meter.region === region) return true;
  return meter.region === null && !others.some((other) => other.region === region);
}

/** The circumstances of calls that logs contain. */
export interface CallCircumstances {
  serviceTier: string;
  isBatch: boolean;
  longContext: boolean;
}

/** Whether calls of these circumstances are charged on the meter. */
export function takesCalls(meter: Meter, others: readonly Meter[], calls: CallCircumstances): boolean {
  return (
    takesTier(meter, others, calls.serviceTier) &&
    agrees(meter.isBatch, calls.isBatch) &&
    agrees(meter.longContext, calls.longContext)
  );
}

const agrees = <T>(a: T | null, b: T | null): boolean => a === null || b === null || a === b;

/** Whether the line takes this use of the report. */
export function isUsageOf(
  meter: Meter,
  others: readonly Meter[],
  cell: Pick<UsageCell, 'tokenClass' | 'serviceTier' | 'isBatch' | 'longContext' | 'region'>,
): boolean {
  return (
    cell.tokenClass === meter.tokenClass &&
    takesTier(meter, others, cell.serviceTier) &&
    agrees(meter.isBatch, cell.isBatch) &&
    agrees(meter.longContext, cell.longContext) &&
    takesRegion(meter, others, cell.region)
  );
}
