import type { Config } from '../../../platform/config.js';
import { secretKeyFile } from '../../../platform/embedded/secretKeyFile.js';
import { embeddedDatabaseUrl } from '../../../platform/runtimeFile.js';
import { StartError } from '../../../platform/startError.js';
import { openToolDatabase } from '../firstStart.js';
import type { Inspection } from '../inspect.js';
import { findMissingKeySentence, findSecretKeys } from '../secretKeys.js';
import type { Finding } from './doctorChecks.js';

/** Whether the key that seals the providers' credentials is at hand, and opens what is stored. */
export async function checkSecretKey(config: Config, inspection: Inspection): Promise<Finding> {
  const what = 'secret key';
  try {
    const keys = findSecretKeys(config);
    const file = config.secretKeyFile ?? secretKeyFile(config.dataDir);
    if (!keys) return { what, ok: true, text: `${file} is not there: the first npm start makes it` };
    const url = findDatabaseUrl(config, inspection);
    const problem = url === undefined ? undefined : await findProblem(url, keys);
    if (problem !== undefined) return { what, ok: false, text: problem };
    return { what, ok: true, text: config.secretKey === undefined ? file : 'in TRUEUP_SECRET_KEY' };
  } catch (error) {
    if (error instanceof StartError) return { what, ok: false, text: error.message };
    throw error;
  }
}

/** The database, where it answers. */
export function findDatabaseUrl(config: Config, { parts }: Inspection): string | undefined {
  const { status, embedded, address } = parts.postgres;
  if (status !== 'up') return undefined;
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  return embedded && address !== undefined ? embeddedDatabaseUrl(config.dataDir, address) : undefined;
}

async function findProblem(
  url: string,
  keys: Parameters<typeof findMissingKeySentence>[1],
): Promise<string | undefined> {
  const database = openToolDatabase(url);
  try {
    // A database that no start has prepared holds no credentials.
    return await findMissingKeySentence(database, keys).catch(() => undefined);
  } finally {
    await database.close();
  }
}
