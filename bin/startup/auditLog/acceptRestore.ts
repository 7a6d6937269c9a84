import { findAuditHead, recordAudit } from '../../../db/access/auditLog.js';
import type { Database } from '../../../db/client.js';
import { listOrganizations } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import {
  ANCHOR_PURPOSE,
  type AuditAnchor,
  anchorLine,
  anchorText,
} from '../../../domain/access/auditLog/anchors.js';
import type { ChainPoint } from '../../../domain/access/auditLog/chain.js';
import { CHECKPOINT_PURPOSE } from '../../../domain/access/auditLog/checkpoint.js';
import { FIRST_PREV_HASH } from '../../../domain/access/auditLog/record.js';
import { publicId } from '../../../domain/ids.js';
import { microsFromDate } from '../../../domain/period.js';
import type { MonthlyLines } from '../../../platform/monthlyLines.js';
import type { SecretKeys } from '../../../platform/secretKeys.js';
import { StartError } from '../../../platform/startError.js';
import { type AuditVerification, verifyAuditLog } from '../../../usecases/access/auditVerification.js';
import type { AnchorsAtHand } from './auditLogVerify.js';

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
      `The log of ${publicId('org', orgDb.orgId)} is broken in itself, which no restore does: nothing was accepted. Look at it with npm run audit-log:verify.`,
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
