import type { TestAnswer, TestApi, TestOrganization } from '../../support/api.js';
import type { FindingToStore } from '../../support/findings.js';
import { financialOf } from './financial.js';
import { type RawAnswer, send } from './requests.js';

export const CLAIMS = '/api/v1/claims';

/** Retries as clients do: a request that waited too long is asked to retry. */
async function untilServed(ask: () => Promise<TestAnswer>): Promise<TestAnswer> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 503) return answer;
  }
}

/** An organization's admin's requests about claims; `apiOf` returns the API of the test file once it runs. */
export function claimsOf(apiOf: () => TestApi) {
  const financial = financialOf(apiOf);
  const claims = {
    /** An organization with a dispute over each finding; the disputes' public ids. */
    orgWithDisputes: async (
      ...given: FindingToStore[]
    ): Promise<{ org: TestOrganization; disputes: string[]; findings: string[] }> => {
      const { org, ids } = await financial.orgWith(...given);
      const disputes: string[] = [];
      for (const id of ids) disputes.push((await financial.confirm(org, id)).body.id);
      return { org, disputes, findings: ids };
    },
    create: (org: TestOrganization, disputeIds: readonly string[], rest: object = {}): Promise<TestAnswer> =>
      untilServed(() => apiOf().post(CLAIMS, { dispute_ids: disputeIds, ...rest }, org.adminKey)),
    merge: (org: TestOrganization, into: string, others: readonly string[]): Promise<TestAnswer> =>
      untilServed(() => apiOf().post(`${CLAIMS}/${into}/merge`, { claim_ids: others }, org.adminKey)),
    discard: (org: TestOrganization, id: string): Promise<RawAnswer> =>
      send(apiOf(), { method: 'DELETE', path: `${CLAIMS}/${id}`, key: org.adminKey }),
    get: async (org: TestOrganization, id: string) =>
      (await apiOf().get(`${CLAIMS}/${id}`, org.adminKey)).body,
    list: async (org: TestOrganization) => (await apiOf().get(CLAIMS, org.adminKey)).body.claims,
    dispute: async (org: TestOrganization, id: string) =>
      (await apiOf().get(`/api/v1/financial/disputes/${id}`, org.adminKey)).body,
    /** The moves of claims in the audit log, newest first. */
    actionsOf: async (org: TestOrganization): Promise<string[]> => {
      const { body } = await apiOf().get('/api/v1/audit-log?subject_type=claim', org.adminKey);
      return body.records.map(({ action }: { action: string }) => action);
    },
  };
  return claims;
}
