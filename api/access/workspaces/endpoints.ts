import { findWorkspace, listWorkspaces } from '../../../db/access/workspaces.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, isUuidText, newUuid, publicId } from '../../../domain/ids.js';
import { authorOf } from '../../../usecases/access/recordAction.js';
import {
  archiveWithKeys,
  changeWorkspace,
  createWorkspace,
} from '../../../usecases/access/workspaceChanges.js';
import { endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import {
  createWorkspaceBody,
  listWorkspacesQuery,
  listWorkspacesResponse,
  presentWorkspace,
  updateWorkspaceBody,
  WORKSPACES_PATH,
  workspaceParams,
  workspaceSchema,
} from './wire.js';

function notFound(): DomainError {
  return new DomainError('not_found', 'there is no workspace with this id');
}

function uuidOfWorkspace(id: string): string {
  const uuid = findUuid('wsp', id);
  if (uuid === undefined) throw notFound();
  return uuid;
}

const routes = endpointGroup({
  tag: 'Workspaces',
  access: {
    read: { scope: 'workspaces:read', workspace: 'refused' },
    write: { scope: 'workspaces:admin', workspace: 'refused' },
  },
});

routes.post(WORKSPACES_PATH, {
  operationId: 'createWorkspace',
  summary: 'Make a workspace',
  description:
    'Keys that are bound to it label their calls with its project and read the calls of that project alone.',
  body: createWorkspaceBody,
  responses: {
    201: { description: 'The workspace', schema: workspaceSchema, headers: { Location: 'The workspace' } },
  },
  problems: ['invalid_body', 'project_taken', 'too_many_items'],
  async handle(request, deps) {
    const { body, orgDb } = request;
    const id = newUuid(deps.nowMicros());
    const projectId = body.project_id ?? publicId('wsp', id);
    const wanted = { id, name: body.name, projectId };
    const workspace = presentWorkspace(await createWorkspace(orgDb, wanted, authorOf(request)));
    return {
      status: 201,
      headers: { Location: `${WORKSPACES_PATH}/${workspace.id}` },
      body: workspace,
    };
  },
});

routes.get(WORKSPACES_PATH, {
  operationId: 'listWorkspaces',
  csv: 'workspaces',
  summary: 'Workspaces, newest first',
  query: listWorkspacesQuery,
  responses: { 200: { description: 'A page of workspaces', schema: listWorkspacesResponse } },
  async handle({ query, orgDb }) {
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const found = await listWorkspaces(
      orgDb,
      { archived: query.archived, projectId: query.project_id },
      { limit: query.limit + 1, offset: after ? 0 : query.offset, after },
    );
    const { shown, page } = cursoredPage(found, query, (one) => [one.createdAtMicros, one.id]);
    return { status: 200, body: { workspaces: shown.map(presentWorkspace), ...page } };
  },
});

routes.get(`${WORKSPACES_PATH}/{id}`, {
  operationId: 'getWorkspace',
  summary: 'One workspace',
  params: workspaceParams,
  responses: { 200: { description: 'The workspace', schema: workspaceSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const workspace = await findWorkspace(orgDb, uuidOfWorkspace(params.id));
    if (!workspace) throw notFound();
    return { status: 200, body: presentWorkspace(workspace) };
  },
});

routes.patch(`${WORKSPACES_PATH}/{id}`, {
  operationId: 'updateWorkspace',
  summary: 'Rename a workspace',
  description: 'Its project never changes, because calls keep their labels.',
  params: workspaceParams,
  body: updateWorkspaceBody,
  responses: { 200: { description: 'The workspace as it is now', schema: workspaceSchema } },
  problems: ['not_found', 'invalid_body', 'workspace_archived'],
  async handle(request) {
    const { params, body, orgDb } = request;
    const id = uuidOfWorkspace(params.id);
    const workspace = await changeWorkspace(orgDb, id, { name: body.name }, authorOf(request));
    return { status: 200, body: presentWorkspace(workspace) };
  },
});

routes.delete(`${WORKSPACES_PATH}/{id}`, {
  operationId: 'archiveWorkspace',
  summary: 'Archive a workspace',
  description:
    'Its keys are revoked at once and for good. Its calls keep their label, and another workspace may take the project.',
  params: workspaceParams,
  responses: { 204: { description: 'Archived' } },
  problems: ['not_found'],
  async handle(request) {
    const { params, orgDb } = request;
    if (!(await archiveWithKeys(orgDb, uuidOfWorkspace(params.id), authorOf(request)))) throw notFound();
    return { status: 204 };
  },
});

export const workspaceEndpoints = routes.endpoints;
