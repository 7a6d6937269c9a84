import { publicId } from '../../../domain/ids.js';
import type { TestAnswer, TestApi, TestOrganization } from '../../support/api.js';
import { aFindingDay, type FindingToStore, storeFindings } from '../../support/findings.js';

export const QUEUE = '/api/v1/financial/review-queue';
export const DISPUTES = '/api/v1/financial/disputes';
export const FINDINGS = '/api/v1/financial/findings';
export const USD = 1_000_000_000_000n;

export const fnd = (id: string | undefined): string => publicId('fnd', id ?? '');

/** A day with an overcharge of this many dollars. */
export const day = (usd: bigint, on = '2026-03-10') => aFindingDay(on, usd * USD);

/** People's decisions on findings, as an organization's admin; `apiOf` returns the API of the test file once it runs. */
export function financialOf(apiOf: () => TestApi) {
  return {
    confirm: (org: TestOrganization, id: string, body: object = {}): Promise<TestAnswer> =>
      apiOf().post(`${QUEUE}/${id}/confirm`, body, org.adminKey),
    dismiss: (org: TestOrganization, id: string, reason = 'looked into it'): Promise<TestAnswer> =>
      apiOf().post(`${QUEUE}/${id}/dismiss`, { reason }, org.adminKey),
    queue: async (org: TestOrganization, query = '') =>
      (await apiOf().get(`${QUEUE}?${query}`, org.adminKey)).body,
    /** An organization with findings; their public ids, and the first of them. */
    orgWith: async (...given: FindingToStore[]) => {
      const org = await apiOf().addOrganization();
      const ids = (await storeFindings(org.orgDb, given)).map(fnd);
      return { org, ids, id: ids[0] ?? '' };
    },
    /** The decisions on findings in the audit log, newest first. */
    actionsOf: async (org: TestOrganization): Promise<string[]> => {
      const { body } = await apiOf().get('/api/v1/audit-log?subject_type=finding', org.adminKey);
      return body.records.map(({ action }: { action: string }) => action);
    },
  };
}

/** Resolves all disputes of an organization, as resolving one leaves it. */
export async function resolveDisputes({ orgDb, orgId }: TestOrganization): Promise<void> {
  await orgDb.run(
    `update disputes set status = 'resolved', resolution = 'credit_received', resolved_at = now(), resolved_by = 'test' where org_id = $1`,
    [orgId],
  );
  await orgDb.run('update dispute_days set live = false where org_id = $1', [orgId]);
}
