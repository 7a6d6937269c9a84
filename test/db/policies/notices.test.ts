import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listSealedOtherwise } from '../../../db/access/sealedSecrets.js';
import {
  findBillingConnection,
  insertBillingConnection,
  updateBillingConnection,
} from '../../../db/billing/billingConnections.js';
import { insertOrganization } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import {
  listAlerts,
  recordAcknowledgement,
  recordNotice,
  type StoredAlert,
} from '../../../db/policies/alerts.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros } from '../../../domain/period.js';
import type { Notice } from '../../../domain/policies/alert.js';
import { forgetSealed, recordSyncOutcome } from '../../../usecases/billing/connectionTurns.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { propertyRuns } from '../../support/propertyRuns.js';

const SEED = testSeed();
const RUNS = propertyRuns(4);

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

async function anOrganization(): Promise<OrgDb> {
  const orgId = randomUUID();
  await insertOrganization(test.database, { id: orgId, name: 'noticed' });
  return new OrgDb(test.database, orgId);
}

/** A receiver of these types of messages; '{}' means all. */
const subscribe = (orgDb: OrgDb, types: string) =>
  orgDb.run(
    `insert into webhook_endpoints (org_id, id, url, description, event_types, status, created_by)
     values ($1, gen_random_uuid(), 'https://example.com/', '', $2, 'active', 'test')`,
    [orgDb.orgId, types],
  );

const bodiesOf = async ({ orgId }: OrgDb): Promise<unknown[]> =>
  (
    await test.superuser.query<{ id: string; body: string }>(
      'select id, body from webhook_messages where org_id = $1 order by created_at',
      [orgId],
    )
  ).rows.map(({ id, body }) => ({ id, ...JSON.parse(body) }));

const noticesOf = (orgDb: OrgDb): Promise<StoredAlert[]> =>
  listAlerts(orgDb, { kind: 'notice' }, { limit: 100, offset: 0 });

const aNotice = (key: string): Notice => ({
  code: 'webhook_failing',
  key,
  subject: { type: 'webhook_endpoint', id: 'whk_1' },
  severity: 'low',
  message: 'Messages do not arrive.',
  details: { attempts: 10, types: ['a'], last: null },
  provider: null,
});

describe('a notice', () => {
  it('is sent once for its key, however often and by however many at once; another organization has its own', async () => {
    const [one, two] = [await anOrganization(), await anOrganization()];
    for (const orgDb of [one, two]) {
      const told = await Promise.all(Array.from({ length: 6 }, () => recordNotice(orgDb, aNotice('k:1'))));
      expect(told.filter(Boolean)).toHaveLength(1);
      expect(await recordNotice(orgDb, aNotice('k:1'))).toBeUndefined();
      expect(await recordNotice(orgDb, aNotice('k:2'))).toMatch(/^[0-9a-f-]{36}$/);
      expect(await noticesOf(orgDb)).toHaveLength(2);
    }
  });

  it('carries its own data, and nothing of any call', async () => {
    const orgDb = await anOrganization();
    await recordNotice(orgDb, { ...aNotice('k'), message: 'x'.repeat(5_000), provider: 'openai' });
    expect(await noticesOf(orgDb)).toMatchObject([
      {
        kind: 'notice',
        notice: 'webhook_failing',
        subject: { type: 'webhook_endpoint', id: 'whk_1' },
        severity: 'low',
        status: 'open',
        message: 'x'.repeat(1_000),
        details: { attempts: 10, types: ['a'], last: null },
        provider: 'openai',
        policyType: null,
        policyId: null,
        eventId: null,
        eventTimestampMicros: null,
        model: null,
        projectId: null,
        costPico: null,
      },
    ]);
  });

  it('is sent to receivers that want alerts, by ids and kinds alone, with its own id as the message’s', async () => {
    const [wanted, unwanted, nobody] = [
      await anOrganization(),
      await anOrganization(),
      await anOrganization(),
    ];
    await subscribe(wanted, '{alert.created}');
    await subscribe(unwanted, '{gap_run.completed}');
    for (const orgDb of [wanted, unwanted, nobody]) {
      await recordNotice(orgDb, aNotice('k'));
      await recordNotice(orgDb, aNotice('k'));
    }
    const [alert] = (await noticesOf(wanted)) as [StoredAlert];
    const createdAt = isoFromMicros(alert.createdAtMicros);
    expect(await bodiesOf(wanted)).toEqual([
      {
        id: alert.id,
        type: 'alert.created',
        timestamp: createdAt,
        data: {
          alert_id: publicId('alr', alert.id),
          kind: 'notice',
          policy_type: null,
          policy_id: null,
          notice: 'webhook_failing',
          event_id: null,
          subject_type: 'webhook_endpoint',
          subject_id: 'whk_1',
          severity: 'low',
          created_at: createdAt,
        },
      },
    ]);
    expect([await bodiesOf(unwanted), await bodiesOf(nobody)]).toEqual([[], []]);
  });

  it('is not sent when its cause was rolled back', async () => {
    const orgDb = await anOrganization();
    await subscribe(orgDb, '{}');
    const failed = orgDb.transaction(async (inside) => {
      await recordNotice(inside, aNotice('k'));
      throw new Error('taken back');
    });
    await expect(failed).rejects.toThrow('taken back');
    expect([await noticesOf(orgDb), await bodiesOf(orgDb)]).toEqual([[], []]);
    expect(await recordNotice(orgDb, aNotice('k'))).toBeDefined();
  });
});

describe(`a billing connection (TEST_SEED=${SEED})`, () => {
  const seal = () => ({ ciphertext: Buffer.alloc(64, 1), keyId: 'k1' });

  async function aConnection(orgDb: OrgDb): Promise<string> {
    const id = randomUUID();
    const account = { accountId: `org-${id}`, scope: '', settings: {}, backfillFrom: '2026-01-01' };
    await insertBillingConnection(
      orgDb,
      { id, provider: 'openai', name: 'Main', ...account },
      randomUUID(),
      seal,
    );
    return id;
  }

  it('causes a notice each time that it breaks, and not again while it stays broken', async () => {
    const step = fc.constantFrom('fails', 'fails', 'goes well', 'is paused', 'is resumed');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const orgDb = await anOrganization();
        const id = await aConnection(orgDb);
        let status = 'connecting';
        let hasSynced = false;
        let turns = 0;
        for (const one of steps) {
          if (one === 'fails' || one === 'goes well') {
            const error = one === 'fails' ? { code: 'credentials_refused', message: 'grant it' } : null;
            await recordSyncOutcome(orgDb, id, { error, revisedOn: null });
            hasSynced ||= error === null;
            if (status === 'paused') continue;
            if (error && status !== 'failing') turns += 1;
            status = error ? 'failing' : 'active';
          } else {
            const found = await findBillingConnection(orgDb, id);
            if (!found) throw new Error('the connection is gone');
            await updateBillingConnection(orgDb, found, { paused: one === 'is paused' });
            if (one === 'is paused') status = 'paused';
            else if (status === 'paused') status = hasSynced ? 'active' : 'connecting';
          }
        }
        expect((await findBillingConnection(orgDb, id))?.status).toBe(status);
        expect(await noticesOf(orgDb)).toHaveLength(turns);
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });

  it('has a notice with its name, the reason and the time since the last bill', async () => {
    const orgDb = await anOrganization();
    const id = await aConnection(orgDb);
    await recordSyncOutcome(orgDb, id, { error: null, revisedOn: null });
    const synced = (await findBillingConnection(orgDb, id))?.lastSyncedAtMicros ?? 0n;
    const error = { code: 'credentials_refused', message: 'openai refuses the key' };
    await recordSyncOutcome(orgDb, id, { error, revisedOn: null });
    expect(await noticesOf(orgDb)).toMatchObject([
      {
        notice: 'connection_broken',
        subject: { type: 'connection', id: publicId('con', id) },
        severity: 'high',
        provider: 'openai',
        message: `The bills of the openai account org-${id} ("Main") cannot be fetched: openai refuses the key`,
        details: { error_code: 'credentials_refused', last_synced_at: isoFromMicros(synced) },
      },
    ]);
  });

  it('whose credentials were given up with their key has a notice, unless it was broken before', async () => {
    const [whole, broken] = [await anOrganization(), await anOrganization()];
    for (const orgDb of [whole, broken]) await aConnection(orgDb);
    const sealed = (await listSealedOtherwise(test.database, 'k2')).filter(({ orgId }) =>
      [whole.orgId, broken.orgId].includes(orgId),
    );
    const error = { code: 'credentials_refused', message: 'grant it' };
    for (const { orgId, subjectId } of sealed)
      if (orgId === broken.orgId) await recordSyncOutcome(broken, subjectId, { error, revisedOn: null });
    for (const one of sealed) for (let time = 0; time < 2; time += 1) await forgetSealed(test.database, one);
    const codes = async (orgDb: OrgDb) => (await noticesOf(orgDb)).map(({ details }) => details.error_code);
    expect([await codes(whole), await codes(broken)]).toEqual([
      ['credentials_missing'],
      ['credentials_refused'],
    ]);
  });

  it('that breaks again after its notice was acknowledged has another notice', async () => {
    const orgDb = await anOrganization();
    const id = await aConnection(orgDb);
    const error = { code: 'provider_unavailable', message: 'it is away' };
    await recordSyncOutcome(orgDb, id, { error, revisedOn: null });
    const [first] = (await noticesOf(orgDb)) as [StoredAlert];
    await recordAcknowledgement(orgDb, first.id, 'key_0000000000');
    await recordSyncOutcome(orgDb, id, { error, revisedOn: null });
    expect(await noticesOf(orgDb)).toHaveLength(1);
    await recordSyncOutcome(orgDb, id, { error: null, revisedOn: null });
    await recordSyncOutcome(orgDb, id, { error, revisedOn: null });
    expect((await noticesOf(orgDb)).map(({ status }) => status)).toEqual(['open', 'acknowledged']);
  });
});
