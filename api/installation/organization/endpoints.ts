import { getOrganization } from '../../../db/installation/organizations.js';
import {
  changeOrganizationSettings,
  renameOrganization,
} from '../../../usecases/installation/organization.js';
import { endpointGroup } from '../../endpoint.js';
import {
  changeOf,
  ORGANIZATION_PATH,
  organizationBody,
  organizationSchema,
  presentOrganization,
  presentSettings,
  SETTINGS_PATH,
  settingsBody,
  settingsSchema,
} from './wire.js';

/** Settings name services of the whole organization, so they are not shown to the key of one workspace. */

const routes = endpointGroup({
  tag: 'Organization',
  access: {
    read: { scope: 'usage:read', workspace: 'refused' },
    write: { scope: 'org:admin', workspace: 'refused' },
  },
});

routes.get(ORGANIZATION_PATH, {
  operationId: 'getOrganization',
  summary: 'The organization of the key, with its settings',
  responses: { 200: { description: 'The organization', schema: organizationSchema } },
  async handle({ orgDb }) {
    return { status: 200, body: presentOrganization(orgDb.orgId, await getOrganization(orgDb)) };
  },
});

routes.patch(ORGANIZATION_PATH, {
  operationId: 'updateOrganization',
  summary: 'Give the organization another name',
  body: organizationBody,
  responses: { 200: { description: 'The organization', schema: organizationSchema } },
  async handle(request) {
    const profile = await renameOrganization(request.orgDb, request.body.name, request);
    return { status: 200, body: presentOrganization(request.orgDb.orgId, profile) };
  },
});

routes.get(SETTINGS_PATH, {
  operationId: 'getOrganizationSettings',
  summary: 'The settings of the organization',
  responses: { 200: { description: 'The settings', schema: settingsSchema } },
  async handle({ orgDb }) {
    return { status: 200, body: presentSettings((await getOrganization(orgDb)).settings) };
  },
});

routes.patch(SETTINGS_PATH, {
  operationId: 'updateOrganizationSettings',
  summary: 'Change settings of the organization',
  description:
    'Absent fields keep their values, null resets a field to its default, a list is replaced as a whole. The change applies on every instance to each event that is sent after the answer; stored events do not change. Deadlines of open claims are computed again where the calendar changes.',
  body: settingsBody,
  responses: { 200: { description: 'All settings, as they are now', schema: settingsSchema } },
  async handle(request, deps) {
    const { orgDb, body, afterCommit } = request;
    const { settings, needsDispatch } = await changeOrganizationSettings(orgDb, changeOf(body), request);
    if (needsDispatch) afterCommit(() => deps.kickDispatcher());
    return { status: 200, body: presentSettings(settings) };
  },
});

export const organizationEndpoints = routes.endpoints;
