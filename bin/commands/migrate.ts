import { Command } from 'commander';
import { createLogger } from '../../platform/logger.js';
import { prepareDatabase } from '../service/prepareDatabase.js';
import type { Terminal } from '../terminal/terminal.js';
import { requireDatabase } from '../wiring/requirements.js';

/**
 * Updates the database that DATABASE_URL names: schema, prices, and at the first run the organization with its admin
 * key. Run it before a new version's processes; `npm start` includes it.
 */
export function command(terminal: Terminal): Command {
  return new Command('migrate').action(async () => {
    const config = terminal.readConfig();
    const logger = createLogger({ name: 'migrate', level: config.logLevel ?? 'info' });
    const { url, directUrl } = requireDatabase(config);
    const first = await prepareDatabase(config, url, directUrl);
    if (first)
      logger.info({ adminKey: first.adminKey, file: first.file }, 'first start: admin key, shown once');
    logger.info('the database is up to date');
  });
}
