import type { Logger } from 'pino';
import type { BillingFileReader } from '../adapters/billing/file.js';
import type { Database } from '../db/client.js';
import type { Prices } from '../db/priceBookHolder.js';

/** What the effects need of the process; made in bin/. */
export interface ActivityDeps {
  database: Database;
  prices: Prices;
  /** Reads bills: adapters/billing/file.ts. */
  readBillingFile: BillingFileReader;
  /** The time now, microseconds since 1970. */
  nowMicros(): bigint;
  logger: Logger;
}
