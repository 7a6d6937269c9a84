import { existsSync } from 'node:fs';
import type { Logger } from 'pino';
import { countSealedByKey } from '../../db/access/sealedSecrets.js';
import type { Database } from '../../db/client.js';
import type { RetentionLimits } from '../../domain/installation/retention.js';
import type { Config } from '../../platform/config.js';
import { ensureSecretKeyFile, secretKeyFile } from '../../platform/embedded/secretKeyFile.js';
import { missingKeySentence, refuseMissingSecretKey, SecretKeys } from '../../platform/secretKeys.js';
import { StartError } from '../../platform/startError.js';
import type { DatabaseUrls } from '../service/servers.js';

/**
 * The database of a process that starts none.
 * @throws StartError when none is set.
 */
export function requireDatabase(config: Config): DatabaseUrls {
  const { databaseUrl: url, databaseDirectUrl: directUrl } = config;
  if (url !== undefined && directUrl !== undefined) return { url, directUrl };
  throw new StartError(
    'DATABASE_URL is missing: this program starts no Postgres of its own; npm start does.',
  );
}

/**
 * Temporal's address for a process that starts none.
 * @throws StartError when none is set.
 */
export function requireEngine(config: Config): string {
  if (config.temporalAddress !== undefined) return config.temporalAddress;
  throw new StartError(
    'TEMPORAL_ADDRESS is missing: this program starts no Temporal of its own; npm start does.',
  );
}

/** Retention limits by kind of data. */
export function retentionOf(config: Config): RetentionLimits {
  return {
    eventDays: config.eventRetentionDays,
    payloadDays: config.payloadRetentionDays,
    auditDays: config.auditRetentionDays,
  };
}

/**
 * The keys of a process with a configured database.
 * @throws StartError when none is set.
 */
export function requireSecretKeys(config: Config): SecretKeys {
  if (config.secretKeyFile !== undefined) return SecretKeys.fromFile(config.secretKeyFile);
  return config.secretKey === undefined ? refuseMissingSecretKey() : SecretKeys.of(config.secretKey);
}

/**
 * The keys of a start with its files in `folder`; undefined: it would create the first one.
 * @throws StartError when they are required and not set, or cannot be read.
 */
export function findSecretKeys(config: Config, folder = config.dataDir): SecretKeys | undefined {
  if (
    config.databaseUrl !== undefined ||
    config.secretKey !== undefined ||
    config.secretKeyFile !== undefined
  )
    return requireSecretKeys(config);
  const file = secretKeyFile(folder);
  return existsSync(file) ? SecretKeys.fromFile(file) : undefined;
}

/**
 * @throws StartError when a database is configured and no key is: a key file of this machine would be missing
 * elsewhere.
 */
export function checkSecretKey(config: Config): void {
  if (config.databaseUrl !== undefined) requireSecretKeys(config);
}

/**
 * The environment by which a start's children find the keys: empty where they are set, else the key file of the data
 * directory, created at the first start.
 */
export function secretKeyEnvironment(config: Config): { TRUEUP_SECRET_KEY_FILE?: string } {
  if (config.secretKey !== undefined || config.secretKeyFile !== undefined) return {};
  return { TRUEUP_SECRET_KEY_FILE: ensureSecretKeyFile(config.dataDir) };
}

/** The sentence about credentials that no available key decrypts; undefined: there are none. */
export async function findMissingKeySentence(
  database: Database,
  keys: SecretKeys,
): Promise<string | undefined> {
  return missingKeySentence(await countSealedByKey(database), keys);
}

/** Logs that sentence in processes of a cluster, where no start shows it. Never fails. */
export async function warnOfMissingKeys(database: Database, keys: SecretKeys, logger: Logger): Promise<void> {
  if (process.connected) return;
  const sentence = await findMissingKeySentence(database, keys).catch(() => undefined);
  if (sentence !== undefined) logger.error(sentence);
}
