import type { TestOrganization } from '../../../support/api.js';
import { type Operation, type OperationsPlace, unknownId } from './operation.js';

const SESSION = '/api/v1/session';
const SESSIONS = '/api/v1/sessions';
const ANY = { scope: 'any', workspace: 'shared' } as const;

const bodyOfSignIn = (owner: TestOrganization) => ({ api_key: owner.adminKey });

/** Signs the owner's admin key in; the public id of the session. */
async function signIn({ api }: OperationsPlace, owner: TestOrganization): Promise<string> {
  const { status } = await api.post(SESSION, bodyOfSignIn(owner));
  if (status !== 204) throw new Error(`the sign-in answered ${status}`);
  const { body } = await api.get(SESSIONS, owner.adminKey);
  return body.sessions[0].id;
}

const ofSession = (
  method: Operation['method'],
  path: string,
  status: number,
  request: (id: string) => object = () => ({}),
): Operation => ({
  method,
  path,
  access: ANY,
  status,
  request: async (place, owner) => request(await signIn(place, owner)),
});

/** Sessions of browsers. */
export const SESSION_OPERATIONS: Record<string, Operation> = {
  createSession: {
    method: 'POST',
    path: SESSION,
    access: 'public',
    status: 204,
    request: async (_place, owner) => ({ json: bodyOfSignIn(owner) }),
  },
  getSession: { ...ofSession('GET', SESSION, 200), request: async () => ({}) },
  getSignInOptions: {
    ...ofSession('GET', `${SESSION}/options`, 200),
    access: 'public',
    request: async () => ({}),
  },
  endSession: { ...ofSession('DELETE', SESSION, 204), request: async () => ({}) },
  listSessions: ofSession('GET', SESSIONS, 200),
  endOneSession: {
    ...ofSession('DELETE', `${SESSIONS}/{id}`, 204, (id) => ({ params: { id } })),
    ids: { id: unknownId('ses') },
    hiddenWithout: 'keys:admin',
  },
  endOwnSessions: ofSession('DELETE', SESSIONS, 204),
};
