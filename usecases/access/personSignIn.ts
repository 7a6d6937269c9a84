import { createHash } from 'node:crypto';
import { recordAudit } from '../../db/access/auditLog.js';
import { listOrganizations } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import type { Role } from '../../domain/access/keyRules.js';
import { nameOfPerson, type Person, roleOfGroups } from '../../domain/access/sessionRules.js';
import { findUuid, formatUuid, publicId } from '../../domain/ids.js';
import { beginSession, type SignInDeps, type SignInRequest } from './sessions.js';

/** The organization that people sign in to, and their roles. */
export interface PersonRules {
  issuer: string;
  /** Id or name; undefined: the organization of the first start. */
  organization: string | undefined;
  roleClaim: string;
  /** Role of the members of each group. */
  roles: ReadonlyMap<string, Role>;
}

/** Longest texts of a person that are kept: the columns' sizes. */
const NAME_CHARS_MAX = 256;
const EMAIL_CHARS_MAX = 254;
const SUB_CHARS_MAX = 255;

/**
 * Begins a session of a person whom the identity provider has authenticated; returns its secret, undefined where none
 * of the person's groups has a role, which is recorded. Throws TypeError when the organization does not exist. Error:
 * too_many_items.
 */
export async function signInPerson(
  deps: SignInDeps,
  claims: Readonly<Record<string, unknown>> & { sub: string },
  rules: PersonRules,
  request: SignInRequest,
): Promise<string | undefined> {
  const orgId = await getOrganizationOf(deps, rules.organization);
  const person = personOf(claims);
  const role = roleOfGroups(groupsOf(claims[rules.roleClaim]), rules.roles);
  if (role === undefined) {
    await new OrgDb(deps.database, orgId).transaction((inside) =>
      recordAudit(inside, {
        action: 'session.refused',
        actor: { kind: 'person', id: nameOfPerson(person) },
        subject: null,
        details: { reason: 'no_role' },
        requestId: request.requestId,
      }),
    );
    return undefined;
  }
  return beginSession(deps, orgId, request, async () => ({
    signIn: 'oidc',
    principal: principalOf(rules.issuer, person.sub),
    keySecretHash: null,
    role,
    scopes: null,
    workspaceId: null,
    personSub: person.sub,
    personName: person.name,
    personEmail: person.email,
  }));
}

async function getOrganizationOf(deps: SignInDeps, wanted: string | undefined): Promise<string> {
  const organizations = await listOrganizations(deps.database);
  const id = wanted === undefined ? undefined : findUuid('org', wanted);
  const found =
    wanted === undefined
      ? organizations.find(({ isDemo }) => !isDemo)
      : organizations.find((one) => one.id === id || one.name === wanted);
  if (!found) throw new TypeError('OIDC_ORGANIZATION names no organization of this installation');
  return found.id;
}

function personOf(claims: Readonly<Record<string, unknown>> & { sub: string }): Person {
  const text = (value: unknown, charsMax: number) =>
    typeof value === 'string' && value !== ''
      ? value.toWellFormed().replaceAll('\0', '').slice(0, charsMax) || null
      : null;
  return {
    sub: claims.sub.slice(0, SUB_CHARS_MAX),
    name: text(claims.name ?? claims.preferred_username, NAME_CHARS_MAX),
    email: text(claims.email, EMAIL_CHARS_MAX),
  };
}

/** Providers send several groups as a list, and one as a text. */
function groupsOf(claim: unknown): string[] {
  const groups = Array.isArray(claim) ? claim : [claim];
  return groups.filter((group) => typeof group === 'string');
}

/** A person's id: the same at each sign-in, and another at another provider. */
function principalOf(issuer: string, sub: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([issuer, sub]))
    .digest('hex');
  return publicId('usr', formatUuid(digest.slice(0, 32)));
}
