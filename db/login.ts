import pg from 'pg';
import { INSTALLATION_LOCKS } from './locks.js';

/** The roles that the API and the worker take in their transactions; see the first migration. */
const ROLES = ['app_rw', 'app_system', 'app_workspace'] as const;

/** The login may connect and take those roles. Without a role it has no right to any table. */
const ATTRIBUTES = 'login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls';

export interface Login {
  name: string;
  password: string;
}

export function loginOf(url: string): Login {
  const { username, password } = new URL(url);
  return { name: decodeURIComponent(username), password: decodeURIComponent(password) };
}

export function withLoginOf(url: string, other: string): string {
  const { username, password } = new URL(other);
  if (username === '') return url;
  return Object.assign(new URL(url), { username, password }).toString();
}

/**
 * Creates or corrects a login for the API and the worker: its password, its attributes and its roles. For a login that
 * belongs to this installation alone. `ownerUrl` is a superuser's.
 */
export async function makeLogin(ownerUrl: string, { name, password }: Login): Promise<void> {
  // Changing the owner would revoke its rights.
  if (name === loginOf(ownerUrl).name) throw new TypeError(`${name} is the owner`);
  await asOwner(ownerUrl, async (client) => {
    const verb = (await hasRole(client, name)) ? 'alter' : 'create';
    await client.query(
      `${verb} role ${pg.escapeIdentifier(name)} ${ATTRIBUTES} password ${pg.escapeLiteral(password)}`,
    );
    await grantRoles(client, name);
  });
}

/**
 * Makes the login of `url` usable, if it is not the owner: creates it where it is missing and grants the roles that it
 * lacks. Its password and attributes stay, since it may also serve others.
 * @throws Postgres's refusal where the login exists with another password.
 */
export async function admitLogin(ownerUrl: string, url: string): Promise<void> {
  const login = loginOf(url);
  if (login.name === '' || login.name === loginOf(ownerUrl).name) return;
  const sessionUser = await findSessionUser(url).catch((error: { code?: string }) => {
    if (error.code === '28P01' || error.code === '28000') return error;
    throw error;
  });
  await asOwner(ownerUrl, async (client) => {
    if (typeof sessionUser !== 'string') {
      if (await hasRole(client, login.name)) throw sessionUser;
      await client.query(
        `create role ${pg.escapeIdentifier(login.name)} login noinherit password ${pg.escapeLiteral(login.password)}`,
      );
    }
    // A pooler may use another name for the login.
    await grantRoles(client, typeof sessionUser === 'string' ? sessionUser : login.name);
  });
}

async function asOwner(ownerUrl: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: ownerUrl, application_name: 'trueup-migrate' });
  await client.connect();
  try {
    await client.query('begin');
    await client.query('select pg_advisory_xact_lock($1)', [INSTALLATION_LOCKS.migration]);
    await work(client);
    await client.query('commit');
  } finally {
    await client.end();
  }
}

async function hasRole(client: pg.Client, name: string): Promise<boolean> {
  const { rowCount } = await client.query('select from pg_roles where rolname = $1', [name]);
  return rowCount === 1;
}

async function grantRoles(client: pg.Client, name: string): Promise<void> {
  for (const role of ROLES) {
    const { rows } = await client.query<{ member: boolean }>(
      `select pg_has_role($1::name, $2::name, 'MEMBER') as member`,
      [name, role],
    );
    if (!rows[0]?.member) await client.query(`grant ${role} to ${pg.escapeIdentifier(name)}`);
  }
}

async function findSessionUser(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>('select session_user as name');
    return rows[0]?.name ?? '';
  });
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: 'trueup-start' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Rights of a login besides taking the roles, in words; empty for a correct login. */
export async function listExcessiveRights(url: string): Promise<string[]> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<Record<'superuser' | 'bypass' | 'db' | 'role' | 'owner', boolean>>(
      `select rolsuper as superuser, rolbypassrls as bypass, rolcreatedb as db, rolcreaterole as role,
         exists (select from pg_class
           where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace and pg_has_role(session_user, relowner, 'MEMBER')) as owner
       from pg_roles where rolname = session_user`,
    );
    const [row] = rows;
    if (!row) return [];
    // A superuser has all other rights.
    if (row.superuser) return ['is a superuser'];
    const rights = {
      'bypasses row-level security': row.bypass,
      'may make databases': row.db,
      'may make roles': row.role,
      'owns tables': row.owner,
    };
    return Object.entries(rights).flatMap(([words, has]) => (has ? [words] : []));
  });
}
