import { existsSync, statSync } from 'node:fs';
import type { Database } from '../../../db/client.js';
import { listOrganizations } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import {
  ANCHOR_PURPOSE,
  type AuditAnchor,
  anchorText,
  parseAnchorLine,
  type SettledAnchors,
  settleAnchors,
} from '../../../domain/access/auditLog/anchors.js';
import { CHECKPOINT_PURPOSE } from '../../../domain/access/auditLog/checkpoint.js';
import { MonthlyLines, readLines } from '../../../platform/monthlyLines.js';
import type { SecretKeys } from '../../../platform/secretKeys.js';
import { StartError } from '../../../platform/startError.js';
import { type AuditVerification, verifyAuditLog } from '../../../usecases/access/auditVerification.js';

/** Everything that the anchors at hand say. */
export interface AnchorsAtHand {
  /** Where they came from. */
  place: string;
  byOrganization: ReadonlyMap<string, SettledAnchors>;
  count: number;
  /** Lines that no key of ours has signed as they stand there. */
  forged: number;
  /** Ids of keys that signed some and are not at hand, with how many: those are compared all the same. */
  unknownKeys: ReadonlyMap<string, number>;
  /** Organizations of which the newest anchor is such a one: no signature that can be checked stands for their chain. */
  unvouched: number;
  unreadable: number;
}

/**
 * Reads anchors from a folder of anchors' files or from one file, which may be a log of the service.
 * @throws StartError when the path was asked for and does not exist.
 */
export async function readAnchors(
  path: string,
  isAskedFor: boolean,
  keys: SecretKeys | undefined,
): Promise<AnchorsAtHand> {
  if (isAskedFor && !existsSync(path))
    throw new StartError(`There is no ${path}: give a file or a folder of anchors with --anchors.`);
  const isFile = existsSync(path) && statSync(path).isFile();
  const anchors = new Map<string, AuditAnchor[]>();
  const unknownKeys = new Map<string, number>();
  const newest = new Map<string, { atMicros: bigint; isSigned: boolean }>();
  let [count, forged, unreadable] = [0, 0, 0];
  for await (const line of readLines(isFile ? [path] : new MonthlyLines(path).listFiles())) {
    const found = parseAnchorLine(line);
    if (found === undefined) continue;
    if (found === 'unreadable') {
      unreadable += 1;
      continue;
    }
    const { anchor, signed } = found;
    const verdict = keys?.checkSignature(ANCHOR_PURPOSE, anchorText(anchor), signed) ?? 'unknown_key';
    if (verdict === 'forged') {
      forged += 1;
      continue;
    }
    if (verdict === 'unknown_key') {
      unknownKeys.set(signed.keyId, (unknownKeys.get(signed.keyId) ?? 0) + 1);
      // Anybody could have written it. That rows were lost in good faith is only believed when it is signed.
      if (anchor.kind === 'restored') continue;
    }
    count += 1;
    if ((newest.get(anchor.orgId)?.atMicros ?? 0n) <= anchor.atMicros)
      newest.set(anchor.orgId, { atMicros: anchor.atMicros, isSigned: verdict === 'good' });
    const known = anchors.get(anchor.orgId);
    if (known) known.push(anchor);
    else anchors.set(anchor.orgId, [anchor]);
  }
  const byOrganization = new Map([...anchors].map(([orgId, found]) => [orgId, settleAnchors(found)]));
  const unvouched = [...newest.values()].filter(({ isSigned }) => !isSigned).length;
  return { place: path, byOrganization, count, forged, unknownKeys, unvouched, unreadable };
}

/** One organization's log and what came of checking it. */
export interface VerifiedOrganization {
  id: string;
  name: string;
  /** The demo's, of which no anchors are made. */
  isDemo: boolean;
  verification: AuditVerification;
  anchors: SettledAnchors | undefined;
}

export interface AuditLogsVerified {
  organizations: VerifiedOrganization[];
  /** Organizations with a row that holds what the service never writes, and what that is. */
  unreadable: { id: string; name: string; reason: string }[];
  /** Anchored organizations that the database does not know. */
  missing: { id: string; anchors: SettledAnchors }[];
  anchors: AnchorsAtHand;
}

/** Checks the log of one organization, or of all. */
export async function verifyAuditLogs(
  database: Database,
  options: { orgId: string | undefined; anchors: AnchorsAtHand; keys: SecretKeys | undefined },
): Promise<AuditLogsVerified> {
  const { orgId, anchors, keys } = options;
  const known = await listOrganizations(database);
  const organizations: VerifiedOrganization[] = [];
  const unreadable: AuditLogsVerified['unreadable'] = [];
  for (const { id, name, isDemo } of known.filter(
    (organization) => orgId === undefined || organization.id === orgId,
  )) {
    const own = anchors.byOrganization.get(id);
    const verification = await verifyAuditLog(new OrgDb(database, id), {
      ...(own ? { anchors: own.hashes } : {}),
      checkSignature: (text, signed) =>
        keys?.checkSignature(CHECKPOINT_PURPOSE, text, signed) ?? 'unknown_key',
    }).catch((error: unknown) => {
      // A value beyond what the service writes: somebody has put it there, and the others are still to be checked.
      if (error instanceof RangeError) return error;
      throw error;
    });
    if (verification instanceof RangeError) {
      unreadable.push({ id, name, reason: verification.message });
      continue;
    }
    organizations.push({ id, name, isDemo, verification, anchors: own });
  }
  const ids = new Set(known.map(({ id }) => id));
  const missing = [...anchors.byOrganization]
    .filter(([id, { hashes }]) => !ids.has(id) && (orgId === undefined || id === orgId) && hashes.size > 0)
    .map(([id, found]) => ({ id, anchors: found }));
  return { organizations, unreadable, missing, anchors };
}
