import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from './projectRoot.js';

/**
 * Limits of the HTTP server. A body may take long, since bills of over a gigabyte are uploaded (api/pipeline/body.ts
 * has further limits for buffered bodies); headers may not.
 */
export const HTTP_LIMITS = {
  headersTimeout: 15_000,
  requestTimeout: 900_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
  /** Milliseconds between two timeout checks: Node's default of half a minute would double the time for headers. */
  connectionsCheckingInterval: 5_000,
} as const;

/** Most connections at once; further ones are closed immediately. */
export const CONNECTIONS_MAX = 4_096;

/** `max-age` of Strict-Transport-Security: the year that ASVS 5 3.4.1 requires. */
export const HSTS_MAX_AGE_SECONDS = 31_536_000;

export const TRUEUP_VERSION: string = (
  JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string }
).version;
