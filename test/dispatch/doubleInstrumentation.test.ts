import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listDoublyReportedOrganizations } from '../../db/events/ingestHealth.js';
import { updateSettings } from '../../db/installation/organizations.js';
import { listAlerts, recordAcknowledgement, type StoredAlert } from '../../db/policies/alerts.js';
import { DEFAULT_SETTINGS } from '../../domain/installation/settings.js';
import { MICROS_PER_DAY, microsFromDate } from '../../domain/period.js';
import { LOOK_BACK_MICROS, TOLD_AGAIN_AFTER_MICROS } from '../../domain/policies/alert.js';
import { createLogger } from '../../platform/logger.js';
import { reportDoubleInstrumentation } from '../../usecases/events/ingestHealth.js';
import { anAttribute, aSpan } from '../api/support/requests.js';
import { foldAll } from '../db/support/compareTotals.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';

const logger = createLogger({ name: 'test', level: 'silent' });

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api.close());

const now = () => microsFromDate(new Date());

/** Six calls of a service, each reported by these scopes a millisecond after one another. */
async function tell(
  org: TestOrganization,
  service: string,
  scopes: readonly string[],
  hoursAgo = 1,
): Promise<void> {
  const start = (now() - BigInt(hoursAgo) * 3_600_000_000n) * 1_000n;
  const body = {
    // Nothing names the process, and the scopes are apart in the request: their reports are not paired.
    resourceSpans: scopes.map((name, place) => ({
      resource: { attributes: service === '' ? [] : [anAttribute('service.name', service)] },
      scopeSpans: [
        {
          scope: { name },
          spans: Array.from({ length: 6 }, (_, index) => {
            const at = start + BigInt(index) * 60_000_000_000n + BigInt(place) * 1_000_000n;
            return aSpan({}, { startTimeUnixNano: `${at}`, endTimeUnixNano: `${at + 1_000n}` });
          }),
        },
      ],
    })),
  };
  expect((await api.post('/api/v1/ingest/trace', body, org.ingestKey)).status).toBe(202);
  await foldAll(api.database.superuser, org.orgDb);
}

const look = (atMicros = now()) =>
  reportDoubleInstrumentation({ database: api.database.database, logger }, atMicros);
const noticesOf = (org: TestOrganization): Promise<StoredAlert[]> =>
  listAlerts(org.orgDb, { kind: 'notice' }, { limit: 100, offset: 0 });

/**
 * Moves the notices a week into the past, and a second, because `look` reads a clock of milliseconds, which may be behind
 * the database's time of the acknowledgement.
 */
async function letWeekPass(org: TestOrganization): Promise<void> {
  await org.orgDb.run(
    `update alerts set acknowledged_at = acknowledged_at - make_interval(secs => $2), created_at = created_at - make_interval(secs => $2)
     where org_id = $1`,
    [org.orgId, Number(TOLD_AGAIN_AFTER_MICROS / 1_000_000n) + 1],
  );
}

describe('a service that two scopes report', () => {
  it('causes one notice for each pair of scopes, by however many processes look at once and however often', async () => {
    const org = await api.addOrganization();
    await tell(org, 'checkout', ['scope-a', 'scope-b']);
    await tell(org, '', ['scope-a', 'scope-c']);
    await Promise.all([look(), look(), look()]);
    await tell(org, 'checkout', ['scope-a', 'scope-b']);
    await look();
    const notices = await noticesOf(org);
    expect(notices.map(({ subject }) => subject.id).sort()).toEqual(['', 'checkout']);
    expect(notices.find(({ subject }) => subject.id === 'checkout')).toMatchObject({
      kind: 'notice',
      notice: 'double_instrumentation',
      subject: { type: 'service', id: 'checkout' },
      severity: 'medium',
      details: { service: 'checkout', scopes: ['scope-a', 'scope-b'], calls: 6 },
      message: expect.stringContaining('Name the scope that counts in the setting counted_scopes'),
    });
    expect(notices.find(({ subject }) => subject.id === '')?.message).toMatch(/^A service without a name/);
  });

  it('causes no notice where one scope reports its calls, where the setting names what counts, or for calls of days ago', async () => {
    const org = await api.addOrganization();
    await tell(org, 'once', ['scope-a']);
    await tell(org, 'long-ago', ['scope-a', 'scope-b'], 60);
    await tell(org, 'settled', ['scope-a', 'scope-b']);
    await updateSettings(org.orgDb, {
      ...DEFAULT_SETTINGS,
      countedScopes: [{ service: 'settled', scope: 'scope-a' }],
    });
    await look();
    expect(await noticesOf(org)).toEqual([]);
  });

  it('causes another notice only when it lasts a week after a person acknowledged the first', async () => {
    const org = await api.addOrganization();
    await tell(org, 'checkout', ['scope-a', 'scope-b']);
    await look();
    const [first] = (await noticesOf(org)) as [StoredAlert];
    await recordAcknowledgement(org.orgDb, first.id, 'key_0000000000');
    await look();
    expect(await noticesOf(org)).toHaveLength(1);
    await letWeekPass(org);
    await Promise.all([look(), look()]);
    await look();
    expect((await noticesOf(org)).map(({ status }) => status)).toEqual(['open', 'acknowledged']);
  });

  it('causes another notice in a database that sorts words as a language does, too', async () => {
    await api.database.superuser.query(
      'alter table alerts alter column notice_key type text collate "und-x-icu"',
    );
    const org = await api.addOrganization();
    await tell(org, 'checkout', ['scope-a', 'scope-b']);
    for (const told of [1, 2, 3]) {
      await look();
      const [newest, ...others] = await noticesOf(org);
      expect([newest?.status, others.length]).toEqual(['open', told - 1]);
      await recordAcknowledgement(org.orgDb, newest?.id ?? '', 'key_0000000000');
      await letWeekPass(org);
    }
  });

  it('is not searched for in organizations whose services have one scope each, or that sent nothing lately', async () => {
    const [double, single, silent] = [
      await api.addOrganization(),
      await api.addOrganization(),
      await api.addOrganization(),
    ];
    await tell(double, 'checkout', ['scope-a', 'scope-b']);
    await tell(single, 'checkout', ['scope-a']);
    await tell(single, 'search', ['scope-b']);
    await tell(silent, 'checkout', ['scope-a', 'scope-b'], 60);
    const ids = [double, single, silent].map(({ orgId }) => orgId);
    const lookedAt = async (atMicros: bigint) =>
      (await listDoublyReportedOrganizations(api.database.database, atMicros - LOOK_BACK_MICROS)).filter(
        (id) => ids.includes(id),
      );
    expect(await lookedAt(now())).toEqual([double.orgId]);
    expect(await lookedAt(now() + 3n * MICROS_PER_DAY)).toEqual([]);
  });
});
