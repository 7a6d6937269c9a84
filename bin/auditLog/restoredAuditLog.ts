import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { findAuditHead, listAuditHeads, recordAudit } from '../../db/access/auditLog.js';
import type { Database } from '../../db/client.js';
import { listOrganizations } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import {
  ANCHOR_PURPOSE,
  type AuditAnchor,
  anchorLine,
  anchorText,
  CHECKPOINT_PURPOSE,
  parseAnchorLine,
} from '../../domain/access/auditLog/anchors.js';
import type { ChainPoint } from '../../domain/access/auditLog/chain.js';
import { FIRST_PREV_HASH } from '../../domain/access/auditLog/record.js';
import { publicId } from '../../domain/ids.js';
import { microsFromDate } from '../../domain/period.js';
import type { Config } from '../../platform/config.js';
import { MonthlyLines, readLines } from '../../platform/monthlyLines.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { StartError } from '../../platform/startError.js';
import { type AuditVerification, verifyAuditLog } from '../../usecases/access/auditVerification.js';
import type { AnchorsAtHand } from './verifyAuditLogs.js';

/**
 * Says that the database was taken back by somebody else's means: a snapshot of a provider's, a replica that took over
 * without the last commits. Each chain that its anchors contradict gets a row that says so and why, and signed anchors
 * that take back what they have seen after the last place at which both agree. A chain that is broken in itself was not
 * taken back but changed, and nothing is accepted. Returns a sentence for each chain.
 * @throws StartError for a chain that is broken in itself.
 */
export async function acceptRestore(
  database: Database,
  keys: SecretKeys,
  { anchors, files, because }: { anchors: AnchorsAtHand; files: MonthlyLines; because: string },
): Promise<string[]> {
  const known = await listOrganizations(database);
  const sentences: string[] = [];
  const lines: string[] = [];
  const atMicros = microsFromDate(new Date());
  const mark = (orgId: string, { seq, hash }: ChainPoint, at: bigint) => {
    const anchor: AuditAnchor = { kind: 'restored', orgId, seq, hash, atMicros: at };
    lines.push(JSON.stringify(anchorLine(anchor, keys.sign(ANCHOR_PURPOSE, anchorText(anchor)))));
  };
  const takenBack: { id: string; place: ChainPoint }[] = [];
  for (const { id } of known) {
    const hashes = anchors.byOrganization.get(id)?.hashes;
    const place = hashes && (await findLastAgreed(new OrgDb(database, id), keys, hashes));
    if (place) takenBack.push({ id, place });
  }
  for (const { id, place } of takenBack) {
    const orgDb = new OrgDb(database, id);
    await recordAudit(orgDb, {
      action: 'database.restored',
      actor: { kind: 'command', id: 'audit-log:restored' },
      subject: null,
      details: { because, agreed_through_seq: place.seq },
      requestId: null,
    });
    const head = await findAuditHead(orgDb);
    mark(id, place, atMicros);
    if (head) mark(id, head, atMicros + 1n);
    sentences.push(`${publicId('org', id)}: rows after row ${place.seq} are lost; the chain goes on.`);
  }
  const ids = new Set(known.map(({ id }) => id));
  for (const [id, { hashes }] of anchors.byOrganization) {
    if (ids.has(id) || hashes.size === 0) continue;
    mark(id, { seq: 0, hash: FIRST_PREV_HASH }, atMicros);
    sentences.push(`${publicId('org', id)}: is lost with all of its rows.`);
  }
  files.append(lines, new Date());
  return sentences;
}

/** The last place at which a chain and its anchors agree; undefined where they agree throughout. */
async function findLastAgreed(
  orgDb: OrgDb,
  keys: SecretKeys,
  hashes: ReadonlyMap<number, readonly string[]>,
): Promise<ChainPoint | undefined> {
  const checkSignature = (text: string, signed: { keyId: string; signature: string }) =>
    keys.checkSignature(CHECKPOINT_PURPOSE, text, signed);
  const held = await verifyAuditLog(orgDb, { anchors: hashes, checkSignature });
  if (held.faultCount === 0) return undefined;
  if (isBroken(await verifyAuditLog(orgDb, { checkSignature })))
    throw new StartError(
      `The log of ${publicId('org', orgDb.orgId)} is broken in itself, which no restore does: nothing was accepted. Look at it with ./trueup audit-log verify.`,
    );
  // What was anchored since agrees again, and lies behind the place at which they part.
  const parted = held.faults.find((fault) => fault.kind === 'rebuilt');
  const seq = parted?.agreedSeq ?? held.agreedSeq;
  const start = held.checkpoint?.checkpoint;
  const hash = start?.seq === seq ? start.hash : (hashes.get(seq)?.[0] ?? FIRST_PREV_HASH);
  return { seq, hash };
}

const isBroken = ({ faultCount, checkpoint, leftoverSeq }: AuditVerification): boolean =>
  faultCount > 0 || checkpoint?.verdict === 'forged' || leftoverSeq !== undefined;

/** Name of the anchors' folder in a data directory. */
export const ANCHORS_NAME = 'audit-anchors';

/** The anchors' folder where a setting names one outside of the data directory; undefined where it comes with the data. */
export function outsideAnchorFolder(config: Config): string | undefined {
  const { auditAnchorDir, dataDir } = config;
  return auditAnchorDir === join(dataDir, ANCHORS_NAME) ? undefined : auditAnchorDir;
}

/**
 * Writes the restore into every organization's audit log, and returns the lines of anchors that say where each chain
 * goes on from here: what anchors of before have seen after that is lost with the restore, and no tampering. `known` are
 * files with anchors of before; organizations that only they know are told to be gone.
 */
export async function recordRestore(
  database: Database,
  keys: SecretKeys,
  backup: { takenAt: string },
  known: readonly string[],
): Promise<string[]> {
  for (const { id, isDemo } of await listOrganizations(database))
    if (!isDemo)
      await recordAudit(new OrgDb(database, id), {
        action: 'database.restored',
        actor: { kind: 'command', id: 'restore' },
        subject: null,
        details: { backup_taken_at: backup.takenAt },
        requestId: null,
      });
  const places = new Map<string, { seq: number; hash: string }>();
  for await (const line of readLines(known)) {
    const found = parseAnchorLine(line);
    if (found && found !== 'unreadable') places.set(found.anchor.orgId, { seq: 0, hash: FIRST_PREV_HASH });
  }
  for (const { orgId, seq, hash } of await listAuditHeads(database)) places.set(orgId, { seq, hash });
  const atMicros = microsFromDate(new Date());
  return [...places].map(([orgId, { seq, hash }]) => {
    const anchor: AuditAnchor = { kind: 'restored', orgId, seq, hash, atMicros };
    return JSON.stringify(anchorLine(anchor, keys.sign(ANCHOR_PURPOSE, anchorText(anchor))));
  });
}

/** Takes the anchors of the installation that is replaced along: they tell of what the restore gives up. */
export function carryAnchors(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const file of new MonthlyLines(from).listFiles()) cpSync(file, join(to, file.slice(from.length + 1)));
}
