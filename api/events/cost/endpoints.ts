import { getEvent } from '../../../db/events/events.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid } from '../../../domain/ids.js';
import { endpointGroup } from '../../endpoint.js';
import { eventParams } from '../events/wire.js';
import { callCostResponse, presentCallCost } from './wire.js';

const routes = endpointGroup({ tag: 'Events', access: { scope: 'events:read', workspace: 'own' } });

routes.get('/api/v1/events/{id}/cost', {
  operationId: 'getEventCost',
  summary: 'The sum behind a cost',
  description:
    'Class × tokens × rate, with the source and the dates of each rate; for batch both the half that cost_usd takes and what the provider should charge; reported against computed.',
  params: eventParams,
  responses: { 200: { description: 'The sum', schema: callCostResponse } },
  problems: ['not_found'],
  async handle({ params, orgDb }, deps) {
    const uuid = findUuid('evt', params.id);
    if (uuid === undefined) throw new DomainError('not_found', 'there is no event with this id');
    const event = await getEvent(orgDb, uuid, false);
    return { status: 200, body: presentCallCost(event, await deps.prices.of(orgDb.orgId), deps.nowMicros()) };
  },
});

export const callCostEndpoints = routes.endpoints;
