import type { Role } from '../../domain/access/keyRules.js';
import {
  ENDED_SESSION_DAYS,
  LINK_MINUTES,
  SEEN_SECONDS,
  SESSION_DAYS,
  SESSION_IDLE_HOURS,
  type SignIn,
} from '../../domain/access/sessionRules.js';
import type { Database } from '../client.js';
import { column, defineEntity, listNewest, type TimePage } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';

const IDLE = `interval '${SESSION_IDLE_HOURS} hours'`;

/**
 * Whether a session holds, by the database's clock. One that began with a key holds only while the key does, and with
 * the secret that was given at the sign-in.
 */
const LIVE = `sessions.ended_at is null and sessions.expires_at > now() and sessions.last_seen_at > now() - ${IDLE}
  and (sessions.sign_in <> 'key' or exists (
    select from api_keys k where k.org_id = sessions.org_id and k.id = sessions.principal and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > now())
      and (k.secret_hash = sessions.key_secret_hash
        or (k.previous_secret_hash = sessions.key_secret_hash and k.previous_valid_until > now()))))
  and (sessions.workspace_id is null or exists (
    select from workspaces w where w.org_id = sessions.org_id and w.id = sessions.workspace_id and w.archived_at is null))`;

/** A session with the rights that it has at this moment. */
export interface LiveSession {
  id: string;
  orgId: string;
  signIn: SignIn;
  principal: string;
  role: Role;
  /** null: every scope of the role. */
  scopes: string[] | null;
  workspace: { id: string; projectId: string } | null;
  personSub: string | null;
  personName: string | null;
  personEmail: string | null;
  expiresAtMicros: bigint;
  /** When it ends without a further request. */
  idleAtMicros: bigint;
  /** Whether its last request was recorded long ago. */
  isUnseen: boolean;
}

type FlatSession = Omit<LiveSession, 'workspace'> & { workspaceId: string | null; projectId: string | null };

const AUTHENTICATION = defineEntity<FlatSession>('sessions', {
  id: column('sessions.id'),
  orgId: column('sessions.org_id'),
  signIn: column('sessions.sign_in'),
  principal: column('sessions.principal'),
  role: column('coalesce(sessions.role, k.role)'),
  scopes: column('coalesce(sessions.scopes, k.scopes)'),
  workspaceId: column('w.id'),
  projectId: column('w.project_id'),
  personSub: column('sessions.person_sub'),
  personName: column('sessions.person_name'),
  personEmail: column('sessions.person_email'),
  expiresAtMicros: column('sessions.expires_at'),
  idleAtMicros: column(`least(sessions.expires_at, sessions.last_seen_at + ${IDLE})`),
  isUnseen: column(`sessions.last_seen_at <= now() - interval '${SEEN_SECONDS} seconds'`),
});

/** Finds a session that holds. Read at each request: what ends it takes effect at once, on every instance. */
export async function findSession(database: Database, secretHash: Buffer): Promise<LiveSession | undefined> {
  const [row] = await unscoped(database, 'authenticate: the session tells the organization', (system) =>
    system.rows<FlatSession>(
      `select ${AUTHENTICATION.columns} from sessions
       left join api_keys k on sessions.sign_in = 'key' and k.org_id = sessions.org_id and k.id = sessions.principal
       left join workspaces w on w.org_id = sessions.org_id and w.id = coalesce(sessions.workspace_id, k.workspace_id)
       where sessions.secret_hash = $1 and ${LIVE} limit 1`,
      [secretHash],
      'find-session',
    ),
  );
  if (!row) return undefined;
  const { workspaceId, projectId, ...session } = row;
  const workspace = workspaceId === null || projectId === null ? null : { id: workspaceId, projectId };
  return { ...session, workspace };
}

/** Records a request of a session; another process may have done so meanwhile. */
export async function touchSession(database: Database, { orgId, id }: { orgId: string; id: string }) {
  await unscoped(database, 'the last request of a session of any organization', (system) =>
    system.run(
      `update sessions set last_seen_at = now()
       where org_id = $1 and id = $2 and last_seen_at <= now() - interval '${SEEN_SECONDS} seconds'`,
      [orgId, id],
    ),
  );
}

export interface NewSession {
  id: string;
  secretHash: Buffer;
  signIn: SignIn;
  principal: string;
  /** The digest of the key's secret; null: it did not begin with a key. */
  keySecretHash: Buffer | null;
  /** null: those of the key. */
  role: Role | null;
  scopes: readonly string[] | null;
  workspaceId: string | null;
  personSub: string | null;
  personName: string | null;
  personEmail: string | null;
  userAgent: string | null;
}

export async function insertSession(inside: OrgDb, session: NewSession): Promise<void> {
  await inside.run(
    `insert into sessions (org_id, id, secret_hash, sign_in, principal, key_secret_hash, role, scopes, workspace_id,
       person_sub, person_name, person_email, user_agent, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now() + interval '${SESSION_DAYS} days')`,
    [
      inside.orgId,
      session.id,
      session.secretHash,
      session.signIn,
      session.principal,
      session.keySecretHash,
      session.role,
      session.scopes,
      session.workspaceId,
      session.personSub,
      session.personName,
      session.personEmail,
      session.userAgent,
    ],
  );
}

/** Records that somebody has signed in to the organization. */
export async function recordFirstSignIn(inside: OrgDb): Promise<void> {
  await inside.run('update organizations set signed_in_at = now() where id = $1 and signed_in_at is null', [
    inside.orgId,
  ]);
}

/** Whether somebody has ever signed in to the organization. */
export async function hasSignedIn(orgDb: OrgDb): Promise<boolean> {
  const rows = await orgDb.rows('select from organizations where id = $1 and signed_in_at is not null', [
    orgDb.orgId,
  ]);
  return rows.length > 0;
}

/** A session as its organization sees it. */
export interface ListedSession {
  id: string;
  signIn: SignIn;
  principal: string;
  /** The name of its key or person. */
  name: string | null;
  personEmail: string | null;
  role: Role;
  /** A uuid. */
  workspaceId: string | null;
  userAgent: string | null;
  createdAtMicros: bigint;
  lastSeenAtMicros: bigint;
  expiresAtMicros: bigint;
}

const ofKey = (name: string) =>
  `(select k.${name} from api_keys k where k.org_id = sessions.org_id and k.id = sessions.principal)`;

const LISTED = defineEntity<ListedSession>('sessions', {
  id: column(),
  signIn: column(),
  principal: column(),
  name: column(`coalesce(person_name, ${ofKey('name')})`),
  personEmail: column(),
  role: column(`coalesce(role, ${ofKey('role')})`),
  workspaceId: column(`coalesce(workspace_id, ${ofKey('workspace_id')})`),
  userAgent: column(),
  createdAtMicros: column(),
  lastSeenAtMicros: column(),
  expiresAtMicros: column(),
});

/** Sessions that hold, newest first; of one principal, or of all. */
export async function listSessions(
  orgDb: OrgDb,
  filter: { principal?: string | undefined },
  page: TimePage,
): Promise<ListedSession[]> {
  return listNewest(orgDb, LISTED, {
    where: { principal: filter.principal },
    and: (query) => query.whereRaw(LIVE),
    page,
  });
}

export async function countSessions(orgDb: OrgDb): Promise<number> {
  const [row] = await orgDb.rows<{ sessions: number }>(
    `select count(*) as sessions from sessions where org_id = $1 and ${LIVE}`,
    [orgDb.orgId],
  );
  return row?.sessions ?? 0;
}

/**
 * Ends sessions that hold: one, those of a principal, or those of a principal besides its newest. Returns the number.
 */
export async function endSessions(
  inside: OrgDb,
  which: { id?: string | undefined; principal?: string | undefined; exceptNewest?: number },
  endedBy: string,
): Promise<number> {
  return inside.run(
    `update sessions set ended_at = now(), ended_by = $4
     where org_id = $1 and ($2::uuid is null or id = $2) and ($3::text is null or principal = $3) and ${LIVE}
       and ($5::integer is null or id not in (
         select s.id from sessions s where s.org_id = $1 and s.principal = $3 and s.ended_at is null
         order by s.created_at desc, s.id desc limit $5))`,
    [inside.orgId, which.id ?? null, which.principal ?? null, endedBy, which.exceptNewest ?? null],
  );
}

/** The rights of a one-time link's session. */
export interface LinkTerms {
  role: Role;
  scopes: readonly string[] | null;
  /** A uuid. */
  workspaceId: string | null;
}

export async function insertSignInLink(
  inside: OrgDb,
  link: LinkTerms & { id: string; tokenHash: Buffer; createdBy: string },
): Promise<void> {
  await inside.run(
    `insert into sign_in_links (org_id, id, token_hash, role, scopes, workspace_id, created_by, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, now() + interval '${LINK_MINUTES} minutes')`,
    [inside.orgId, link.id, link.tokenHash, link.role, link.scopes, link.workspaceId, link.createdBy],
  );
}

/** The organization of a one-time link, used or not. */
export async function findLinkOrganization(
  database: Database,
  tokenHash: Buffer,
): Promise<string | undefined> {
  const [row] = await unscoped(database, 'sign-in: the link tells the organization', (system) =>
    system.rows<{ org_id: string }>('select org_id from sign_in_links where token_hash = $1 limit 1', [
      tokenHash,
    ]),
  );
  return row?.org_id;
}

/** Uses a one-time link up; undefined: it was used before, or has expired. Of two at once only one gets it. */
export async function takeSignInLink(
  inside: OrgDb,
  tokenHash: Buffer,
): Promise<(LinkTerms & { id: string }) | undefined> {
  const [link] = await inside.rows<LinkTerms & { id: string }>(
    `update sign_in_links set used_at = now()
     where org_id = $1 and token_hash = $2 and used_at is null and expires_at > now()
     returning id, role, scopes, workspace_id as "workspaceId"`,
    [inside.orgId, tokenHash],
  );
  return link;
}

/** Deletes sessions and links that ended long ago; returns their number. */
export async function pruneSessions(database: Database): Promise<number> {
  return unscoped(database, 'sessions that ended long ago', async (system) => {
    const before = `now() - interval '${ENDED_SESSION_DAYS} days'`;
    const ended = await system.run(
      `delete from sessions where least(ended_at, expires_at, last_seen_at + ${IDLE}) < ${before}`,
    );
    return ended + (await system.run(`delete from sign_in_links where expires_at < ${before}`));
  });
}
