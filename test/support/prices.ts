import type { Database } from '../../db/client.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';

/** The prices of a test database, whose clock stands still. */
export function openTestPrices(database: Database): Promise<PriceBookHolder> {
  return PriceBookHolder.open(database, { nowMs: () => 0, onFailure: () => undefined });
}
