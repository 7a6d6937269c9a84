import { listRejections, type SourceHealth } from '../../db/events/ingestHealth.js';
import type { OrgDb } from '../../db/orgDb.js';
import { compare } from '../../domain/compare.js';
import { SCOPE_NOT_COUNTED } from '../../domain/events/clients.js';
import { sumSources } from '../usage/usage.js';

/**
 * Sources of the window, the busiest first; one whose every item was refused is among them. With a handle of a project:
 * where its calls come from, and what its workspace's keys sent that was refused.
 */
export async function listSourceHealth(orgDb: OrgDb, sinceMicros: bigint): Promise<SourceHealth[]> {
  const sources = await sumSources(orgDb, sinceMicros);
  const byKey = new Map(sources.map((source) => [keyOf(source), source]));
  for (const rejected of await listRejections(orgDb, sinceMicros)) {
    const source = byKey.get(keyOf(rejected)) ?? emptySource(rejected);
    byKey.set(keyOf(rejected), source);
    if (rejected.reason === SCOPE_NOT_COUNTED) source.notCounted = rejected.count;
    else source.rejected[rejected.reason] = rejected.count;
  }
  return [...byKey.values()].sort((a, b) => b.calls - a.calls || compare(a.serviceName, b.serviceName));
}

type Source = Pick<SourceHealth, 'serviceName' | 'scopeName'>;

const keyOf = ({ serviceName, scopeName }: Source) => `${serviceName}\u001f${scopeName}`;

function emptySource({ serviceName, scopeName }: Source): SourceHealth {
  const counts = { calls: 0, unmetered: 0, unpriced: 0, priceGaps: 0, unknownBiller: 0, notCounted: 0 };
  return { serviceName, scopeName, lastSeenMicros: null, ...counts, rejected: {} };
}
