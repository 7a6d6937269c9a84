import { createHash } from 'node:crypto';
import {
  findAuditCheckpoint,
  findAuditHead,
  findFirstAuditSeq,
  streamAuditRecords,
} from '../../db/access/auditLog.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  type AuditCheckpoint,
  checkpointText,
  type Signature,
  type SignatureVerdict,
} from '../../domain/access/auditLog/anchors.js';
import { type ChainResult, ChainWalk } from '../../domain/access/auditLog/chain.js';

/** sha256 over the bytes of a hash and a text: what `audit_hash` does in the database. */
export function auditDigest(prevHash: string, text: string): string {
  return createHash('sha256').update(Buffer.from(prevHash, 'hex')).update(text, 'utf8').digest('hex');
}

/** What a check of one organization's log has found. */
export interface AuditVerification extends ChainResult {
  checkpoint: { checkpoint: AuditCheckpoint; verdict: SignatureVerdict; keyId: string } | undefined;
  /** Time of the last row, as its head has it. */
  lastAtMicros: bigint | undefined;
  /** A row that its checkpoint says was dropped. */
  leftoverSeq: number | undefined;
}

/**
 * Follows an organization's chain from its checkpoint, or from its beginning, to its end in one snapshot, and holds it
 * against the hashes that anchors have seen. Holds a page of rows at a time.
 */
export async function verifyAuditLog(
  orgDb: OrgDb,
  options: {
    anchors?: ReadonlyMap<number, readonly string[]>;
    checkSignature(text: string, signed: Signature): SignatureVerdict;
  },
): Promise<AuditVerification> {
  return orgDb.transaction(async (inside) => {
    const head = await findAuditHead(inside);
    const found = await findAuditCheckpoint(inside);
    const verdict = found && options.checkSignature(checkpointText(found.checkpoint), found.signed);
    const first = await findFirstAuditSeq(inside);
    const walk = new ChainWalk({
      digest: auditDigest,
      ...(options.anchors ? { anchors: options.anchors } : {}),
      start: found?.checkpoint,
    });
    for await (const records of streamAuditRecords(inside, found?.checkpoint.seq ?? 0))
      for (const record of records) walk.next(record);
    return {
      ...walk.end(head),
      lastAtMicros: head?.atMicros,
      checkpoint:
        found && verdict ? { checkpoint: found.checkpoint, verdict, keyId: found.signed.keyId } : undefined,
      leftoverSeq: found && first !== undefined && first <= found.checkpoint.seq ? first : undefined,
    };
  }, 'repeatable read');
}
