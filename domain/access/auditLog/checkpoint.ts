/** What stands for the rows of an organization up to `seq`, which retention has dropped. */
export interface AuditCheckpoint {
  orgId: string;
  seq: number;
  /** Time of row `seq`. */
  atMicros: bigint;
  /** Hash of row `seq`, hex. */
  hash: string;
  madeAtMicros: bigint;
}

/** What a checkpoint's signature is for: each purpose has a key of its own, derived from the secret key. */
export const CHECKPOINT_PURPOSE = 'audit log checkpoint';

/** What a checkpoint's signature is over. */
export function checkpointText(checkpoint: AuditCheckpoint): string {
  const { orgId, seq, atMicros, hash, madeAtMicros } = checkpoint;
  return JSON.stringify(['checkpoint', orgId, seq, String(atMicros), hash, String(madeAtMicros)]);
}
