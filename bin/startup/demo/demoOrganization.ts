import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findKey, type NewKey } from '../../../db/access/keys.js';
import type { Database } from '../../../db/client.js';
import { newUuid } from '../../../db/newUuid.js';
import { OrgDb } from '../../../db/orgDb.js';
import { parseKey } from '../../../domain/access/keyFormat.js';
import { ORGANIZATION_NAME } from '../../../lab/demo/company.js';
import { writePrivateFile } from '../../../platform/embedded/dataDir.js';
import {
  type DemoOrganization,
  findDemoOrganization,
  insertDemoKey,
  insertDemoOrganization,
  removeDemoOrganization,
} from '../../../usecases/installation/demoOrganization.js';
import { describeKey, makeKey } from '../keys.js';

const DAY_MS = 86_400_000;
const KEY_NAME = 'demo admin key';

export interface OpenedDemo {
  organization: DemoOrganization;
  adminKey: string;
}

/** Where the demo's admin key is kept, mode 600. */
export function demoKeyFile(dataDir: string): string {
  return join(dataDir, 'demo-key');
}

/**
 * The demo's organization with an admin key, made where there is none. A demo ends yesterday when it is made, and keeps
 * its days from then on, so that loading it again brings the same calls and bills.
 */
export async function openDemo(database: Database, dataDir: string, nowMs: number): Promise<OpenedDemo> {
  const file = demoKeyFile(dataDir);
  const known = await findDemoOrganization(database);
  const saved = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  if (known && saved !== undefined && (await opens(database, saved, known.id)))
    return { organization: known, adminKey: saved };
  const adminKey = makeKey();
  const key = describeKey(adminKey, KEY_NAME, 'admin') as NewKey;
  writePrivateFile(file, `${adminKey}\n`);
  if (known) {
    await insertDemoKey(new OrgDb(database, known.id), key);
    return { organization: known, adminKey };
  }
  const organization: DemoOrganization = {
    id: newUuid(BigInt(nowMs) * 1_000n),
    name: ORGANIZATION_NAME,
    endDay: new Date(nowMs - DAY_MS).toISOString().slice(0, 10),
  };
  // Another process may have made it in this very moment: it is then opened like any that is there.
  if (!(await insertDemoOrganization(database, organization, key))) return openDemo(database, dataDir, nowMs);
  return { organization, adminKey };
}

async function opens(database: Database, adminKey: string, orgId: string): Promise<boolean> {
  const parsed = parseKey(adminKey);
  const stored = parsed && (await findKey(database, parsed.keyId));
  return stored?.orgId === orgId && stored.revokedAtMicros === null;
}

/** Removes the demo and its key file; says how many rows it had, or undefined when there was no demo. */
export async function resetDemo(database: Database, dataDir: string): Promise<number | undefined> {
  const known = await findDemoOrganization(database);
  const removed = known && (await removeDemoOrganization(database, known.id));
  rmSync(demoKeyFile(dataDir), { force: true });
  return removed;
}
