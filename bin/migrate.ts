import { loadConfig } from '../platform/config.js';
import { createLogger } from '../platform/logger.js';
import { runMain } from '../platform/processMain.js';
import { readCommandLine } from './startup/commandLine.js';
import { prepareDatabase } from './startup/firstStart.js';
import { requireDatabase } from './startup/settings.js';

/**
 * Brings the database that DATABASE_URL names up to date: schema, prices, and at the first time the organization with
 * its admin key. Run it before a new version's processes; `npm start` does the same by itself.
 */
await runMain(async () => {
  readCommandLine('Usage: npm run db:migrate', {});
  const config = loadConfig();
  const logger = createLogger({ name: 'migrate', level: config.logLevel ?? 'info' });
  const { url, directUrl } = requireDatabase(config);
  const first = await prepareDatabase(config, url, directUrl);
  if (first)
    logger.info({ adminKey: first.adminKey, file: first.file }, 'first start: admin key, shown once');
  logger.info('the database is up to date');
});
