import { idFrom, type OperationExample, ValueFrom } from './example.js';

const CONNECTION_ID = idFrom('con', 'createBillingConnection', '/id');
/** The last month that is over: the list begins with the current one. */
const LAST_MONTH = new ValueFrom('2026-10', {
  operationId: 'listPeriods',
  pointer: '/periods/0/period',
  query: { offset: '1', limit: '1' },
});
const WINDOW = {
  from: new ValueFrom('2026-10-01T00:00:00Z', { operationId: 'exploreGaps', pointer: '/period/start' }),
  to: new ValueFrom('2026-10-30T23:59:59Z', { operationId: 'exploreGaps', pointer: '/period/end' }),
};

/** Prices, months, bills and their connections, and the comparison of bills with calls. */
export const BILL_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  getPricingTable: {},
  listPrices: { query: { provider: 'openai', model: 'gpt-4o' } },
  listUnpricedModels: {},
  startRepricing: { body: { ...WINDOW, provider: 'openai' } },
  listRepricings: { query: { limit: '1' } },
  getRepricing: { params: { id: idFrom('run', 'startRepricing', '/run_id') } },
  cancelRepricing: { params: { id: idFrom('run', 'startRepricing', '/run_id') } },
  listPeriods: { query: { limit: '2' } },
  getPeriod: { params: { period: LAST_MONTH } },
  closePeriod: { params: { period: LAST_MONTH } },
  createContractRate: {
    body: {
      provider: 'mistral',
      model: '*',
      discount_percent: '10',
      effective_from: '2026-01-01',
      source: { document: 'Order form 2026-114', clause: '4.1' },
    },
  },
  listContractRates: { query: { limit: '1' } },
  getContractRate: { params: { id: idFrom('ctr', 'listContractRates', '/contract_rates/0/id') } },
  endContractRate: { params: { id: idFrom('ctr', 'createContractRate', '/id') } },
  createPriceOverride: {
    body: {
      provider: 'mistral',
      model: 'mistral-large-latest',
      rates: { input: '1.8', output: '5.4' },
      effective_from: '2026-01-01',
    },
  },
  listPriceOverrides: { query: { limit: '1' } },
  getPriceOverride: { params: { id: idFrom('ovr', 'createPriceOverride', '/id') } },
  endPriceOverride: { params: { id: idFrom('ovr', 'createPriceOverride', '/id') } },
  createBillingImport: {
    body: {
      provider: 'cohere',
      account: 'demo-labs',
      file: 'date,model,token_class,quantity,amount_usd\n2026-01-31,command-a-03-2025,input,1000000,2.5\n',
    },
  },
  listBillingImports: { query: { provider: 'openai', limit: '1' } },
  getBillingImport: { params: { id: idFrom('imp', 'listBillingImports', '/imports/0/id') } },
  createBillingConnection: {
    body: {
      provider: 'openai',
      name: 'OpenAI production',
      credentials: { admin_key: 'sk-admin-example' },
      settings: { account: 'org-example' },
    },
  },
  listBillingConnections: { query: { limit: '1' } },
  getBillingConnection: { params: { id: CONNECTION_ID } },
  updateBillingConnection: { params: { id: CONNECTION_ID }, body: { name: 'OpenAI, all projects' } },
  deleteBillingConnection: { params: { id: CONNECTION_ID } },
  testBillingConnection: { params: { id: CONNECTION_ID } },
  startBillingSync: { params: { id: CONNECTION_ID } },
  listBillingSyncs: { params: { id: CONNECTION_ID }, query: { limit: '1' } },
  getBillingSync: {
    params: { id: CONNECTION_ID, run_id: idFrom('run', 'createBillingConnection', '/sync/id') },
  },
  listProviderKeys: { query: { provider: 'anthropic', limit: '1' } },
  putProviderKeys: {
    body: {
      items: [
        {
          provider: 'mistral',
          provider_key_id: 'key_example',
          name: 'answer-bot production',
          team_id: 'support',
          status: 'active',
        },
      ],
    },
  },
  startGapRun: { body: { period: '7d', provider: 'anthropic' } },
  listGapRuns: { query: { limit: '1' } },
  getGapRun: { params: { id: idFrom('run', 'listGapRuns', '/runs/0/id') } },
  cancelGapRun: { params: { id: idFrom('run', 'startGapRun', '/run_id') } },
  exploreGaps: { query: { period: '30d', flagged_only: 'true', limit: '1' } },
  getReconciliationSummary: {},
  listMatches: { query: { provider: 'openai', confidence: 'HIGH', limit: '1' } },
  getCoverage: { query: { group_by: 'model', limit: '1' } },
  getWeights: { query: { limit: '1' } },
  getStatement: { query: { period: LAST_MONTH } },
  exportFocus: { query: { period: LAST_MONTH } },
  getAudit: { query: { provider: 'openai' } },
};
