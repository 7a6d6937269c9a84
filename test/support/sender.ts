import { randomUUID } from 'node:crypto';
import { insertOrganization } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { IngestWriter } from '../../usecases/events/ingestWriter.js';
import type { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { aBatch } from './aCall.js';
import type { TestDatabase } from './database.js';

const CONNECTIONS = 4;

/** A new organization with a writer of its own, and a function that stores calls by it. */
export async function aSender({ database }: TestDatabase, prices: PriceBookHolder) {
  const orgId = randomUUID();
  await insertOrganization(database, { id: orgId, name: 'sender' });
  const writer = new IngestWriter(database, prices, CONNECTIONS, {
    queueRows: () => undefined,
    batchRows: () => undefined,
  });
  const send = (calls: readonly CallRecord[], links: SpanLink[] = []) => {
    const batch = { ...aBatch([...calls]), links };
    return writer.submit({ orgId, keyId: `key_${'0'.repeat(10)}`, defaultProjectId: null, batch });
  };
  return { orgId, orgDb: new OrgDb(database, orgId), send };
}
