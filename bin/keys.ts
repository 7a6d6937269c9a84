import { OrgDb } from '../db/orgDb.js';
import { insertKey } from '../db/queries/keys.js';
import { ROLES, type Role } from '../domain/access/scopes.js';
import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { misused, readCommandLine } from './startup/commandLine.js';
import { describeKey, makeKey } from './startup/keys.js';
import { chooseOrganization } from './startup/organization.js';
import { withToolDatabase } from './startup/toolDatabase.js';

const USAGE = `Usage: npm run key:create -- --role ${ROLES.join('|')} --name NAME [--org org_…]
       npm run key:create -- --offline      prints a key for INIT_ADMIN_KEY, stored nowhere`;

/** Creates a key and prints it, once: only its digest is stored. */
await runMain(async () => {
  const { role, name, org, offline } = readArguments();
  const key = makeKey();
  if (!offline) {
    if (!isRole(role))
      throw misused(`--role is ${role ?? 'missing'}: give one of ${ROLES.join(', ')}.`, USAGE);
    if (!name || name.length > 256) throw misused('--name is missing: give 1 to 256 characters.', USAGE);
    const stored = describeKey(key, name, role);
    if (!stored) throw new Error('a new key is not in the key format');
    await withToolDatabase(loadConfig(), async (database) => {
      await insertKey(new OrgDb(database, await chooseOrganization(database, org)), stored);
    });
  }
  process.stdout.write(`${key}\n`);
});

function readArguments() {
  return readCommandLine(USAGE, {
    options: {
      role: { type: 'string' },
      name: { type: 'string' },
      org: { type: 'string' },
      offline: { type: 'boolean', default: false },
    },
    args: process.argv.slice(2).filter((argument, index) => !(index === 0 && argument === 'create')),
  }).values;
}

function isRole(role: string | undefined): role is Role {
  return ROLES.some((known) => known === role);
}
