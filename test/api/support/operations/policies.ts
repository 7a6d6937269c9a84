import type { TestOrganization } from '../../../support/api.js';
import { send } from '../requests.js';
import {
  makeEvent,
  markerOf,
  type Operation,
  type OperationRequest,
  type OperationsPlace,
  randomName,
} from './operation.js';

const POLICIES = '/api/v1/policies';
const ADMIN = { scope: 'policies:write', workspace: 'refused' } as const;

/** Puts the owner's approved models: its marker among them, and never twice the same. */
const modelsOf = (owner: TestOrganization): OperationRequest => ({
  params: { policy_type: 'approved_models' },
  json: { config: { models: [markerOf(owner), randomName()] } },
});

async function putModels({ api }: OperationsPlace, owner: TestOrganization): Promise<void> {
  const answer = await send(api, {
    method: 'PUT',
    path: `${POLICIES}/approved_models`,
    key: owner.adminKey,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(modelsOf(owner).json),
  });
  if (answer.status !== 200) throw new Error(`the policy was not put: ${JSON.stringify(answer.body)}`);
}

/** Operations on policies, by which stored calls are judged. */
export const POLICY_OPERATIONS: Record<string, Operation> = {
  listPolicies: {
    method: 'GET',
    path: POLICIES,
    access: { scope: 'policies:read', workspace: 'shared' },
    status: 200,
    request: async (place, owner) => {
      await putModels(place, owner);
      return {};
    },
  },
  putPolicy: {
    method: 'PUT',
    path: `${POLICIES}/{policy_type}`,
    access: ADMIN,
    status: 200,
    request: async (_place, owner) => modelsOf(owner),
  },
  previewPolicy: {
    method: 'POST',
    path: `${POLICIES}/{policy_type}/preview`,
    access: ADMIN,
    alsoNeeds: 'payloads:read',
    status: 200,
    request: async (place, owner, projectId) => {
      await makeEvent(place, owner, projectId);
      return { params: { policy_type: 'banned_patterns' }, json: { config: { regexes: [markerOf(owner)] } } };
    },
  },
};
