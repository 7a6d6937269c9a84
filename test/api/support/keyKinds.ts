import { composeKey } from '../../../domain/access/keyRules.js';
import type { TestApi, TestKeyOptions, TestOrganization } from '../../support/api.js';

/** Every scope that there is, in the words of the interface: written down a second time, apart from the code. */
const READS = [
  'events:read',
  'payloads:read',
  'usage:read',
  'billing:read',
  'pricing:read',
  'policies:read',
  'enforcement:read',
  'alerts:read',
  'reconciliation:read',
  'financial:read',
  'claims:read',
  'reports:read',
  'workspaces:read',
  'audit:read',
];
const MEMBER_WRITES = [
  'ingest',
  'alerts:write',
  'reconciliation:write',
  'financial:write',
  'claims:write',
  'reports:write',
];
const ADMIN_ONLY = [
  'billing:write',
  'pricing:write',
  'policies:write',
  'enforcement:write',
  'workspaces:admin',
  'keys:admin',
  'org:admin',
  'webhooks:admin',
];
export const ALL_SCOPES: readonly string[] = [...READS, ...MEMBER_WRITES, ...ADMIN_ONLY];

type RoleName = 'admin' | 'member' | 'auditor' | 'ingest';
const HELD: Record<RoleName, readonly string[]> = {
  admin: ALL_SCOPES,
  member: [...READS, ...MEMBER_WRITES],
  auditor: READS,
  ingest: ['ingest'],
};

/** A missing scope is named; a scope that no other role can have is named by its role. */
export const refusalOf = (scope: string): string =>
  ADMIN_ONLY.includes(scope) ? 'admin role required' : `the key lacks the scope ${scope}`;

/** A valid key with its rights. */
export interface LiveKey {
  kind: string;
  key: string;
  role: RoleName;
  scopes: readonly string[];
  /** The project of its workspace. */
  projectId?: string;
}

/** An Authorization header that identifies no key, or none. */
export interface DeadKey {
  kind: string;
  header: string | undefined;
}

const idCharsOf = (key: string) => key.split('_')[2] ?? '';
const bearer = (key: string) => `Bearer ${key}`;
const narrowed = (scopes: readonly string[]) => ({ scopes: scopes as TestKeyOptions['scopes'] & object });

/** A key of the organization that was rotated: its text before and after. */
async function makeRotated(api: TestApi, { orgId, adminKey }: TestOrganization, graceSeconds: number) {
  const before = await api.addKey(orgId, 'admin');
  const path = `/api/v1/keys/key_${idCharsOf(before)}/rotate`;
  const { status, body } = await api.post(path, { grace_seconds: graceSeconds }, adminKey);
  if (status !== 200) throw new Error(`the rotation answered ${status}`);
  return { before, after: body.key as string };
}

/** Every kind of invalid key; all get the same answer. */
export async function makeDeadKeys(api: TestApi, owner: TestOrganization): Promise<DeadKey[]> {
  const { orgId, adminKey } = owner;
  const admin = await api.addKey(orgId, 'admin');
  const typingError = admin.slice(0, -1) + (admin.endsWith('0') ? '1' : '0');
  const revoked = await api.addKey(orgId, 'admin');
  await fetch(`${api.baseUrl}/api/v1/keys/key_${idCharsOf(revoked)}`, {
    method: 'DELETE',
    headers: { authorization: bearer(adminKey) },
  });
  const workspace = await api.addWorkspace(orgId, 'archived');
  const ofArchived = await api.addKey(orgId, 'member', { workspaceId: workspace });
  await fetch(`${api.baseUrl}/api/v1/workspaces/wsp_${workspace.replaceAll('-', '')}`, {
    method: 'DELETE',
    headers: { authorization: bearer(adminKey) },
  });
  const kinds: Record<string, string | undefined> = {
    'no key': undefined,
    'an empty header': '',
    'a scheme without a key': 'Bearer',
    'a word that is no key': 'Bearer sesame',
    'a key without its scheme': admin,
    'a key under another scheme': `Token ${admin}`,
    'a key and a word': `${bearer(admin)} more`,
    'a typing error': bearer(typingError),
    'an unknown key': bearer(composeKey('abcdefghij', 'S'.repeat(43))),
    'a wrong secret': bearer(composeKey(idCharsOf(admin), 'S'.repeat(43))),
    'a revoked key': bearer(revoked),
    'an expired key': bearer(await api.addKey(orgId, 'admin', { expiresInMs: -1_000 })),
    'a secret after its grace': bearer((await makeRotated(api, owner, 0)).before),
    'a key of an archived workspace': bearer(ofArchived),
  };
  return Object.entries(kinds).map(([kind, header]) => ({ kind, header }));
}

/** Every kind of key that is known, but for those that are narrowed for one operation. */
export async function makeLiveKeys(api: TestApi, owner: TestOrganization): Promise<LiveKey[]> {
  const { orgId } = owner;
  const keys: LiveKey[] = [];
  for (const role of ['admin', 'member', 'auditor', 'ingest'] as const)
    keys.push({ kind: `the role ${role}`, key: await api.addKey(orgId, role), role, scopes: HELD[role] });
  const asAdmin = { role: 'admin', scopes: ALL_SCOPES } as const;
  const rotated = await makeRotated(api, owner, 3_600);
  keys.push({ kind: 'a secret within its grace', key: rotated.before, ...asAdmin });
  keys.push({ kind: 'a new secret', key: rotated.after, ...asAdmin });
  const expiring = await api.addKey(orgId, 'admin', { expiresInMs: 3_600_000 });
  keys.push({ kind: 'a key that will expire', key: expiring, ...asAdmin });
  const projectId = 'project-of-a-workspace';
  const workspaceId = await api.addWorkspace(orgId, projectId);
  for (const role of ['member', 'auditor', 'ingest'] as const)
    keys.push({
      kind: `the role ${role} of a workspace`,
      key: await api.addKey(orgId, role, { workspaceId }),
      role,
      scopes: HELD[role],
      projectId,
    });
  return keys;
}

/** Keys with exactly the scopes of one request, and with all scopes except one. */
export class NarrowedKeys {
  readonly #api: TestApi;
  readonly #orgId: string;
  readonly #made = new Map<string, LiveKey>();

  constructor(api: TestApi, orgId: string) {
    this.#api = api;
    this.#orgId = orgId;
  }

  async of(needed: readonly string[]): Promise<LiveKey[]> {
    const keys: LiveKey[] = [];
    if (needed.length > 0) keys.push(await this.#make(`narrowed to ${needed.join(', ')}`, needed));
    for (const scope of needed) {
      const others = ALL_SCOPES.filter((one) => one !== scope);
      keys.push(await this.#make(`narrowed to everything but ${scope}`, others));
    }
    return keys;
  }

  async #make(kind: string, scopes: readonly string[]): Promise<LiveKey> {
    const known: LiveKey = this.#made.get(kind) ?? {
      kind,
      role: 'admin',
      key: await this.#api.addKey(this.#orgId, 'admin', narrowed(scopes)),
      scopes,
    };
    this.#made.set(kind, known);
    return known;
  }
}
