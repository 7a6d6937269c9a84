import type { Database } from '../../db/client.js';
import { listOrganizations } from '../../db/installation/organizations.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { StartError } from '../../platform/startError.js';

/**
 * The organization that a command works for: the one that `--org` gives by id or by name, else the only one beside the demo.
 * @throws StartError listing them when there is a choice.
 */
export async function chooseOrganization(database: Database, wanted: string | undefined): Promise<string> {
  const organizations = await listOrganizations(database);
  const id = wanted === undefined ? undefined : findUuid('org', wanted);
  const own = organizations.filter((organization) => !organization.isDemo);
  const named = organizations.filter(({ id: uuid, name }) => uuid === id || name === wanted);
  const chosen = wanted === undefined ? own[0] : named.length === 1 ? named[0] : undefined;
  if (chosen && (wanted !== undefined || own.length === 1)) return chosen.id;
  if (organizations.length === 0) throw new StartError('There is no organization yet: run npm start once.');
  const list = organizations.map(({ id: uuid, name }) => `  ${publicId('org', uuid)}  ${name}`).join('\n');
  const why =
    wanted === undefined || named.length > 1 ? 'Which organization?' : `There is no organization ${wanted}.`;
  throw new StartError(`${why} Give --org with one of these:\n${list}`);
}
