import {
  addMeteredUsage,
  lockSeries,
  type MeteredGrowth,
  type MeteredSource,
  putSeries,
  readMeteredSources,
} from '../../db/events/meteredUsage.js';
import type { OrgDb } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/pgErrors.js';
import type { MeteredPoint } from '../../domain/events/agentMetrics.js';

/**
 * Adds the growth that data points report to the sums of their hours. A repeated point adds nothing, in whatever order
 * points arrive: a series only grows.
 */
export async function meterPoints(
  orgDb: OrgDb,
  projectId: string | null,
  points: readonly MeteredPoint[],
): Promise<void> {
  const latest = latestOf(points);
  if (latest.length === 0) return;
  await repeatOnConflict(() =>
    orgDb.transaction(async (inside) => {
      const known = await lockSeries(inside, latest);
      const grown = latest.filter(({ seriesId, amount }) => amount > (known.get(seriesId) ?? 0n));
      const values = new Map(known);
      for (const { seriesId, amount } of grown) values.set(seriesId, amount);
      // Also without growth, so that a pausing series is not taken for an old one.
      await putSeries(
        inside,
        [...values].map(([seriesId, amount]) => ({ seriesId, amount })),
      );
      await addMeteredUsage(inside, projectId, growthsOf(grown, known));
    }),
  );
}

/** The largest point of each series. */
function latestOf(points: readonly MeteredPoint[]): MeteredPoint[] {
  const latest = new Map<string, MeteredPoint>();
  for (const point of points) {
    const known = latest.get(point.seriesId);
    if (known === undefined || point.amount > known.amount) latest.set(point.seriesId, point);
  }
  return [...latest.values()];
}

function growthsOf(grown: readonly MeteredPoint[], before: ReadonlyMap<string, bigint>): MeteredGrowth[] {
  const sums = new Map<string, MeteredGrowth>();
  for (const point of grown) {
    const { hourMicros, serviceName, metric, measure } = point;
    const key = JSON.stringify([String(hourMicros), serviceName, metric, measure]);
    const amount = point.amount - (before.get(point.seriesId) ?? 0n) + (sums.get(key)?.amount ?? 0n);
    sums.set(key, { hourMicros, serviceName, metric, measure, amount });
  }
  return [...sums.values()];
}

/** Metrics of the window with the calls of their services. */
export function listMeteredSources(orgDb: OrgDb, sinceMicros: bigint): Promise<MeteredSource[]> {
  return orgDb.transaction((inside) => readMeteredSources(inside, sinceMicros), 'repeatable read');
}
