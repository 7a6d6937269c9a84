import { LANGFUSE } from './langfuseBody.js';
import { LITELLM } from './litellmBody.js';
import { LOGS, METRICS, TRACE } from './otlpBodies.js';

/** A value that differs between installations: a literal to show, and the operation whose answer holds a real one. */
export class ValueFrom {
  constructor(
    readonly illustration: string,
    readonly source: ExampleSource,
  ) {}
}

/** The place of a value in the answer to another operation's example. */
export interface ExampleSource {
  operationId: string;
  /** JSON Pointer into the response body. */
  pointer: string;
  /** Query parameters to use in addition to those of the other operation's example. */
  query?: Readonly<Record<string, string>>;
}

type ParameterExample = string | ValueFrom;

/** An example request of one operation. It succeeds on an installation with the demo loaded. */
export interface OperationExample {
  params?: Readonly<Record<string, ParameterExample>>;
  query?: Readonly<Record<string, ParameterExample>>;
  /** A JSON body, or the fields of a form. May contain ValueFrom at any depth. */
  body?: unknown;
}

/** An example with its literals alone, and the sources of those that differ between installations. */
export interface RenderedExample {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  body: unknown;
  /** Keyed by the OpenAPI runtime expression that names the part of the request. */
  sources: Readonly<Record<string, ExampleSource>>;
}

export function renderExample(example: OperationExample): RenderedExample {
  const sources: Record<string, ExampleSource> = {};
  const render = (value: unknown, expression: string): unknown => {
    if (value instanceof ValueFrom) {
      sources[expression] = value.source;
      return value.illustration;
    }
    if (Array.isArray(value)) return value.map((item, index) => render(item, `${expression}/${index}`));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, render(item, `${expression}/${name}`)]),
    );
  };
  const parameters = (given: OperationExample['query'], place: string) =>
    Object.fromEntries(
      Object.entries(given ?? {}).map(([name, value]) => [
        name,
        render(value, `$request.${place}.${name}`) as string,
      ]),
    );
  const params = parameters(example.params, 'path');
  const query = parameters(example.query, 'query');
  const body = render(example.body, '$request.body#');
  return { params, query, body, sources };
}

const HEX = '0199f3a2c4d57e3a8f00112233445566';

/** A public id of one kind, taken from another operation's answer. */
export function idFrom(
  kind: string,
  operationId: string,
  pointer: string,
  query?: Readonly<Record<string, string>>,
): ValueFrom {
  const illustration = kind === 'key' ? 'key_0123456789' : `${kind}_${HEX}`;
  return new ValueFrom(illustration, { operationId, pointer, ...(query ? { query } : {}) });
}

const CONNECTION_ID = idFrom('con', 'createBillingConnection', '/id');
/** The last complete month: the list begins with the current one. */
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
const BILL_EXAMPLES: Readonly<Record<string, OperationExample>> = {
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
  listPriceProposals: { query: { status: 'open', limit: '1' } },
  applyPriceProposal: { params: { id: idFrom('prp', 'listPriceProposals', '/proposals/0/id') }, body: {} },
  dismissPriceProposal: {
    params: { id: idFrom('prp', 'listPriceProposals', '/proposals/0/id') },
    body: { reason: 'The provider still bills the present rate' },
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

const INVOICE_ID = idFrom('inv', 'listInvoices', '/invoices/0/id', { provider: 'openai' });
const UPLOADED_ID = idFrom('inv', 'uploadInvoice', '/invoice_id');
/** An invoice that waits for a person: one of a provider, so that two examples do not change the same one. */
const invoiceForReview = (provider: string) =>
  idFrom('inv', 'listInvoices', '/invoices/0/id', { status: 'needs_review', provider });

const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#0B6E4F"/></svg>';

/** Invoices, their lines and runs, and the credit that was bought by them. */
const INVOICE_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  uploadInvoice: { body: { provider: 'cohere', account: 'demo-labs', file: '%PDF-1.7 …' } },
  listInvoices: { query: { provider: 'openai', limit: '1' } },
  getInvoice: { params: { id: INVOICE_ID } },
  getInvoiceFile: { params: { id: INVOICE_ID } },
  getInvoicePage: { params: { id: INVOICE_ID, page: '1' } },
  correctInvoiceLine: {
    params: { id: invoiceForReview('anthropic'), line: '1' },
    body: { description: 'Claude Sonnet usage, input tokens' },
  },
  confirmInvoice: {
    params: { id: invoiceForReview('openai') },
    body: { note: 'The tax on the invoice is 120.00 too high.' },
  },
  retryInvoice: { params: { id: UPLOADED_ID }, body: { engines: ['text', 'tesseract'] } },
  listInvoiceRuns: { params: { id: INVOICE_ID }, query: { limit: '1' } },
  getInvoiceRun: {
    params: { id: INVOICE_ID, run_id: idFrom('run', 'listInvoiceRuns', '/runs/0/id') },
  },
  deleteInvoice: { params: { id: UPLOADED_ID } },
  getPrepaidLedger: {},
};

const EVENT_ID = idFrom('evt', 'listEvents', '/events/0/id');
const SINCE_THE_EVENT = {
  start: new ValueFrom('2026-01-31T12:00:00Z', {
    operationId: 'listEvents',
    pointer: '/events/0/timestamp',
  }),
  end: new ValueFrom('2026-02-01T12:00:00Z', {
    operationId: 'listEvents',
    pointer: '/events/0/ingested_at',
  }),
};

/** Ingest, events, usage and policies. */
const CALL_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  ingestTrace: { body: TRACE },
  ingestTraceStandardPath: { body: TRACE },
  ingestTraceLangfusePath: { body: TRACE },
  ingestLangfuse: { body: LANGFUSE },
  ingestLitellm: { body: LITELLM },
  ingestLogs: { body: LOGS },
  ingestMetrics: { body: METRICS },
  ingestObservability: {
    body: {
      type: 'observation-create',
      body: {
        id: 'obs-example-1',
        type: 'GENERATION',
        model: 'gpt-4o',
        startTime: '2026-01-31T12:00:00Z',
        usage: { input: 1_200, output: 350 },
        metadata: { provider: 'openai' },
      },
    },
  },
  ingestEvents: {
    body: {
      events: [
        {
          provider: 'openai',
          model: 'gpt-4o',
          timestamp: '2026-01-31T12:00:00Z',
          request_id: 'req-example-1',
          team_id: 'support',
          feature: 'answer-bot',
          input_tokens: 1_200,
          output_tokens: 350,
        },
      ],
    },
  },
  getIngestHealth: {},
  listEvents: { query: { team_id: 'support', feature: 'answer-bot', limit: '1' } },
  exportEvents: { query: { ...SINCE_THE_EVENT, format: 'json' } },
  getEvent: { params: { id: EVENT_ID } },
  getEventCost: { params: { id: EVENT_ID } },
  getUsageSummary: { query: { group_by: 'team' } },
  listUsageRecords: { query: { provider: 'openai', limit: '1' } },
  getDashboardBreakdown: { params: { dimension: 'team' }, query: { provider: 'openai' } },
  getBranding: {},
  updateBranding: { body: { brand_color: '#0B6E4F', footer_text: 'Finance, internal', logo: LOGO } },
  getBrandingLogo: {},
  getChargeback: { query: { dimension: 'team_id', period: '30d' } },
  listPolicies: {},
  putPolicy: {
    params: { policy_type: 'approval_required_threshold_cents' },
    body: { config: { threshold_cents: 220 }, enabled: true },
  },
  previewPolicy: {
    params: { policy_type: 'approval_required_threshold_cents' },
    body: { config: { threshold_cents: 500 } },
  },
  listAlerts: { query: { kind: 'policy', status: 'open', limit: '1' } },
  getAlert: { params: { id: idFrom('alr', 'listAlerts', '/alerts/0/id') } },
  acknowledgeAlert: { params: { id: idFrom('alr', 'listAlerts', '/alerts/0/id') } },
};

const DISPUTE_ID = idFrom('dsp', 'confirmReviewItem', '/id');
const OPEN_DISPUTE_ID = idFrom('dsp', 'listDisputes', '/disputes/0/id', { status: 'open' });
const FINDING_ID = idFrom('fnd', 'listFindings', '/findings/0/id');
const CLAIM_ID = idFrom('clm', 'createClaim', '/id');
const ESCALATED_ID = idFrom('clm', 'setClaimStatus', '/id');
const RESOLUTION = { resolution: 'provider_correct', notes: 'The provider showed the order.' };

/** Findings, the decisions on them, disputes and claims. */
const CLAIM_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  getFinancialSummary: {},
  getReviewQueue: { query: { provider: 'openai', limit: '1' } },
  confirmReviewItem: {
    params: { id: idFrom('fnd', 'getReviewQueue', '/items/0/id') },
    body: { notes: 'Checked against the invoice.' },
  },
  dismissReviewItem: {
    params: { id: idFrom('fnd', 'getReviewQueue', '/items/0/id', { provider: 'anthropic' }) },
    body: { reason: 'The provider has already credited it.' },
  },
  listFindings: { query: { provider: 'openai', limit: '1' } },
  getFinding: { params: { id: FINDING_ID } },
  listDisputes: { query: { limit: '1' } },
  getDispute: { params: { id: DISPUTE_ID } },
  exportDisputes: { query: { status: 'open' } },
  resolveDispute: { params: { id: OPEN_DISPUTE_ID }, body: RESOLUTION },
  resolveDisputeByPatch: { params: { id: OPEN_DISPUTE_ID }, body: RESOLUTION },
  resolveDisputeByPut: { params: { id: OPEN_DISPUTE_ID }, body: RESOLUTION },
  listClaims: { query: { limit: '1' } },
  createClaim: { body: { dispute_ids: [DISPUTE_ID], notes: 'First claim of the month.' } },
  getClaim: { params: { id: CLAIM_ID } },
  discardClaim: { params: { id: CLAIM_ID } },
  mergeClaims: {
    params: { id: CLAIM_ID },
    body: { claim_ids: [idFrom('clm', 'listClaims', '/claims/1/id', { status: 'draft', limit: '2' })] },
  },
  submitClaim: { params: { id: CLAIM_ID } },
  snoozeClaim: {
    params: { id: idFrom('clm', 'submitClaim', '/id') },
    body: {
      until: new ValueFrom('2026-12-14', { operationId: 'submitClaim', pointer: '/next_action_at' }),
    },
  },
  setClaimStatus: {
    params: { id: idFrom('clm', 'submitClaim', '/id') },
    body: { status: 'escalated', external_ticket_id: 'CASE-2026-118' },
  },
  getClaimEvidenceJson: { params: { id: CLAIM_ID } },
  getClaimEvidenceCsv: { params: { id: CLAIM_ID } },
  getClaimEvidencePdf: { params: { id: CLAIM_ID } },
  getClaimEvidencePack: { params: { id: CLAIM_ID } },
  draftTicket: { params: { id: ESCALATED_ID } },
  getTicketDraft: { params: { id: ESCALATED_ID } },
  rejectClaimCredit: {
    params: {
      id: CLAIM_ID,
      credit_id: idFrom('crd', 'getClaim', '/proposed_credits/0/id'),
    },
  },
};

const KEY_ID = idFrom('key', 'createKey', '/id');
const WORKSPACE_ID = idFrom('wsp', 'createWorkspace', '/id');
const RULE_ID = idFrom('rul', 'createEnforcementRule', '/id');
const WEBHOOK_ID = idFrom('whk', 'createWebhookEndpoint', '/id');

/** The organization, its keys, workspaces and rules, and its webhooks. */
const ORGANIZATION_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  getOrganization: {},
  updateOrganization: { body: { name: 'Demo Labs' } },
  getOrganizationSettings: {},
  updateOrganizationSettings: { body: { time_zone: 'Europe/Berlin', holidays: ['2026-12-25'] } },
  createKey: { body: { name: 'Nightly export', role: 'auditor', scopes: ['events:read', 'usage:read'] } },
  listKeys: { query: { role: 'admin', limit: '1' } },
  getKey: { params: { id: KEY_ID } },
  updateKey: { params: { id: KEY_ID }, body: { name: 'Weekly export' } },
  revokeKey: { params: { id: KEY_ID } },
  rotateKey: { params: { id: KEY_ID }, body: { grace_seconds: 3_600 } },
  getDemo: {},
  startDemo: {},
  getDemoRun: { params: { id: idFrom('run', 'startDemo', '/run_id') } },
  removeDemo: {},
  createSession: {
    body: { api_key: new ValueFrom('tu_live_…', { operationId: 'createKey', pointer: '/key' }) },
  },
  getSession: {},
  getSignInOptions: {},
  endSession: {},
  listSessions: { query: { limit: '1' } },
  endOneSession: { params: { id: idFrom('ses', 'listSessions', '/sessions/0/id') } },
  endOwnSessions: {},
  createWorkspace: { body: { name: 'Search team', project_id: 'search' } },
  listWorkspaces: { query: { limit: '1' } },
  getWorkspace: { params: { id: WORKSPACE_ID } },
  updateWorkspace: { params: { id: WORKSPACE_ID }, body: { name: 'Search and ranking' } },
  archiveWorkspace: { params: { id: WORKSPACE_ID } },
  listAuditLog: { query: { limit: '1' } },
  createEnforcementRule: {
    body: {
      type: 'token_ceiling',
      name: 'Long prompts of the answer bot',
      config: { max_tokens: 200_000 },
      scope: { feature: 'answer-bot' },
      mode: 'observe',
    },
  },
  listEnforcementRules: { query: { limit: '1' } },
  getEnforcementRule: { params: { id: RULE_ID } },
  updateEnforcementRule: { params: { id: RULE_ID }, body: { config: { max_tokens: 150_000 } } },
  removeEnforcementRule: { params: { id: RULE_ID } },
  getEnforcementConfig: {},
  getEnforcementPatterns: {},
  getEnforcementSavings: {},
  listSavingsCalls: { query: { limit: '1' } },
  startSavingsRun: { body: { from: '2026-01-01', to: '2026-01-31' } },
  listSavingsRuns: { query: { limit: '1' } },
  getSavingsRun: { params: { id: idFrom('run', 'listSavingsRuns', '/runs/0/id') } },
  createManagementReport: { body: { from: '2026-10-01', to: '2026-10-31', sections: ['summary', 'spend'] } },
  listReports: { query: { limit: '1' } },
  getReport: { params: { report_id: idFrom('rpt', 'listReports', '/reports/0/id') } },
  putReportSchedule: {
    params: { cadence: 'monthly' },
    body: { time_zone: 'Europe/Berlin', deliveries: [{ type: 'webhook' }] },
  },
  listReportSchedules: {},
  getReportSchedule: { params: { cadence: 'monthly' } },
  deleteReportSchedule: { params: { cadence: 'monthly' } },
  listReportRuns: { query: { limit: '1' } },
  getReportRun: { params: { id: idFrom('run', 'listReportRuns', '/runs/0/id') } },
  createWebhookEndpoint: {
    body: {
      url: 'https://hooks.example.com/trueup',
      description: 'Alerts to the on-call channel',
      event_types: ['alert.created', 'claim.status_changed'],
    },
  },
  listWebhookEndpoints: { query: { limit: '1' } },
  getWebhookEndpoint: { params: { id: WEBHOOK_ID } },
  updateWebhookEndpoint: { params: { id: WEBHOOK_ID }, body: { description: 'Alerts to #llm-costs' } },
  deleteWebhookEndpoint: { params: { id: WEBHOOK_ID } },
  rotateWebhookSecret: { params: { id: WEBHOOK_ID }, body: { grace_seconds: 3_600 } },
  testWebhookEndpoint: { params: { id: WEBHOOK_ID } },
  listWebhookDeliveries: { params: { id: WEBHOOK_ID }, query: { limit: '1' } },
  mcp: {
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'price_of_model', arguments: { provider: 'openai', model: 'gpt-4o-mini' } },
    },
  },
  redeliverWebhook: { params: { id: idFrom('dlv', 'testWebhookEndpoint', '/delivery_id') } },
};

/** The example request of each operation, by operationId. */
export const EXAMPLES: Readonly<Record<string, OperationExample>> = {
  ...CALL_EXAMPLES,
  ...BILL_EXAMPLES,
  ...INVOICE_EXAMPLES,
  ...CLAIM_EXAMPLES,
  ...ORGANIZATION_EXAMPLES,
};
