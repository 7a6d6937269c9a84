import { recordAudit } from '../../db/access/auditLog.js';
import { lockKeyRing } from '../../db/access/keys.js';
import {
  countSessions,
  endSessions,
  findLinkOrganization,
  findSession,
  insertSession,
  insertSignInLink,
  type LinkTerms,
  type LiveSession,
  type NewSession,
  recordFirstSignIn,
  takeSignInLink,
  touchSession,
} from '../../db/access/sessions.js';
import type { Database } from '../../db/client.js';
import { OrgDb } from '../../db/orgDb.js';
import type { AuditActor } from '../../domain/access/auditLog.js';
import { base62FromBytes } from '../../domain/access/keyRules.js';
import {
  isLinkToken,
  isSessionSecret,
  nameOfPerson,
  SESSION_PREFIX,
  SESSION_SECRET_CHARS,
  SESSIONS_MAX,
  SESSIONS_OF_ONE_MAX,
} from '../../domain/access/sessionRules.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { hashSecret, spareRandomBytes } from '../../platform/secretBox.js';
import type { UseCaseDeps } from '../useCaseDeps.js';
import { digestKey, type KeyAuthor } from './keyChanges.js';
import { type RequestAuthor, recordAction } from './recordAction.js';

/** Dependencies of a sign-in. */
export interface SignInDeps extends UseCaseDeps {
  nowMicros(): bigint;
}

/** The circumstances of a sign-in. */
export interface SignInRequest {
  requestId: string;
  userAgent: string | undefined;
  /** The session that the browser had before; it ends, so that a person who knows it does not share the new one. */
  formerSecret: string | undefined;
}

type Terms = Omit<NewSession, 'id' | 'secretHash' | 'userAgent'>;

const NOBODY = { personSub: null, personName: null, personEmail: null };
const USER_AGENT_CHARS_MAX = 256;
/** The name of a person is longer at some providers. */
const AUTHOR_CHARS_MAX = 128;

function drawSecret(): string {
  return base62FromBytes(spareRandomBytes(SESSION_SECRET_CHARS), SESSION_SECRET_CHARS);
}

/** Begins a session of a key that was just authenticated; returns the session's secret. Error: too_many_items. */
export async function signInWithKey(
  deps: SignInDeps,
  { orgId, keyId }: { orgId: string; keyId: string },
  keyText: string,
  request: SignInRequest,
): Promise<string> {
  const terms: Terms = {
    signIn: 'key',
    principal: keyId,
    keySecretHash: digestKey(keyText)?.secretHash ?? null,
    ...{ role: null, scopes: null, workspaceId: null, ...NOBODY },
  };
  return beginSession(deps, orgId, request, async () => terms);
}

/** Uses a one-time link up and begins its session. Errors: unauthenticated, too_many_items. */
export async function signInWithLink(
  deps: SignInDeps,
  token: string,
  request: SignInRequest,
): Promise<string> {
  const tokenHash = hashSecret(token);
  const orgId = isLinkToken(token) ? await findLinkOrganization(deps.database, tokenHash) : undefined;
  if (orgId === undefined) throw unusable();
  return beginSession(deps, orgId, request, async (inside) => {
    const link = await takeSignInLink(inside, tokenHash);
    if (!link) throw unusable();
    const { id, ...terms } = link;
    return { signIn: 'link', principal: publicId('lnk', id), keySecretHash: null, ...NOBODY, ...terms };
  });
}

function unusable(): DomainError {
  return new DomainError(
    'unauthenticated',
    'the sign-in link was used before or is older than ten minutes: ./trueup sign-in prints another one',
  );
}

/** Begins a session with the terms that are read in its transaction; returns its secret. Error: too_many_items. */
export async function beginSession(
  deps: SignInDeps,
  orgId: string,
  request: SignInRequest,
  makeTerms: (inside: OrgDb) => Promise<Terms>,
): Promise<string> {
  const secret = SESSION_PREFIX + drawSecret();
  const id = newUuid(deps.nowMicros());
  await new OrgDb(deps.database, orgId).transaction(async (inside) => {
    await lockKeyRing(inside);
    const terms = await makeTerms(inside);
    const { principal } = terms;
    await endSessions(inside, { principal, exceptNewest: SESSIONS_OF_ONE_MAX - 1 }, 'limit');
    if ((await countSessions(inside)) >= SESSIONS_MAX)
      throw new DomainError(
        'too_many_items',
        `an organization can have ${SESSIONS_MAX} sessions: end some that are no longer used`,
      );
    const userAgent = request.userAgent?.slice(0, USER_AGENT_CHARS_MAX) || null;
    await insertSession(inside, { id, secretHash: hashSecret(secret), ...terms, userAgent });
    await recordFirstSignIn(inside);
    await recordAudit(inside, {
      action: 'session.created',
      actor: actorOfSession(terms),
      subject: { type: 'session', id: publicId('ses', id) },
      details: { sign_in: terms.signIn },
      requestId: request.requestId,
    });
  });
  await endFormer(deps, request);
  return secret;
}

/** The actor of a session's requests. */
export function actorOfSession(
  session: Pick<LiveSession, 'signIn' | 'principal' | 'personSub' | 'personEmail'>,
): AuditActor {
  const { signIn, principal, personSub, personEmail } = session;
  if (signIn !== 'oidc' || personSub === null)
    return { kind: signIn === 'key' ? 'key' : 'link', id: principal };
  return { kind: 'person', id: nameOfPerson({ sub: personSub, email: personEmail }) };
}

async function endFormer(
  { database }: SignInDeps,
  { formerSecret, requestId }: SignInRequest,
): Promise<void> {
  const former = formerSecret === undefined ? undefined : await findSessionOf(database, formerSecret);
  if (!former) return;
  const caller = { keyId: former.principal, actor: actorOfSession(former) };
  await endOneSession(new OrgDb(database, former.orgId), { id: former.id }, { caller, requestId });
}

/** The session of a cookie's text; undefined: it has ended, or never was. */
export async function findSessionOf(database: Database, secret: string): Promise<LiveSession | undefined> {
  return isSessionSecret(secret) ? findSession(database, hashSecret(secret)) : undefined;
}

/** Records a session's request, without delaying or failing it. */
export function noteSeen(database: Database, session: LiveSession): void {
  if (session.isUnseen) touchSession(database, session).catch(() => undefined);
}

/** Ends a session, of the principal alone where one is given. Error: not_found. */
export async function endOneSession(
  orgDb: OrgDb,
  which: { id: string; principal?: string | undefined },
  author: RequestAuthor,
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    const ended = await endSessions(inside, which, author.caller.keyId);
    if (ended === 0) throw new DomainError('not_found', 'there is no session with this id');
    await recordAction(inside, author, 'session.ended', {
      type: 'session',
      id: publicId('ses', which.id),
    });
  });
}

/** Ends all sessions of the caller, the present one too. */
export async function endOwnSessions(orgDb: OrgDb, author: RequestAuthor): Promise<void> {
  await orgDb.transaction(async (inside) => {
    const sessions = await endSessions(inside, { principal: author.caller.keyId }, author.caller.keyId);
    if (sessions > 0) await recordAction(inside, author, 'session.ended_all', null, { sessions });
  });
}

/** Makes a one-time link; returns its token, which is shown once. */
export async function createSignInLink(
  orgDb: OrgDb,
  terms: LinkTerms,
  by: Pick<KeyAuthor, 'actor' | 'requestId' | 'nowMicros'>,
): Promise<string> {
  const token = drawSecret();
  const id = newUuid(by.nowMicros);
  const { actor, requestId } = by;
  const createdBy = actor.id.slice(0, AUTHOR_CHARS_MAX);
  await orgDb.transaction(async (inside) => {
    await insertSignInLink(inside, { ...terms, id, tokenHash: hashSecret(token), createdBy });
    await recordAudit(inside, {
      action: 'session.link_created',
      actor,
      subject: { type: 'sign_in_link', id: publicId('lnk', id) },
      details: { role: terms.role, scopes: terms.scopes },
      requestId,
    });
  });
  return token;
}

/** The address at which a one-time link is used. The token is in the fragment, which browsers send to no server. */
export function signInAddress(baseUrl: string, token: string): string {
  return `${baseUrl}/#/welcome/${token}`;
}
