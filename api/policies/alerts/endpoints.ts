import { listAlerts } from '../../../db/policies/alerts.js';
import { isUuidText } from '../../../domain/ids.js';
import { acknowledgeAlert, getAlert, uuidOfAlert } from '../../../usecases/policies/policies.js';
import { endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { windowOf } from '../../query.js';
import {
  ALERTS_PATH,
  alertParams,
  alertSchema,
  alertsCsv,
  listAlertsQuery,
  listAlertsResponse,
  presentAlert,
} from './wire.js';

/** A workspace key reads the alerts of its project's calls; only keys of the organization decide on them. */

const routes = endpointGroup({
  tag: 'Alerts',
  access: {
    read: { scope: 'alerts:read', workspace: 'own' },
    write: { scope: 'alerts:write', workspace: 'refused' },
  },
});

routes.get(ALERTS_PATH, {
  operationId: 'listAlerts',
  summary: 'Calls that broke a policy, and notices, newest first',
  description:
    'The time of an alert is when its call was stored, not when the call was made. A key of a workspace reads the alerts of its project’s calls and no notices.',
  query: listAlertsQuery,
  csv: alertsCsv,
  responses: {
    200: { description: 'A page of alerts; count is the number in this page', schema: listAlertsResponse },
  },
  problems: ['invalid_range'],
  async handle({ query, orgDb }) {
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const { kind, policy_type: policyType, severity, status, model } = query;
    const window = windowOf(query.since, query.until, ['since', 'until']);
    const asked = { limit: query.limit + 1, offset: after ? 0 : query.offset, after };
    const found = await listAlerts(orgDb, { kind, policyType, severity, status, model, ...window }, asked);
    const { shown, page } = cursoredPage(found, query, (alert) => [alert.createdAtMicros, alert.id]);
    return { status: 200, body: { alerts: shown.map(presentAlert), ...page } };
  },
});

routes.get(`${ALERTS_PATH}/{id}`, {
  operationId: 'getAlert',
  summary: 'One alert',
  description:
    'Where two events turned out to be one call, the alert that replaces this one, with its own id.',
  params: alertParams,
  responses: { 200: { description: 'The alert', schema: alertSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentAlert(await getAlert(orgDb, uuidOfAlert(params.id))) };
  },
});

routes.post(`${ALERTS_PATH}/{id}/acknowledge`, {
  operationId: 'acknowledgeAlert',
  summary: 'Acknowledge an alert',
  description: 'A repeat changes nothing: it answers who was the first to acknowledge it, and when.',
  params: alertParams,
  responses: { 200: { description: 'The alert as it is now', schema: alertSchema } },
  problems: ['not_found'],
  async handle(request) {
    const alert = await acknowledgeAlert(request.orgDb, uuidOfAlert(request.params.id), request);
    return { status: 200, body: presentAlert(alert) };
  },
});

export const alertEndpoints = routes.endpoints;
