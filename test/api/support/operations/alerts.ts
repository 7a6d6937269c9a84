import { putPolicy } from '../../../../db/policies/policies.js';
import type { TestOrganization } from '../../../support/api.js';
import { makeEvent, type Operation, type OperationsPlace, unknownId } from './operation.js';

const ALERTS = '/api/v1/alerts';
const READ = { scope: 'alerts:read', workspace: 'own' } as const;
const WRITE = { scope: 'alerts:write', workspace: 'refused' } as const;

/** An alert of a call whose model is not approved; its public id. */
async function makeAlert(
  place: OperationsPlace,
  owner: TestOrganization,
  projectId?: string,
): Promise<string> {
  await putPolicy(
    owner.orgDb,
    { type: 'approved_models', config: { models: ['no-model'] }, enabled: true, skipped: [] },
    'test',
  );
  const eventId = await makeEvent(place, owner, projectId);
  const { body } = await place.api.get(`${ALERTS}?policy_type=approved_models`, owner.adminKey);
  return body.alerts.find((alert: { event_id: string }) => alert.event_id === eventId).id;
}

const ofAlert = (rest: Pick<Operation, 'method' | 'path' | 'access'>): Operation => ({
  ...rest,
  status: 200,
  ids: { id: unknownId('alr') },
  request: async (place, owner, projectId) => ({ params: { id: await makeAlert(place, owner, projectId) } }),
});

/** The alerts feed. */
export const ALERT_OPERATIONS: Record<string, Operation> = {
  listAlerts: {
    method: 'GET',
    path: ALERTS,
    access: READ,
    status: 200,
    request: async (place, owner, projectId) => {
      await makeAlert(place, owner, projectId);
      return {};
    },
  },
  getAlert: ofAlert({ method: 'GET', path: `${ALERTS}/{id}`, access: READ }),
  acknowledgeAlert: ofAlert({ method: 'POST', path: `${ALERTS}/{id}/acknowledge`, access: WRITE }),
};
