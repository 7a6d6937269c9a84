import { listPendingMigrations } from '../../db/migrate.js';
import { StartError } from '../../platform/startError.js';
import { explainDatabaseError, requireDirect } from '../service/firstStart.js';

/**
 * A process of another version than the schema would write what nobody reads. `remedy` is the advice where the schema is
 * behind.
 * @throws StartError when the schema is behind, a pooler stands before the database, or it cannot be asked.
 */
export async function requireCurrentSchema(
  directUrl: string,
  remedy = 'run ./trueup migrate',
): Promise<void> {
  const pending = await requireDirect(directUrl)
    .then(() => listPendingMigrations(directUrl))
    .catch((error: unknown) => {
      throw explainDatabaseError(error, directUrl);
    });
  if (pending.length === 0) return;
  throw new StartError(`The database lacks ${pending.length} migrations (${pending.join(', ')}): ${remedy}.`);
}
