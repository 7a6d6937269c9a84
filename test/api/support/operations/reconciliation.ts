import type { TestOrganization } from '../../../support/api.js';
import { make, type Operation, type OperationsPlace, unknownId } from './operation.js';

const READ = { scope: 'reconciliation:read', workspace: 'refused' } as const;
const WRITE = { scope: 'reconciliation:write', workspace: 'refused' } as const;
const EXPLORER = '/api/v1/reconciliation/gap-explorer';

const makeRun = async (place: OperationsPlace, owner: TestOrganization): Promise<string> =>
  (await make(place, owner, `${EXPLORER}/run?period=30d`, {})).run_id;

const read = (path: string, query: Record<string, string> = {}): Operation => ({
  method: 'GET',
  path,
  access: READ,
  status: 200,
  request: async (place, owner) => {
    await makeRun(place, owner);
    return { query };
  },
});

const ofRun = (method: Operation['method'], path: string, access: Operation['access'], status: number) => ({
  method,
  path,
  access,
  status,
  ids: { id: unknownId('run') },
  request: async (place: OperationsPlace, owner: TestOrganization) => ({
    params: { id: await makeRun(place, owner) },
  }),
});

/** Gaps between bills and calls. */
export const RECONCILIATION_OPERATIONS: Record<string, Operation> = {
  startGapRun: {
    method: 'POST',
    path: `${EXPLORER}/run`,
    access: WRITE,
    status: 202,
    request: async () => ({ json: { period: '30d' } }),
  },
  listGapRuns: read(`${EXPLORER}/runs`),
  getGapRun: ofRun('GET', `${EXPLORER}/runs/{id}`, READ, 200),
  cancelGapRun: ofRun('POST', `${EXPLORER}/runs/{id}/cancel`, WRITE, 202),
  exploreGaps: read(EXPLORER),
  listMatches: read('/api/v1/reconciliation/matches'),
  getCoverage: read('/api/v1/reconciliation/coverage', { group_by: 'model' }),
  getReconciliationSummary: read('/api/v1/reconciliation/summary'),
  getWeights: read('/api/v1/reconciliation/weights', { limit: '10' }),
  getStatement: read('/api/v1/reconciliation/statement', { period: '2026-03' }),
  exportFocus: read('/api/v1/reconciliation/focus', { period: '2026-03' }),
  getAudit: read('/api/v1/reconciliation/audit', { provider: 'openai' }),
};
