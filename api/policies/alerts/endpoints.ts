import type { OrgDb } from '../../../db/orgDb.js';
import {
  findAlert,
  listAlerts,
  recordAcknowledgement,
  type StoredAlert,
} from '../../../db/policies/alerts.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, isUuidText, publicId } from '../../../domain/ids.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { windowOf } from '../../query.js';
import {
  ALERTS_PATH,
  alertParams,
  alertSchema,
  listAlertsQuery,
  listAlertsResponse,
  presentAlert,
} from './wire.js';

const READ = { scope: 'alerts:read', workspace: 'own' } as const;
/** A project's keys read what its calls did; whether somebody has looked into it is the organization's to say. */
const WRITE = { scope: 'alerts:write', workspace: 'refused' } as const;

/** Error not_found. An alert that another one stands for gives that one. */
async function getAlert(orgDb: OrgDb, id: string): Promise<StoredAlert> {
  const uuid = findUuid('alr', id);
  const alert = uuid === undefined ? undefined : await findAlert(orgDb, uuid);
  if (!alert) throw new DomainError('not_found', 'there is no alert with this id');
  return alert;
}

const listAlertsEndpoint = defineEndpoint({
  operationId: 'listAlerts',
  method: 'get',
  path: ALERTS_PATH,
  tag: 'Alerts',
  summary: 'Calls that broke a policy, and notices, newest first',
  description:
    'The time of an alert is when its call was stored, not when the call was made. A key of a workspace reads the alerts of its project’s calls and no notices.',
  access: READ,
  query: listAlertsQuery,
  responses: {
    200: { description: 'A page of alerts; count is the number in this page', schema: listAlertsResponse },
  },
  problems: ['invalid_range'],
  async handle({ query, orgDb }) {
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const found = await listAlerts(
      orgDb,
      {
        kind: query.kind,
        policyType: query.policy_type,
        severity: query.severity,
        status: query.status,
        model: query.model,
        ...windowOf(query.since, query.until, ['since', 'until']),
      },
      { limit: query.limit + 1, offset: after ? 0 : query.offset, after },
    );
    const { shown, page } = cursoredPage(found, query, (alert) => [alert.createdAtMicros, alert.id]);
    return { status: 200, body: { alerts: shown.map(presentAlert), ...page } };
  },
});

const getAlertEndpoint = defineEndpoint({
  operationId: 'getAlert',
  method: 'get',
  path: `${ALERTS_PATH}/{id}`,
  tag: 'Alerts',
  summary: 'One alert',
  description:
    'Where two events turned out to be one call, the alert that stands for this one, with its own id.',
  access: READ,
  params: alertParams,
  responses: { 200: { description: 'The alert', schema: alertSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentAlert(await getAlert(orgDb, params.id)) };
  },
});

const acknowledgeAlertEndpoint = defineEndpoint({
  operationId: 'acknowledgeAlert',
  method: 'post',
  path: `${ALERTS_PATH}/{id}/acknowledge`,
  tag: 'Alerts',
  summary: 'Say that somebody has seen to an alert',
  description: 'A repeat changes nothing: it answers who was the first to acknowledge it, and when.',
  access: WRITE,
  params: alertParams,
  responses: { 200: { description: 'The alert as it is now', schema: alertSchema } },
  problems: ['not_found'],
  async handle(request) {
    const { params, orgDb, caller } = request;
    let alert = await getAlert(orgDb, params.id);
    while (alert.status === 'open') {
      const acknowledged = await recordAcknowledgement(orgDb, alert.id, caller.keyId);
      if (acknowledged) {
        const subject = { type: 'alert', id: publicId('alr', acknowledged.id) };
        await recordAction(orgDb, request, 'alert.acknowledged', subject);
        return { status: 200, body: presentAlert(acknowledged) };
      }
      // Somebody else was first, or another alert has come to stand for this one.
      alert = await getAlert(orgDb, params.id);
    }
    return { status: 200, body: presentAlert(alert) };
  },
});

export const alertEndpoints: readonly Endpoint[] = [
  listAlertsEndpoint,
  getAlertEndpoint,
  acknowledgeAlertEndpoint,
];
