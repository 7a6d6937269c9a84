import type { TestOrganization } from '../../../support/api.js';
import { NOWHERE } from '../../../support/outbound.js';
import { make, markerOf, type Operation, type OperationsPlace, randomName, unknownId } from './operation.js';

const WEBHOOKS = '/api/v1/webhook-endpoints';
const ADMIN = { scope: 'webhooks:admin', workspace: 'refused' } as const;
/** Far fewer than an organization may have. */
const KEPT_MAX = 40;
const REMOVED_AT_ONCE = 10;

const endpointOf = (owner: TestOrganization) => ({
  url: `${NOWHERE}/${markerOf(owner)}/${randomName()}`,
  description: markerOf(owner),
});

/** The suites make more of them than an organization may have: the oldest go. */
async function makeRoom({ api }: OperationsPlace, owner: TestOrganization): Promise<void> {
  const { body } = await api.get(`${WEBHOOKS}?limit=1000`, owner.adminKey);
  if (body.count < KEPT_MAX) return;
  const headers = { authorization: `Bearer ${owner.adminKey}` };
  for (const { id } of body.webhook_endpoints.slice(-REMOVED_AT_ONCE))
    await fetch(`${api.baseUrl}${WEBHOOKS}/${id}`, { method: 'DELETE', headers });
}

async function makeEndpoint(place: OperationsPlace, owner: TestOrganization): Promise<string> {
  await makeRoom(place, owner);
  return (await make(place, owner, WEBHOOKS, endpointOf(owner))).id;
}

/** A test message's delivery, which has ended. */
async function makeDelivery(place: OperationsPlace, owner: TestOrganization) {
  const id = await makeEndpoint(place, owner);
  const tested = await make(place, owner, `${WEBHOOKS}/${id}/test`, undefined);
  return { id, deliveryId: tested.delivery_id as string };
}

const ofEndpoint = (
  method: Operation['method'],
  below: string,
  status: number,
  json?: (owner: TestOrganization) => object,
): Operation => ({
  method,
  path: `${WEBHOOKS}/{id}${below}`,
  access: ADMIN,
  status,
  ids: { id: unknownId('whk') },
  request: async (place, owner) => ({
    params: { id: await makeEndpoint(place, owner) },
    ...(json ? { json: json(owner) } : {}),
  }),
});

/** Operations on webhook endpoints and their deliveries. */
export const WEBHOOK_OPERATIONS: Record<string, Operation> = {
  createWebhookEndpoint: {
    method: 'POST',
    path: WEBHOOKS,
    access: ADMIN,
    status: 201,
    request: async (place, owner) => {
      await makeRoom(place, owner);
      return { json: endpointOf(owner) };
    },
  },
  listWebhookEndpoints: {
    method: 'GET',
    path: WEBHOOKS,
    access: ADMIN,
    status: 200,
    request: async (place, owner) => {
      await makeEndpoint(place, owner);
      return {};
    },
  },
  getWebhookEndpoint: ofEndpoint('GET', '', 200),
  updateWebhookEndpoint: ofEndpoint('PATCH', '', 200, (owner) => ({
    description: `${markerOf(owner)} ${randomName()}`,
  })),
  deleteWebhookEndpoint: ofEndpoint('DELETE', '', 204),
  rotateWebhookSecret: ofEndpoint('POST', '/rotate-secret', 200, () => ({ grace_seconds: 60 })),
  testWebhookEndpoint: ofEndpoint('POST', '/test', 200),
  listWebhookDeliveries: {
    method: 'GET',
    path: `${WEBHOOKS}/{id}/deliveries`,
    access: ADMIN,
    status: 200,
    ids: { id: unknownId('whk') },
    request: async (place, owner) => ({ params: { id: (await makeDelivery(place, owner)).id } }),
  },
  redeliverWebhook: {
    method: 'POST',
    path: `${WEBHOOKS}/deliveries/{id}/redeliver`,
    access: ADMIN,
    status: 202,
    ids: { id: unknownId('dlv') },
    request: async (place, owner) => ({ params: { id: (await makeDelivery(place, owner)).deliveryId } }),
  },
};
