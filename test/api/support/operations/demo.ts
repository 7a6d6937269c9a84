import { randomUUID } from 'node:crypto';
import { findDemoOrganization } from '../../../../db/installation/organizations.js';
import { drawKey } from '../../../../usecases/access/keyChanges.js';
import { insertDemoOrganization } from '../../../../usecases/installation/organization.js';
import { make, type Operation, type OperationsPlace, unknownId } from './operation.js';

const DEMO = '/api/v1/demo';
const ADMIN = { scope: 'org:admin', workspace: 'refused' } as const;

/** An empty demo, where there is none. */
export async function makeDemo({ api }: Pick<OperationsPlace, 'api'>): Promise<void> {
  const { database } = api.database;
  if (await findDemoOrganization(database)) return;
  const { text: _text, ...digest } = drawKey();
  const key = { ...digest, name: 'demo', role: 'admin' as const, createdBy: 'test' };
  await insertDemoOrganization(database, { id: randomUUID(), name: 'Demo Labs', endDay: '2026-03-31' }, key);
}

/** The demo company beside the organization. */
export const DEMO_OPERATIONS: Record<string, Operation> = {
  startDemo: { method: 'POST', path: DEMO, access: ADMIN, status: 202, request: async () => ({}) },
  getDemo: { method: 'GET', path: DEMO, access: ADMIN, status: 200, request: async () => ({}) },
  getDemoRun: {
    method: 'GET',
    path: `${DEMO}/runs/{id}`,
    access: ADMIN,
    status: 200,
    ids: { id: unknownId('run') },
    request: async (place, owner) => ({ params: { id: (await make(place, owner, DEMO, {})).run_id } }),
  },
  removeDemo: {
    method: 'DELETE',
    path: DEMO,
    access: ADMIN,
    status: 204,
    request: async (place) => {
      await makeDemo(place);
      return {};
    },
  },
};
