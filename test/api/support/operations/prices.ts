import { randomUUID } from 'node:crypto';
import { publicId } from '../../../../domain/ids.js';
import { makeProposal } from '../../../db/support/tenancyCases/proposals.js';
import type { TestOrganization } from '../../../support/api.js';
import { aTime } from '../requests.js';
import { make, makeEvent, markerOf, type Operation, type OperationsPlace, unknownId } from './operation.js';

const READ = { scope: 'pricing:read', workspace: 'refused' } as const;
const READ_OWN = { ...READ, workspace: 'refused' } as const;
const WRITE = { scope: 'pricing:write', workspace: 'refused' } as const;
const CONTRACT = '/api/v1/pricing/contract-rates';
const OVERRIDES = '/api/v1/pricing/overrides';
const PROPOSALS = '/api/v1/pricing/proposals';
const REPRICE = '/api/v1/pricing/reprice';

const contractOf = (owner: TestOrganization) => ({
  provider: 'openai',
  model: '*',
  discount_percent: '12.5',
  effective_from: '2026-01-01',
  source: { document: markerOf(owner) },
});
const overrideOf = (owner: TestOrganization) => ({
  provider: 'openai',
  model: markerOf(owner),
  rates: { input: 3, output: 21 },
  effective_from: '2026-01-01',
});

/** Always the same window: while a run over it is open, that run is returned. */
const window = { from: '2026-01-01', to: '2026-01-31' };
const makeRepricing = async (place: OperationsPlace, owner: TestOrganization): Promise<string> =>
  (await make(place, owner, REPRICE, { ...window, model: markerOf(owner) })).run_id;

const readList = (
  path: string,
  makeOne?: Operation['request'],
  workspace: 'own' | 'shared' | 'refused' = 'refused',
): Operation => ({
  method: 'GET',
  path,
  access: { ...READ, workspace },
  status: 200,
  request: async (place, owner, projectId) => {
    await makeOne?.(place, owner, projectId);
    return {};
  },
});

const ofEntry = (
  method: 'GET' | 'DELETE',
  path: string,
  kind: string,
  body: (owner: TestOrganization) => object,
): Operation => ({
  method,
  path: `${path}/{id}`,
  access: method === 'GET' ? READ_OWN : WRITE,
  status: method === 'GET' ? 200 : 204,
  ids: { id: unknownId(kind) },
  request: async (place, owner) => ({ params: { id: (await make(place, owner, path, body(owner))).id } }),
});

const onProposal = (action: 'apply' | 'dismiss'): Operation => ({
  method: 'POST',
  path: `${PROPOSALS}/{id}/${action}`,
  access: WRITE,
  status: 200,
  ids: { id: unknownId('prp') },
  request: async (_place, owner) => {
    const { proposalId } = await makeProposal(owner.orgDb, `${markerOf(owner)}-${randomUUID()}`);
    return { params: { id: publicId('prp', proposalId) }, json: {} };
  },
});

/** Prices: everybody's list, the organization's own, and calls priced again. */
export const PRICE_OPERATIONS: Record<string, Operation> = {
  getPricingTable: {
    method: 'GET',
    path: '/api/v1/pricing/table',
    access: 'public',
    status: 200,
    request: async () => ({}),
  },
  listPrices: readList('/api/v1/pricing', undefined, 'shared'),
  listUnpricedModels: readList(
    '/api/v1/pricing/unpriced',
    async (place, owner, projectId) => {
      await makeEvent(place, owner, projectId, { model: `${markerOf(owner)}-model` });
      return {};
    },
    'own',
  ),
  listPriceProposals: readList(PROPOSALS, async (_place, owner) => {
    await makeProposal(owner.orgDb, markerOf(owner));
    return {};
  }),
  applyPriceProposal: onProposal('apply'),
  dismissPriceProposal: onProposal('dismiss'),
  createContractRate: {
    method: 'POST',
    path: CONTRACT,
    access: WRITE,
    status: 201,
    request: async (_place, owner) => ({ json: contractOf(owner) }),
  },
  listContractRates: readList(CONTRACT, (place, owner) => make(place, owner, CONTRACT, contractOf(owner))),
  getContractRate: ofEntry('GET', CONTRACT, 'ctr', contractOf),
  endContractRate: ofEntry('DELETE', CONTRACT, 'ctr', contractOf),
  createPriceOverride: {
    method: 'POST',
    path: OVERRIDES,
    access: WRITE,
    status: 201,
    request: async (_place, owner) => ({ json: overrideOf(owner) }),
  },
  listPriceOverrides: readList(OVERRIDES, (place, owner) => make(place, owner, OVERRIDES, overrideOf(owner))),
  getPriceOverride: ofEntry('GET', OVERRIDES, 'ovr', overrideOf),
  endPriceOverride: ofEntry('DELETE', OVERRIDES, 'ovr', overrideOf),
  startRepricing: {
    method: 'POST',
    path: REPRICE,
    access: WRITE,
    status: 202,
    request: async (_place, owner) => ({ json: { ...window, model: markerOf(owner) } }),
  },
  listRepricings: readList('/api/v1/pricing/reprice-runs', async (place, owner) => {
    await makeRepricing(place, owner);
    return {};
  }),
  getRepricing: {
    method: 'GET',
    path: '/api/v1/pricing/reprice-runs/{id}',
    access: READ,
    status: 200,
    ids: { id: unknownId('run') },
    request: async (place, owner) => ({ params: { id: await makeRepricing(place, owner) } }),
  },
  cancelRepricing: {
    method: 'POST',
    path: '/api/v1/pricing/reprice-runs/{id}/cancel',
    access: WRITE,
    status: 202,
    ids: { id: unknownId('run') },
    request: async (place, owner) => ({ params: { id: await makeRepricing(place, owner) } }),
  },
};

const PERIODS = '/api/v1/periods';
const OVER = aTime(40 * 86_400);

/** A month that is over, with a call in it. */
const monthOf = async (place: OperationsPlace, owner: TestOrganization): Promise<string> => {
  await makeEvent(place, owner, undefined, { timestamp: OVER });
  return OVER.slice(0, 7);
};

/** Months, open and closed. */
export const PERIOD_OPERATIONS: Record<string, Operation> = {
  listPeriods: {
    method: 'GET',
    path: PERIODS,
    access: { scope: 'usage:read', workspace: 'refused' },
    status: 200,
    request: async (place, owner) => {
      await monthOf(place, owner);
      return {};
    },
  },
  getPeriod: {
    method: 'GET',
    path: `${PERIODS}/{period}`,
    access: { scope: 'usage:read', workspace: 'refused' },
    status: 200,
    request: async (place, owner) => ({ params: { period: await monthOf(place, owner) } }),
  },
  closePeriod: {
    method: 'POST',
    path: `${PERIODS}/{period}/close`,
    access: { scope: 'org:admin', workspace: 'refused' },
    status: 200,
    request: async (place, owner) => ({ params: { period: await monthOf(place, owner) } }),
  },
};
