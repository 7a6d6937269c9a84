/**
 * What a key may do (decisions.md 98 and 99): roles, scopes, and which scopes each role can hold.
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
  'reconciliation:read',
  'reconciliation:write',
  'org:admin',
] as const;
export type Scope = (typeof SCOPES)[number];

const READS: readonly Scope[] = [
  'events:read',
  'payloads:read',
  'usage:read',
  'billing:read',
  'pricing:read',
  'reconciliation:read',
];

/** The most that each role can hold; ADMIN_ONLY_SCOPES are the admin's alone. */
export const ROLE_SCOPES: Record<Role, ReadonlySet<Scope>> = {
  admin: new Set(SCOPES),
  member: new Set<Scope>([...READS, 'ingest', 'reconciliation:write']),
  auditor: new Set(READS),
  ingest: new Set<Scope>(['ingest']),
};

/** Scopes that only the role admin can hold: their refusal says `admin role required`. */
export const ADMIN_ONLY_SCOPES: ReadonlySet<Scope> = new Set<Scope>([
  'billing:write',
  'pricing:write',
  'org:admin',
]);

/** Whether a key of this role, narrowed to `scopes` where it is, may do what needs `scope`. */
export function allowsScope(role: Role, scopes: readonly string[] | null, scope: Scope): boolean {
  return ROLE_SCOPES[role].has(scope) && (scopes === null || scopes.includes(scope));
}
