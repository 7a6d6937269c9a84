/**
 * What a key may do: roles, scopes, and which scopes each role can hold. docs/access.md shows the same as a table.
 */
export const ROLES = ['admin', 'member', 'auditor', 'ingest'] as const;
export type Role = (typeof ROLES)[number];

export const SCOPES = [
  'ingest',
  'events:read',
  'payloads:read',
  'usage:read',
  'billing:read',
  'billing:write',
  'pricing:read',
  'pricing:write',
  'policies:read',
  'policies:write',
  'enforcement:read',
  'enforcement:write',
  'alerts:read',
  'alerts:write',
  'reconciliation:read',
  'reconciliation:write',
  'financial:read',
  'financial:write',
  'claims:read',
  'claims:write',
  'reports:read',
  'reports:write',
  'workspaces:read',
  'workspaces:admin',
  'keys:admin',
  'org:admin',
  'audit:read',
  'webhooks:admin',
] as const;
export type Scope = (typeof SCOPES)[number];

/** Scopes that only the role admin can hold: their refusal says `admin role required`. */
export const ADMIN_ONLY_SCOPES: ReadonlySet<Scope> = new Set<Scope>([
  'billing:write',
  'pricing:write',
  'policies:write',
  'enforcement:write',
  'workspaces:admin',
  'keys:admin',
  'org:admin',
  'webhooks:admin',
]);

/** What changes nothing. */
export const READ_SCOPES: readonly Scope[] = SCOPES.filter((scope) => scope.endsWith(':read'));

/** The most that each role can hold. */
export const ROLE_SCOPES: Record<Role, ReadonlySet<Scope>> = {
  admin: new Set(SCOPES),
  // Drafts and merges claims and keeps the books, but decides nothing for the organization.
  member: new Set(SCOPES.filter((scope) => !ADMIN_ONLY_SCOPES.has(scope))),
  auditor: new Set(READ_SCOPES),
  ingest: new Set<Scope>(['ingest']),
};

/** Whether a key of this role, narrowed to `scopes` where it is, may do what needs `scope`. */
export function allowsScope(role: Role, scopes: readonly string[] | null, scope: Scope): boolean {
  return ROLE_SCOPES[role].has(scope) && (scopes === null || scopes.includes(scope));
}
