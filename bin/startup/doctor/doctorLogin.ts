import { listExcessiveRights, loginOf } from '../../../db/login.js';
import type { Config } from '../../../platform/config.js';
import { findEmbeddedUrl } from '../../../platform/embedded/postgresLogins.js';
import type { Inspection } from '../inspect.js';
import type { Finding } from './doctorChecks.js';

/** Whether the login of the API and the worker may do more than they need, so that a fault in them could. */
export async function checkLogin(config: Config, { parts }: Inspection): Promise<Finding> {
  const what = 'login';
  const url = findLoginUrl(config, parts.postgres);
  if (url === undefined) return { what, ok: true, text: 'Postgres does not answer: nothing is known' };
  const { name } = loginOf(url);
  try {
    const rights = await listExcessiveRights(url);
    if (rights.length === 0)
      return { what, ok: true, text: `${name} owns nothing and is bound by row-level security` };
    return {
      what,
      ok: false,
      text: `${name} ${rights.join(', ')}: name a login of its own in DATABASE_URL and the owner in DATABASE_DIRECT_URL (docs/configuration.md)`,
    };
  } catch (error) {
    return {
      what,
      ok: false,
      text: `${name} cannot connect (${(error as Error).message}): start this version once`,
    };
  }
}

function findLoginUrl(config: Config, { status, embedded, address }: Inspection['parts']['postgres']) {
  if (status !== 'up' && status !== 'degraded') return undefined;
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  return embedded && address !== undefined ? findEmbeddedUrl(config.dataDir, address, 'login') : undefined;
}
