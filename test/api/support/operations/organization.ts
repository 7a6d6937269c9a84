import { randomBytes } from 'node:crypto';
import type { TestOrganization } from '../../../support/api.js';
import { make, markerOf, type Operation, type OperationsPlace, randomName, unknownId } from './operation.js';

const KEYS = '/api/v1/keys';
const WORKSPACES = '/api/v1/workspaces';
const ORGANIZATION = '/api/v1/organization';
const KEYS_ADMIN = { scope: 'keys:admin', workspace: 'refused' } as const;
const WORKSPACES_READ = { scope: 'workspaces:read', workspace: 'refused' } as const;
const WORKSPACES_ADMIN = { scope: 'workspaces:admin', workspace: 'refused' } as const;
const READ = { scope: 'usage:read', workspace: 'refused' } as const;
const ADMIN = { scope: 'org:admin', workspace: 'refused' } as const;

/** A key that may do no more than its maker must be able to do. */
const keyOf = (owner: TestOrganization) => ({
  name: markerOf(owner),
  role: 'admin',
  scopes: ['keys:admin'],
});
const workspaceOf = (owner: TestOrganization) => ({
  name: markerOf(owner),
  project_id: `${markerOf(owner)}-${randomName()}`,
});
const unknownKeyId = () => `key_${randomBytes(5).toString('hex')}`;

const plain = (
  method: Operation['method'],
  path: string,
  access: Operation['access'],
  status: number,
  json?: (owner: TestOrganization) => object,
): Operation => ({
  method,
  path,
  access,
  status,
  request: async (_place, owner) => (json ? { json: json(owner) } : {}),
});

/** A request about an object that is created for it. */
const ofObject = (
  made: { path: string; body: (owner: TestOrganization) => object; unknown: () => string },
  rest: Pick<Operation, 'method' | 'access' | 'status'> & { below?: string; json?: object },
): Operation => ({
  method: rest.method,
  path: `${made.path}/{id}${rest.below ?? ''}`,
  access: rest.access,
  status: rest.status,
  ids: { id: made.unknown },
  request: async (place: OperationsPlace, owner: TestOrganization) => ({
    params: { id: (await make(place, owner, made.path, made.body(owner))).id },
    ...(rest.json ? { json: rest.json } : {}),
  }),
});

const KEY = { path: KEYS, body: keyOf, unknown: unknownKeyId };
const WORKSPACE = { path: WORKSPACES, body: workspaceOf, unknown: unknownId('wsp') };

/** Keys, workspaces, the organization's settings and its log. */
export const ORGANIZATION_OPERATIONS: Record<string, Operation> = {
  createKey: plain('POST', KEYS, KEYS_ADMIN, 201, keyOf),
  listKeys: plain('GET', KEYS, KEYS_ADMIN, 200),
  getKey: ofObject(KEY, { method: 'GET', access: KEYS_ADMIN, status: 200 }),
  updateKey: ofObject(KEY, {
    method: 'PATCH',
    access: KEYS_ADMIN,
    status: 200,
    json: { name: 'renamed' },
  }),
  revokeKey: ofObject(KEY, { method: 'DELETE', access: KEYS_ADMIN, status: 204 }),
  rotateKey: ofObject(KEY, {
    method: 'POST',
    below: '/rotate',
    access: KEYS_ADMIN,
    status: 200,
    json: { grace_seconds: 60 },
  }),
  createWorkspace: plain('POST', WORKSPACES, WORKSPACES_ADMIN, 201, workspaceOf),
  listWorkspaces: {
    method: 'GET',
    path: WORKSPACES,
    access: WORKSPACES_READ,
    status: 200,
    request: async (place, owner) => {
      await make(place, owner, WORKSPACES, workspaceOf(owner));
      return {};
    },
  },
  getWorkspace: ofObject(WORKSPACE, { method: 'GET', access: WORKSPACES_READ, status: 200 }),
  updateWorkspace: ofObject(WORKSPACE, {
    method: 'PATCH',
    access: WORKSPACES_ADMIN,
    status: 200,
    json: { name: 'renamed' },
  }),
  archiveWorkspace: ofObject(WORKSPACE, { method: 'DELETE', access: WORKSPACES_ADMIN, status: 204 }),
  getOrganization: plain('GET', ORGANIZATION, READ, 200),
  updateOrganization: plain('PATCH', ORGANIZATION, ADMIN, 200, (owner) => ({ name: markerOf(owner) })),
  getOrganizationSettings: plain('GET', `${ORGANIZATION}/settings`, READ, 200),
  updateOrganizationSettings: plain('PATCH', `${ORGANIZATION}/settings`, ADMIN, 200, () => ({
    time_zone: 'Europe/Berlin',
  })),
  listAuditLog: plain('GET', '/api/v1/audit-log', { scope: 'audit:read', workspace: 'refused' }, 200),
};
