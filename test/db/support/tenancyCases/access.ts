import { randomUUID } from 'node:crypto';
import * as auditLog from '../../../../db/access/auditLog.js';
import * as idempotency from '../../../../db/access/idempotencyKeys.js';
import * as keyRing from '../../../../db/access/keys.js';
import { insertKey } from '../../../../db/access/keys.js';
import * as requestSlots from '../../../../db/access/requestLimits.js';
import { leaseRateTokens } from '../../../../db/access/requestLimits.js';
import * as sessions from '../../../../db/access/sessions.js';
import * as workspaces from '../../../../db/access/workspaces.js';
import * as demoRuns from '../../../../db/installation/demoRuns.js';
import * as organizations from '../../../../db/installation/organizations.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import { DEFAULT_SETTINGS } from '../../../../domain/installation/settings.js';
import { hashSecret } from '../../../../platform/secretBox.js';
import { verifyAuditLog } from '../../../../usecases/access/auditChain.js';
import { changeKey, createKey, revokeKey, rotateKey } from '../../../../usecases/access/keyChanges.js';
import { recordAction } from '../../../../usecases/access/recordAction.js';
import { createSignInLink, endOneSession, endOwnSessions } from '../../../../usecases/access/sessions.js';
import {
  archiveWithKeys,
  changeWorkspace,
  createWorkspace,
} from '../../../../usecases/access/workspaceChanges.js';
import { getDemoRun, getDemoState, openDemoRun } from '../../../../usecases/installation/demoRuns.js';
import {
  changeOrganizationSettings,
  renameOrganization,
} from '../../../../usecases/installation/organization.js';
import type { Owned } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const PAGE = { limit: 100, offset: 0 };
const ATTEMPT = '0199f3a2-c4d5-7e3a-8f00-112233445566';

const author = () => ({
  giver: { allows: () => true },
  actor: { kind: 'command' as const, id: 'test' },
  requestId: null,
  nowMicros: 1_800_000_000_000_000n,
});
const newKey = () => ({
  id: `key_${randomUUID().replaceAll('-', '').slice(0, 10)}`,
  name: 'new',
  role: 'ingest' as const,
  scopes: null,
  secretHash: Buffer.alloc(32),
  last4: 'abcd',
});
const newSession = (marker: string, id: string = randomUUID()) => ({
  id,
  secretHash: Buffer.alloc(32, 2),
  signIn: 'link' as const,
  principal: marker,
  keySecretHash: null,
  role: 'member' as const,
  scopes: null,
  workspaceId: null,
  personSub: null,
  personName: null,
  personEmail: null,
  userAgent: marker,
});
const LINK_TERMS = { role: 'member', scopes: null, workspaceId: null } as const;
const newLink = (marker: string) => ({
  ...LINK_TERMS,
  id: randomUUID(),
  tokenHash: hashSecret(marker),
  createdBy: marker,
});
const SECRET = { secretHash: Buffer.alloc(32, 1), last4: 'efgh', graceSeconds: 60 };
const scopeOf = ({ keyId, marker }: Owned) => ({ apiKeyId: keyId, operation: 'startGapRun', key: marker });
const ENTRY = {
  action: 'settings.changed',
  actor: { kind: 'command', id: 'test' },
  subject: null,
  details: {},
  requestId: null,
} as const;
const inside = <T>(db: OrgDb, work: (inside: OrgDb) => Promise<T>) => db.transaction(work);

/** Keys, workspaces, the organization itself, its log, its limits, and answers that are kept for repeats. */
export const ACCESS_CASES: Record<string, TenancyCase> = {
  recordAction: (db, { keyId, marker }) =>
    recordAction(
      db,
      {
        caller: { keyId },
        requestId: marker,
      },
      'settings.changed',
      null,
    ),
  insertKey: (db) => insertKey(db, { ...newKey(), createdBy: 'test' }),
  createKey: (db) => createKey(db, newKey(), author()),
  changeKey: (db, { keyId }) => changeKey(db, keyId, { name: 'taken over' }, author()),
  rotateKey: (db, { keyId }) => rotateKey(db, keyId, SECRET, author()),
  revokeKey: (db, { keyId }) => revokeKey(db, keyId, author()),
  listApiKeys: (db) => keyRing.listApiKeys(db, {}, PAGE),
  findApiKey: (db, { keyId }) => keyRing.findApiKey(db, keyId),
  countKeys: (db, { keyId }) => keyRing.countKeys(db, keyId),
  updateApiKey: (db, { keyId }) =>
    keyRing.updateApiKey(db, { id: keyId, name: 'taken over', scopes: null, expiresAtMicros: null }),
  replaceKeySecret: (db, { keyId }) => keyRing.replaceKeySecret(db, keyId, SECRET),
  revokeKeys: (db, { workspaceId }) => keyRing.revokeKeys(db, { workspaceId }, 'test'),
  insertWorkspace: (db) =>
    workspaces.insertWorkspace(db, { id: randomUUID(), name: 'new', projectId: 'new', createdBy: 'test' }),
  createWorkspace: (db) => createWorkspace(db, { id: randomUUID(), name: 'new', projectId: 'new' }, author()),
  changeWorkspace: (db, { workspaceId }) =>
    changeWorkspace(db, workspaceId, { name: 'taken over' }, author()),
  archiveWithKeys: (db, { workspaceId }) => archiveWithKeys(db, workspaceId, author()),
  listWorkspaces: (db) => workspaces.listWorkspaces(db, {}, PAGE),
  findWorkspace: (db, { workspaceId }) => workspaces.findWorkspace(db, workspaceId),
  lockWorkspace: (db, { workspaceId }) => workspaces.lockWorkspace(db, workspaceId),
  countOpenWorkspaces: (db) => workspaces.countOpenWorkspaces(db),
  renameWorkspace: (db, { workspaceId }) => workspaces.renameWorkspace(db, workspaceId, 'taken over'),
  archiveWorkspace: (db, { workspaceId }) => workspaces.archiveWorkspace(db, workspaceId, 'test'),
  getOrganization: (db) => organizations.getOrganization(db),
  updateOrganizationName: (db) => organizations.updateOrganizationName(db, 'taken over'),
  renameOrganization: (db, { keyId }) =>
    renameOrganization(db, 'taken over', { caller: { keyId }, requestId: 'req_1' }),
  updateSettings: (db) => organizations.updateSettings(db, { ...DEFAULT_SETTINGS, dropPayloads: true }),
  changeOrganizationSettings: (db, { keyId }) =>
    changeOrganizationSettings(db, { dropPayloads: true }, { caller: { keyId }, requestId: 'req_1' }),
  insertSession: (db) => sessions.insertSession(db, newSession('new')),
  listSessions: (db) => sessions.listSessions(db, {}, PAGE),
  countSessions: (db) => sessions.countSessions(db),
  endSessions: (db, { workspaceId }) => sessions.endSessions(db, { id: workspaceId }, 'test'),
  endOneSession: (db, { keyId, workspaceId }) =>
    endOneSession(db, { id: workspaceId }, { caller: { keyId }, requestId: 'req_1' }),
  endOwnSessions: (db, { marker }) => endOwnSessions(db, { caller: { keyId: marker }, requestId: 'req_1' }),
  insertSignInLink: (db) => sessions.insertSignInLink(db, newLink('new')),
  // The token is another one each time.
  createSignInLink: async (db) => void (await createSignInLink(db, LINK_TERMS, author())),
  takeSignInLink: (db, { marker }) => sessions.takeSignInLink(db, hashSecret(marker)),
  recordFirstSignIn: (db) => sessions.recordFirstSignIn(db),
  findDemoRun: (db, { workspaceId }) => demoRuns.findDemoRun(db, workspaceId),
  findOpenDemoRun: (db) => demoRuns.findOpenDemoRun(db),
  findNewestDemoRun: (db) => demoRuns.findNewestDemoRun(db),
  getDemoState: (db) => getDemoState(db),
  failLostDemoRuns: (db) => demoRuns.failLostDemoRuns(db),
  recordDemoStage: (db, { workspaceId }) => demoRuns.recordDemoStage(db, workspaceId, 'taken over'),
  recordDemoEnd: (db, { workspaceId }) => demoRuns.recordDemoEnd(db, workspaceId, 'taken over'),
  openDemoRun: (db, { keyId }) =>
    openDemoRun(db, 1_800_000_000_000_000n, { caller: { keyId }, requestId: 'req_1' }),
  getDemoRun: (db, { workspaceId }) => getDemoRun(db, workspaceId),
  recordAudit: (db) => auditLog.recordAudit(db, ENTRY),
  listAuditRecords: (db) => auditLog.listAuditRecords(db, {}, PAGE),
  streamAuditRecords: (db) =>
    inside(db, async (held) => {
      const pages: unknown[] = [];
      for await (const page of auditLog.streamAuditRecords(held, 0)) pages.push(page);
      return pages;
    }),
  findAuditHead: (db) => auditLog.findAuditHead(db),
  findAuditCheckpoint: (db) => auditLog.findAuditCheckpoint(db),
  upsertAuditCheckpoint: {
    asSystem: 'checkpoints are made by maintenance alone',
    run: async (db) => {
      const found = await auditLog.findAuditCheckpoint(db);
      if (found) await auditLog.upsertAuditCheckpoint(db, { ...found.checkpoint, seq: 7 }, found.signed);
    },
  },
  findFirstAuditSeq: (db) => auditLog.findFirstAuditSeq(db),
  verifyAuditLog: (db) => verifyAuditLog(db, { checkSignature: () => 'unknown_key' }),
  leaseRateTokens: (db) =>
    leaseRateTokens(db, {
      subject: 'organization',
      policy: 'read',
      rate: { quota: 600, windowSeconds: 60, burst: 100 },
      cost: 1,
      wanted: 10,
      returned: 0,
    }),
  takeRequestSlot: (db) =>
    requestSlots.takeRequestSlot(db, { kind: 'export', holder: randomUUID(), max: 2, seconds: 60 }),
  renewRequestSlot: (db, { workspaceId }) => requestSlots.renewRequestSlot(db, workspaceId, 600),
  releaseRequestSlot: (db, { workspaceId }) => requestSlots.releaseRequestSlot(db, workspaceId),
  findKnownRequest: (db, of) => idempotency.findKnownRequest(db, scopeOf(of)),
  takeIdempotencyKey: (db, of) => inside(db, (held) => idempotency.takeIdempotencyKey(held, scopeOf(of))),
  beginAttempt: (db, of) =>
    idempotency.beginAttempt(
      db,
      { ...scopeOf(of), key: 'new' },
      { id: randomUUID(), fingerprint: null, leaseSeconds: 60 },
    ),
  extendLease: (db, of) => idempotency.extendLease(db, scopeOf(of), { id: ATTEMPT, leaseSeconds: 600 }),
  releaseAttempt: (db, of) => idempotency.releaseAttempt(db, scopeOf(of), ATTEMPT),
  storeAnswer: (db, of) =>
    inside(db, (held) =>
      idempotency.storeAnswer(held, scopeOf(of), {
        attemptId: ATTEMPT,
        fingerprint: Buffer.alloc(32),
        status: 202,
        seal: () => ({ ciphertext: Buffer.alloc(64), keyId: 'k1' }),
      }),
    ),
};

/** Creates the data of the cases above. */
export async function makeAccess(
  db: OrgDb,
  { marker, keyId }: { marker: string; keyId: string },
): Promise<{ workspaceId: string }> {
  const workspace = { id: randomUUID(), name: marker, projectId: marker, createdBy: marker };
  await workspaces.insertWorkspace(db, workspace);
  await insertKey(db, { ...newKey(), name: marker, createdBy: marker, workspaceId: workspace.id });
  const scope = { apiKeyId: keyId, operation: 'startGapRun', key: marker };
  await idempotency.beginAttempt(db, scope, { id: ATTEMPT, fingerprint: null, leaseSeconds: 3_600 });
  // Any id can hold a slot.
  const holder = workspace.id;
  await requestSlots.takeRequestSlot(db, { kind: 'export', holder, max: 2, seconds: 3_600 });
  await sessions.insertSession(db, newSession(marker, workspace.id));
  await demoRuns.insertDemoRun(db, { id: workspace.id, requestedBy: marker });
  // Its program has died.
  await db.run(`update demo_runs set alive_at = now() - interval '1 hour' where org_id = $1`, [db.orgId]);
  await sessions.insertSignInLink(db, newLink(marker));
  return { workspaceId: workspace.id };
}
