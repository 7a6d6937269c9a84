import type { RetentionLimits } from '../../domain/installation/retention.js';
import type { Config } from '../../platform/config.js';
import { StartError } from '../../platform/startError.js';
import type { DatabaseUrls } from './servers.js';

/**
 * The database of a process that starts none itself.
 * @throws StartError when none is named.
 */
export function requireDatabase(config: Config): DatabaseUrls {
  const { databaseUrl: url, databaseDirectUrl: directUrl } = config;
  if (url !== undefined && directUrl !== undefined) return { url, directUrl };
  throw new StartError(
    'DATABASE_URL is missing: this program starts no Postgres of its own; npm start does.',
  );
}

/**
 * The workflow engine of a process that starts none itself.
 * @throws StartError when none is named.
 */
export function requireEngine(config: Config): string {
  if (config.temporalAddress !== undefined) return config.temporalAddress;
  throw new StartError(
    'TEMPORAL_ADDRESS is missing: this program starts no Temporal of its own; npm start does.',
  );
}

/** How long what is kept. */
export function retentionOf(config: Config): RetentionLimits {
  return {
    eventDays: config.eventRetentionDays,
    payloadDays: config.payloadRetentionDays,
    auditDays: config.auditRetentionDays,
  };
}
