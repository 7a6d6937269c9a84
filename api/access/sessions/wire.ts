import { z } from 'zod';
import type { ListedSession } from '../../../db/access/sessions.js';
import type { OrganizationProfile } from '../../../db/installation/organizations.js';
import { ROLES, SCOPES, type Scope } from '../../../domain/access/keyRules.js';
import { SIGN_INS } from '../../../domain/access/sessionRules.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import type { Caller } from '../../endpoint.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';

export const SESSION_PATH = '/api/v1/session';
export const SESSIONS_PATH = '/api/v1/sessions';

const ONE_OF = 'give either api_key or token';
const secretField = (what: string) =>
  z.string({ error: `must be ${what}` }).max(256, { error: 'is too long' });

export const signInBody = z
  .strictObject({
    api_key: secretField('an API key').optional().meta({ description: 'tu_live_…' }),
    token: secretField('the token of a one-time link').optional(),
  })
  .refine(({ api_key: key, token }) => (key === undefined) !== (token === undefined), { error: ONE_OF })
  .meta({
    id: 'SignIn',
    description: 'Exactly one of the two.',
  });

const signInField = z.enum(SIGN_INS).meta({
  description: 'key: an API key; link: a one-time link; oidc: the identity provider',
});
const personField = z.strictObject({ name: z.string().nullable(), email: z.string().nullable() });

export const currentSessionSchema = z
  .strictObject({
    id: z.string().nullable().meta({ description: 'null: the request came with a key and has no session' }),
    sign_in: signInField,
    role: z.enum(ROLES),
    scopes: z.array(z.enum(SCOPES)).meta({ description: 'All that the caller may do' }),
    organization: z.strictObject({
      id: z.string(),
      name: z.string(),
      time_zone: z.string().meta({ description: 'Of its settings', example: 'Europe/Berlin' }),
      is_demo: z.boolean().meta({ description: 'The invented company of POST /api/v1/demo' }),
    }),
    workspace: z
      .strictObject({ id: z.string(), name: z.string(), project_id: z.string() })
      .nullable()
      .meta({ description: 'null: the whole organization' }),
    key: z.strictObject({ id: z.string(), name: z.string() }).nullable(),
    person: personField.nullable(),
    expires_at: z.string().nullable(),
    idle_expires_at: z.string().nullable().meta({ description: 'When it ends without a further request' }),
  })
  .meta({ id: 'CurrentSession' });

export const signInOptionsSchema = z
  .strictObject({ sign_ins: z.array(signInField) })
  .meta({ id: 'SignInOptions' });

export const sessionParams = z.object({
  id: z.string().meta({ example: 'ses_0199f3a2c4d57e3a8f00112233445566' }),
});

export const listSessionsQuery = z.object(pageParameters);

const sessionSchema = z
  .strictObject({
    id: z.string(),
    sign_in: signInField,
    principal: z.string().meta({ description: 'Who signed in: key_…, lnk_… (a one-time link) or usr_…' }),
    name: z.string().nullable().meta({ description: 'The name of the key or the person' }),
    email: z.string().nullable(),
    role: z.enum(ROLES),
    workspace_id: z.string().nullable(),
    user_agent: z.string().nullable(),
    created_at: z.string(),
    last_seen_at: z.string().meta({ description: 'Written at most once a minute' }),
    expires_at: z.string(),
    is_current: z.boolean().meta({ description: 'The session of this request' }),
  })
  .meta({ id: 'Session' });

export const listSessionsResponse = z.strictObject({
  sessions: z.array(sessionSchema),
  ...cursoredPageFields,
});

export function presentCurrentSession(
  caller: Caller,
  organization: Pick<OrganizationProfile, 'name' | 'isDemo' | 'settings'>,
  { workspaceName, keyName }: { workspaceName: string | undefined; keyName: string | undefined },
): z.output<typeof currentSessionSchema> {
  const { session, workspace } = caller;
  return {
    id: session ? publicId('ses', session.id) : null,
    sign_in: session?.signIn ?? 'key',
    role: caller.role,
    scopes: SCOPES.filter((scope: Scope) => caller.allows(scope)),
    organization: {
      id: publicId('org', caller.orgId),
      name: organization.name,
      time_zone: organization.settings.timeZone,
      is_demo: organization.isDemo,
    },
    workspace:
      workspace === undefined
        ? null
        : {
            id: publicId('wsp', workspace.id),
            name: workspaceName ?? workspace.projectId,
            project_id: workspace.projectId,
          },
    key: keyName === undefined ? null : { id: caller.keyId, name: keyName },
    person: session?.signIn === 'oidc' ? { name: session.personName, email: session.personEmail } : null,
    expires_at: isoOrNull(session?.expiresAtMicros ?? null),
    idle_expires_at: isoOrNull(session?.idleAtMicros ?? null),
  };
}

export function presentSession(
  session: ListedSession,
  currentId: string | undefined,
): z.output<typeof sessionSchema> {
  return {
    id: publicId('ses', session.id),
    sign_in: session.signIn,
    principal: session.principal,
    name: session.name,
    email: session.personEmail,
    role: session.role,
    workspace_id: session.workspaceId === null ? null : publicId('wsp', session.workspaceId),
    user_agent: session.userAgent,
    created_at: isoFromMicros(session.createdAtMicros),
    last_seen_at: isoFromMicros(session.lastSeenAtMicros),
    expires_at: isoFromMicros(session.expiresAtMicros),
    is_current: session.id === currentId,
  };
}
