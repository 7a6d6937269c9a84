import { randomBytes, randomUUID } from 'node:crypto';
import { insertKey } from '../../../db/access/keys.js';
import type { Database } from '../../../db/client.js';
import { insertOrganization } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import {
  base62FromBytes,
  composeKey,
  KEY_ID_CHARS,
  KEY_SECRET_CHARS,
} from '../../../domain/access/keyRules.js';
import { hashSecret } from '../../../platform/secretBox.js';

export interface BenchOrganization {
  orgId: string;
  /** `key_…` */
  keyId: string;
  /** The key as a client sends it; its role is admin, so that it can also read. */
  key: string;
}

/** Creates organizations with one key each. */
export async function makeOrganizations(database: Database, count: number): Promise<BenchOrganization[]> {
  const organizations: BenchOrganization[] = [];
  for (let index = 0; index < count; index += 1) {
    const orgId = randomUUID();
    await insertOrganization(database, { id: orgId, name: `Bench ${index + 1}` });
    const idChars = base62(KEY_ID_CHARS);
    const secret = base62(KEY_SECRET_CHARS);
    const keyId = `key_${idChars}`;
    await insertKey(new OrgDb(database, orgId), {
      id: keyId,
      name: 'bench',
      role: 'admin',
      secretHash: hashSecret(secret),
      last4: secret.slice(-4),
      createdBy: 'bench',
    });
    organizations.push({ orgId, keyId, key: composeKey(idChars, secret) });
  }
  return organizations;
}

/** Uses spare bytes, since bytes that would bias the digits are skipped. */
function base62(characters: number): string {
  return base62FromBytes(randomBytes(characters * 2), characters);
}
