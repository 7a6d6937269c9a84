import { storeModeledResult } from '../../../support/modeledResult.js';
import { make, markerOf, type Operation, unknownId } from './operation.js';

const SAVINGS = '/api/v1/enforcement/savings';
const RUNS = `${SAVINGS}/runs`;
const READ = { scope: 'enforcement:read', workspace: 'refused' } as const;
const WRITE = { scope: 'enforcement:write', workspace: 'refused' } as const;

/** A past period, the same each time: while a run of it is open, that run is the answer. */
const PERIOD = { from: '2026-01-01', to: '2026-01-31' };

/** Creates a rule, and models its savings. */
const makeResult: Operation['request'] = async (place, owner) => {
  const rule = { type: 'token_ceiling', name: markerOf(owner), config: { max_tokens: 1_000 } };
  await make(place, owner, '/api/v1/enforcement-rules', rule);
  await storeModeledResult(owner.orgDb);
  return {};
};

/** Operations on prevented spend and modelled savings. */
export const SAVINGS_OPERATIONS: Record<string, Operation> = {
  getEnforcementSavings: {
    method: 'GET',
    path: SAVINGS,
    access: READ,
    status: 200,
    request: makeResult,
  },
  startSavingsRun: {
    method: 'POST',
    path: RUNS,
    access: WRITE,
    status: 202,
    request: async () => ({ json: PERIOD }),
  },
  listSavingsRuns: {
    method: 'GET',
    path: RUNS,
    access: READ,
    status: 200,
    request: async (place, owner) => {
      await make(place, owner, RUNS, PERIOD);
      return {};
    },
  },
  getSavingsRun: {
    method: 'GET',
    path: `${RUNS}/{id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('run') },
    request: async (place, owner) => ({ params: { id: (await make(place, owner, RUNS, PERIOD)).run_id } }),
  },
  listSavingsCalls: {
    method: 'GET',
    path: `${SAVINGS}/calls`,
    access: READ,
    status: 200,
    request: makeResult,
  },
};
