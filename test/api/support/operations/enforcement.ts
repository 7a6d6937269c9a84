import type { TestOrganization } from '../../../support/api.js';
import { sendJson } from '../requests.js';
import { make, markerOf, type Operation, type OperationsPlace, unknownId } from './operation.js';

const RULES = '/api/v1/enforcement-rules';
const READ = { scope: 'enforcement:read', workspace: 'shared' } as const;
const WRITE = { scope: 'enforcement:write', workspace: 'refused' } as const;

const ruleOf = (owner: TestOrganization) => ({
  type: 'token_ceiling',
  name: markerOf(owner),
  config: { max_tokens: 1_000 },
  scope: { team_id: markerOf(owner), feature: markerOf(owner) },
});

const ofRule = (rest: Pick<Operation, 'method' | 'access'> & { json?: object }): Operation => ({
  ...rest,
  path: `${RULES}/{id}`,
  status: rest.method === 'DELETE' ? 204 : 200,
  ids: { id: unknownId('rul') },
  request: async (place: OperationsPlace, owner: TestOrganization) => ({
    params: { id: (await make(place, owner, RULES, ruleOf(owner))).id },
    ...(rest.json ? { json: rest.json } : {}),
  }),
});

const listing = (path: string, access: Operation['access']): Operation => ({
  method: 'GET',
  path,
  access,
  status: 200,
  request: async (place, owner) => {
    await make(place, owner, RULES, ruleOf(owner));
    return {};
  },
});

/** Operations on enforcement rules, by which wrappers judge calls before they are made. */
export const ENFORCEMENT_OPERATIONS: Record<string, Operation> = {
  createEnforcementRule: {
    method: 'POST',
    path: RULES,
    access: WRITE,
    status: 201,
    request: async (_place, owner) => ({ json: ruleOf(owner) }),
  },
  listEnforcementRules: listing(RULES, READ),
  getEnforcementRule: ofRule({ method: 'GET', access: READ }),
  updateEnforcementRule: ofRule({
    method: 'PATCH',
    access: WRITE,
    json: { name: 'renamed', config: { max_tokens: 2_000 }, scope: { model: 'gpt-4o' } },
  }),
  removeEnforcementRule: ofRule({ method: 'DELETE', access: WRITE }),
  getEnforcementConfig: listing('/api/v1/enforcement/config', { scope: 'ingest', workspace: 'shared' }),
  getEnforcementPatterns: {
    method: 'GET',
    path: '/api/v1/enforcement/patterns',
    access: { scope: 'ingest', workspace: 'shared' },
    status: 200,
    request: async ({ api }, owner) => {
      const answer = await sendJson(api, {
        method: 'PUT',
        path: '/api/v1/policies/banned_patterns',
        key: owner.adminKey,
        json: { config: { regexes: [markerOf(owner)] } },
      });
      if (answer.status !== 200) throw new Error(`the policy was not put: ${JSON.stringify(answer.body)}`);
      return {};
    },
  },
};
