import {
  getOrganization,
  renameOrganization,
  updateSettings,
} from '../../../db/installation/organizations.js';
import type { OrgDb } from '../../../db/orgDb.js';
import type { AuditDetails } from '../../../domain/access/auditLog/actions.js';
import { publicId } from '../../../domain/ids.js';
import { describeChange } from '../../../domain/installation/describeChange.js';
import { changedFields, SETTING_FIELDS } from '../../../domain/installation/settings.js';
import { type RequestAuthor, recordAction } from '../../../usecases/access/recordAction.js';
import { recountDeadlines } from '../../../usecases/claims/reminders.js';
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

/** What business days follow from. */
const CALENDAR_FIELDS: readonly string[] = [SETTING_FIELDS.holidays, SETTING_FIELDS.timeZone];

/** In the transaction of the change, as its last statement. */
function record(inside: OrgDb, request: RequestAuthor, details: AuditDetails): Promise<void> {
  const subject = { type: 'organization', id: publicId('org', inside.orgId) };
  return recordAction(inside, request, 'settings.changed', subject, details);
}

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
    const { name } = request.body;
    const profile = await request.orgDb.transaction(async (inside) => {
      const before = name === undefined ? name : await renameOrganization(inside, name);
      const renamed = await getOrganization(inside);
      if (before !== undefined && before !== renamed.name)
        await record(inside, request, { fields: ['name'], old_name: before, new_name: renamed.name });
      return renamed;
    });
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

const changeSettings = defineEndpoint({
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
    const settings = await request.orgDb.transaction(async (inside) => {
      const { before, after } = await updateSettings(inside, changeOf(request.body));
      const changed = changedFields(before, after);
      if (changed.some((field) => CALENDAR_FIELDS.includes(field)) && (await recountDeadlines(inside)) > 0)
        request.afterCommit(() => deps.kickDispatcher());
      if (changed.length > 0) await record(inside, request, describeChange(before, after));
      return after;
    });
    return { status: 200, body: presentSettings(settings) };
  },
});

export const organizationEndpoints: readonly Endpoint[] = [
  readOrganization,
  changeOrganization,
  readSettings,
  changeSettings,
];
