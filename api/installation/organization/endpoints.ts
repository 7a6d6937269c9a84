import { getOrganization } from '../../../db/installation/organizations.js';
import {
  changeOrganizationSettings,
  renameOrganization,
} from '../../../usecases/installation/organization.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
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
const READ = { scope: 'usage:read', workspace: 'refused' } as const;
const ADMIN = { scope: 'org:admin', workspace: 'refused' } as const;

const readOrganization = defineEndpoint({
  operationId: 'getOrganization',
  method: 'get',
  path: ORGANIZATION_PATH,
  tag: 'Organization',
  summary: 'The organization of the key, with its settings',
  access: READ,
  responses: { 200: { description: 'The organization', schema: organizationSchema } },
  problems: [],
  async handle({ orgDb }) {
    return { status: 200, body: presentOrganization(orgDb.orgId, await getOrganization(orgDb)) };
  },
});

const changeOrganization = defineEndpoint({
  operationId: 'updateOrganization',
  method: 'patch',
  path: ORGANIZATION_PATH,
  tag: 'Organization',
  summary: 'Give the organization another name',
  access: ADMIN,
  body: organizationBody,
  responses: { 200: { description: 'The organization', schema: organizationSchema } },
  problems: [],
  async handle(request) {
    const profile = await renameOrganization(request.orgDb, request.body.name, request);
    return { status: 200, body: presentOrganization(request.orgDb.orgId, profile) };
  },
});

const readSettings = defineEndpoint({
  operationId: 'getOrganizationSettings',
  method: 'get',
  path: SETTINGS_PATH,
  tag: 'Organization',
  summary: 'The settings of the organization',
  access: READ,
  responses: { 200: { description: 'The settings', schema: settingsSchema } },
  problems: [],
  async handle({ orgDb }) {
    return { status: 200, body: presentSettings((await getOrganization(orgDb)).settings) };
  },
});

const updateSettingsEndpoint = defineEndpoint({
  operationId: 'updateOrganizationSettings',
  method: 'patch',
  path: SETTINGS_PATH,
  tag: 'Organization',
  summary: 'Change settings of the organization',
  description:
    'Fields that are absent stay as they are, null takes a field back to its default, a list is replaced as a whole. Holds on every instance for each event that is sent after the answer; what is stored already stays as it is. The deadlines of open claims are computed anew where the calendar changes.',
  access: ADMIN,
  body: settingsBody,
  responses: { 200: { description: 'All settings, as they are now', schema: settingsSchema } },
  problems: [],
  async handle(request, deps) {
    const { orgDb, body, afterCommit } = request;
    const { settings, needsDispatch } = await changeOrganizationSettings(orgDb, changeOf(body), request);
    if (needsDispatch) afterCommit(() => deps.kickDispatcher());
    return { status: 200, body: presentSettings(settings) };
  },
});

export const organizationEndpoints: readonly Endpoint[] = [
  readOrganization,
  changeOrganization,
  readSettings,
  updateSettingsEndpoint,
];
