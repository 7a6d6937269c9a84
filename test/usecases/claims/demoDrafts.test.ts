import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Drafted, draftConfirmed } from '../../../usecases/claims/draftClaims.js';
import type { TestApi } from '../../support/api.js';
import { type ClaimedDemo, startClaimedDemo } from '../../support/claimedDemo.js';

/** The demo's planted mistakes, every one of them confirmed, as a run drafts claims over them. */
let api: TestApi;
let claimed: ClaimedDemo;
let drafted: Drafted;

beforeAll(async () => {
  claimed = await startClaimedDemo();
  ({ api } = claimed);
  drafted = await draftConfirmed(claimed.organization.orgDb, { provider: null, by: 'test' }, claimed.deps);
}, 300_000);

afterAll(() => claimed?.close());

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
const get = async (path: string): Promise<any> => (await api.get(path, claimed.organization.adminKey)).body;

describe('claims drafted over all confirmed findings', () => {
  it('contain each dispute once, by account, kind and month, and leave no dispute unclaimed except those withheld', async () => {
    expect(drafted.failed).toEqual([]);
    const { disputes } = await get('/api/v1/financial/disputes?limit=1000');
    const withheld = drafted.withheld.flatMap(({ group }) => group.disputes.map(({ id }) => id));
    const groups = new Map<string, string>();
    for (const dispute of disputes) {
      if (dispute.claim_id === null) {
        expect(withheld.map((id) => `dsp_${id.replaceAll('-', '')}`)).toContain(dispute.id);
        continue;
      }
      const { provider, provider_account_id, kind, period_start } = dispute;
      const group = [provider, provider_account_id, kind, period_start.slice(0, 7)].join(' ');
      expect(groups.get(group) ?? dispute.claim_id).toBe(dispute.claim_id);
      groups.set(group, dispute.claim_id);
    }
    expect(new Set(groups.values()).size).toBe(groups.size);
    expect([...groups.values()].sort()).toEqual(
      drafted.claims.map(({ id }) => `clm_${id.replaceAll('-', '')}`).sort(),
    );
    expect(groups.size).toBeGreaterThan(3);
  });

  it('request in total what the summary calls recoverable, less what rounding each claim down leaves', async () => {
    const summary = await get('/api/v1/financial/summary');
    const cents = Math.round(summary.recoverable_confirmed_usd * 100);
    const ofKinds = [];
    for (const { id, recoverableCents } of drafted.claims) {
      const { dispute_ids } = await get(`/api/v1/claims/clm_${id.replaceAll('-', '')}`);
      const { kind } = await get(`/api/v1/financial/disputes/${dispute_ids[0]}`);
      // Unexplained dollars can be disputed and are never recoverable.
      if (kind !== 'unexplained') ofKinds.push(recoverableCents);
    }
    const asked = ofKinds.reduce((sum, one) => sum + one, 0);
    expect(drafted.withheld).toEqual([]);
    expect(asked).toBeLessThanOrEqual(cents);
    expect(asked).toBeGreaterThan(cents - ofKinds.length);
  });

  it('are drafted once: again there is nothing to draft', async () => {
    const before = (await get('/api/v1/claims?limit=1000')).claims;
    const again = await draftConfirmed(
      claimed.organization.orgDb,
      { provider: null, by: 'test' },
      claimed.deps,
    );
    expect(again).toEqual({ claims: [], withheld: [], failed: [] });
    expect((await get('/api/v1/claims?limit=1000')).claims).toEqual(before);
  });
});
