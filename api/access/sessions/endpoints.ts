import { findApiKey } from '../../../db/access/keys.js';
import { listSessions } from '../../../db/access/sessions.js';
import { findWorkspace } from '../../../db/access/workspaces.js';
import { getOrganization } from '../../../db/installation/organizations.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { SIGN_INS } from '../../../domain/access/sessionRules.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, isUuidText } from '../../../domain/ids.js';
import {
  endOneSession,
  endOwnSessions,
  type SignInRequest,
  signInWithKey,
  signInWithLink,
} from '../../../usecases/access/sessions.js';
import { type Caller, type EndpointRequest, endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { endedSessionCookie, findSessionSecret, sessionCookie } from '../../pipeline/sessionCookie.js';
import {
  currentSessionSchema,
  listSessionsQuery,
  listSessionsResponse,
  presentCurrentSession,
  presentSession,
  SESSION_PATH,
  SESSIONS_PATH,
  sessionParams,
  signInBody,
  signInOptionsSchema,
} from './wire.js';

const routes = endpointGroup({ tag: 'Sessions', access: { scope: 'any', workspace: 'shared' } });

/** Sessions belong to the organization, also those of a workspace's key. */
const wholeOf = (orgDb: OrgDb) => orgDb.leaveProject('sessions are the whole organization’s');

/** Whose sessions the caller sees and ends; undefined: everybody's. */
const ownOnly = (caller: Caller) => (caller.allows('keys:admin') ? undefined : caller.keyId);

function signInRequestOf(
  request: Pick<EndpointRequest<unknown, unknown, unknown>, 'header' | 'requestId'>,
  baseUrl: string,
): SignInRequest {
  return {
    requestId: request.requestId,
    userAgent: request.header('user-agent'),
    formerSecret: findSessionSecret(request.header('cookie'), baseUrl),
  };
}

routes.post(SESSION_PATH, {
  operationId: 'createSession',
  summary: 'Sign in',
  description:
    'Exchanges an API key, or the token of a one-time link, for a session: the answer sets a cookie that every endpoint but those of ingest accepts as it accepts the key. The session ends with its key, after 12 hours without a request and after 7 days.',
  access: { public: true },
  body: signInBody,
  responses: {
    204: { description: 'Signed in', headers: { 'Set-Cookie': 'The session' } },
  },
  problems: ['unauthenticated', 'too_many_items', 'cross_site_request'],
  async handle(request, deps) {
    const { api_key: key, token = '' } = request.body;
    const baseUrl = deps.settings.baseUrl();
    const sender = signInRequestOf(request, baseUrl);
    request.assertNotForeign();
    const secret =
      key === undefined
        ? await signInWithLink(deps, token, sender)
        : await signInWithKey(deps, await request.identify(key), key, sender);
    return { status: 204, headers: { 'Set-Cookie': sessionCookie(baseUrl, secret) } };
  },
});

routes.get(SESSION_PATH, {
  operationId: 'getSession',
  summary: 'Who is signed in',
  description: 'Role, scopes, organization and workspace of the caller, also of one with a key.',
  responses: { 200: { description: 'The caller', schema: currentSessionSchema } },
  async handle({ caller, orgDb }) {
    const whole = wholeOf(orgDb);
    const organization = await getOrganization(whole);
    const workspace = caller.workspace && (await findWorkspace(whole, caller.workspace.id));
    const key = await findApiKey(whole, caller.keyId);
    const names = { workspaceName: workspace?.name, keyName: key?.name };
    return { status: 200, body: presentCurrentSession(caller, organization, names) };
  },
});

routes.get(`${SESSION_PATH}/options`, {
  operationId: 'getSignInOptions',
  summary: 'Ways to sign in',
  description:
    'With oidc a browser begins at /api/v1/session/oidc/start, which redirects to the identity provider. It returns signed in, or to /#/sign-in?problem= with denied, no_role, expired, unavailable, invalid or failed.',
  access: { public: true },
  responses: { 200: { description: 'The ways that are set up', schema: signInOptionsSchema } },
  async handle(_request, deps) {
    return { status: 200, body: { sign_ins: SIGN_INS.filter((way) => way !== 'oidc' || deps.identity) } };
  },
});

routes.delete(SESSION_PATH, {
  operationId: 'endSession',
  summary: 'Sign out',
  description: 'Ends the session of the cookie. With a key nothing happens: keys are revoked.',
  responses: { 204: { description: 'Signed out', headers: { 'Set-Cookie': 'Removes the session' } } },
  async handle(request, deps) {
    const { session } = request.caller;
    if (session) await endOneSession(wholeOf(request.orgDb), { id: session.id }, request);
    return { status: 204, headers: { 'Set-Cookie': endedSessionCookie(deps.settings.baseUrl()) } };
  },
});

routes.get(SESSIONS_PATH, {
  operationId: 'listSessions',
  csv: 'sessions',
  summary: 'Sessions, newest first',
  description: 'Those that hold: one’s own, and with the scope keys:admin everybody’s.',
  query: listSessionsQuery,
  responses: { 200: { description: 'A page of sessions', schema: listSessionsResponse } },
  async handle({ query, caller, orgDb }) {
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const asked = { limit: query.limit + 1, offset: after ? 0 : query.offset, after };
    const found = await listSessions(wholeOf(orgDb), { principal: ownOnly(caller) }, asked);
    const { shown, page } = cursoredPage(found, query, (one) => [one.createdAtMicros, one.id]);
    const sessions = shown.map((one) => presentSession(one, caller.session?.id));
    return { status: 200, body: { sessions, ...page } };
  },
});

routes.delete(`${SESSIONS_PATH}/{id}`, {
  operationId: 'endOneSession',
  summary: 'End a session',
  description: 'At once: one’s own, and with the scope keys:admin everybody’s.',
  params: sessionParams,
  responses: { 204: { description: 'Ended' } },
  problems: ['not_found'],
  async handle(request) {
    const { params, caller, orgDb } = request;
    const id = findUuid('ses', params.id);
    if (id === undefined) throw new DomainError('not_found', 'there is no session with this id');
    await endOneSession(wholeOf(orgDb), { id, principal: ownOnly(caller) }, request);
    return { status: 204 };
  },
});

routes.delete(SESSIONS_PATH, {
  operationId: 'endOwnSessions',
  summary: 'Sign out everywhere',
  description: 'Ends all sessions of the caller’s key, link or person, the present one too.',
  responses: { 204: { description: 'Ended', headers: { 'Set-Cookie': 'Removes the session' } } },
  async handle(request, deps) {
    await endOwnSessions(wholeOf(request.orgDb), request);
    return { status: 204, headers: { 'Set-Cookie': endedSessionCookie(deps.settings.baseUrl()) } };
  },
});

export const sessionEndpoints = routes.endpoints;
