import { z } from 'zod';
import type { Workspace } from '../../../db/access/workspaces.js';
import { stripText } from '../../../domain/events/jsonValues.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { booleanParameter, filterParameter, nameField } from '../../query.js';

export const WORKSPACES_PATH = '/api/v1/workspaces';

/** A project id as events store it. Text that ingest would change is refused, because it could never match a call. */
const projectField = z
  .string()
  .min(1, { error: 'must not be empty' })
  .max(512, { error: 'must have at most 512 characters' })
  .refine((text) => stripText(text) === text, {
    error: 'must be printable ASCII, as calls are stored with it',
  });

export const createWorkspaceBody = z
  .strictObject({
    name: nameField,
    project_id: projectField.optional().meta({
      description:
        'The label that its calls carry, for good. One that calls carry already may be named; by default the id of the workspace',
    }),
  })
  .meta({ id: 'NewWorkspace' });

export const updateWorkspaceBody = z
  .strictObject({ name: nameField.optional() })
  .meta({ id: 'WorkspaceChanges' });

export const workspaceParams = z.object({
  id: z.string().meta({ example: 'wsp_0199f3a2c4d57e3a8f00112233445566' }),
});

export const listWorkspacesQuery = z.object({
  archived: booleanParameter
    .optional()
    .meta({ description: 'Only archived ones, or only the others; absent: all' }),
  project_id: filterParameter.optional(),
  ...pageParameters,
});

export const workspaceSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    project_id: z.string(),
    created_at: z.string(),
    created_by: z.string().meta({ description: 'The id of the key that made it, or a command' }),
    archived_at: z.string().nullable(),
  })
  .meta({ id: 'Workspace' });

export const listWorkspacesResponse = z.strictObject({
  workspaces: z.array(workspaceSchema),
  ...cursoredPageFields,
});

export function presentWorkspace(workspace: Workspace): z.output<typeof workspaceSchema> {
  return {
    id: publicId('wsp', workspace.id),
    name: workspace.name,
    project_id: workspace.projectId,
    created_at: isoFromMicros(workspace.createdAtMicros),
    created_by: workspace.createdBy,
    archived_at: isoOrNull(workspace.archivedAtMicros),
  };
}
