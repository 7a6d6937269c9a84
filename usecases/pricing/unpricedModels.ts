import type { OrgDb } from '../../db/orgDb.js';
import { readUnpricedModels } from '../../db/pricing/unpriced.js';

/** Models seen in the hours of a window whose calls lack a price, or have an assumed one, in one snapshot. */
export function listUnpricedModels(orgDb: OrgDb, window: { fromMicros: bigint; toMicros: bigint }) {
  return orgDb.transaction((inside) => readUnpricedModels(inside, window), 'repeatable read');
}
