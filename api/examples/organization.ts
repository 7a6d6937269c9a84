import { idFrom, type OperationExample } from './example.js';

const KEY_ID = idFrom('key', 'createKey', '/id');
const WORKSPACE_ID = idFrom('wsp', 'createWorkspace', '/id');
const RULE_ID = idFrom('rul', 'createEnforcementRule', '/id');
const WEBHOOK_ID = idFrom('whk', 'createWebhookEndpoint', '/id');

/** The organization, its keys, workspaces and rules, and its webhooks. */
export const ORGANIZATION_EXAMPLES: Readonly<Record<string, OperationExample>> = {
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
  getEnforcementSavings: {},
  listSavingsCalls: { query: { limit: '1' } },
  startSavingsRun: { body: { from: '2026-01-01', to: '2026-01-31' } },
  listSavingsRuns: { query: { limit: '1' } },
  getSavingsRun: { params: { id: idFrom('run', 'listSavingsRuns', '/runs/0/id') } },
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
  redeliverWebhook: { params: { id: idFrom('dlv', 'testWebhookEndpoint', '/delivery_id') } },
};
