/**
 * An anchor says outside the database where an organization's chain was at a time. Kind `restored` says more: the
 * database was taken back to this place by a restore, and what older anchors have seen after it is lost in good faith.
 */
export const ANCHOR_KINDS = ['head', 'restored'] as const;

export interface AuditAnchor {
  kind: (typeof ANCHOR_KINDS)[number];
  orgId: string;
  /** 0 where a restored database has no row of the organization. */
  seq: number;
  /** Hex. */
  hash: string;
  /** When the anchor was made. */
  atMicros: bigint;
}

/** A signature with the key that made it; both hex. */
export interface Signature {
  keyId: string;
  signature: string;
}

/** What a signature turns out to be; `unknown_key` when its key is not at hand. */
export type SignatureVerdict = 'good' | 'forged' | 'unknown_key';

/** What an anchor's signature is for: each purpose has a key of its own, derived from the secret key. */
export const ANCHOR_PURPOSE = 'audit log anchor';

/** The name under which anchors stand in a line, of an anchors' file or of the service's log. */
const LINE_KEY = 'audit_anchor';

/** What an anchor's signature is over. */
export function anchorText(anchor: AuditAnchor): string {
  return JSON.stringify([anchor.kind, anchor.orgId, anchor.seq, anchor.hash, String(anchor.atMicros)]);
}

/** The object that is written, for a file and for the log. */
export function anchorLine(anchor: AuditAnchor, signed: Signature): Record<string, object> {
  return {
    [LINE_KEY]: {
      kind: anchor.kind,
      org_id: anchor.orgId,
      seq: anchor.seq,
      hash: anchor.hash,
      at: Number(anchor.atMicros),
      key_id: signed.keyId,
      signature: signed.signature,
    },
  };
}

/** The anchor in a line; undefined for a line that holds none, `unreadable` for one that is broken off or changed. */
export function parseAnchorLine(
  line: string,
): { anchor: AuditAnchor; signed: Signature } | undefined | 'unreadable' {
  if (!line.includes(`"${LINE_KEY}"`)) return undefined;
  const found = parseObject(line)?.[LINE_KEY] as Record<string, unknown> | undefined;
  const { kind, org_id: orgId, seq, hash, at, key_id: keyId, signature } = found ?? {};
  const known = ANCHOR_KINDS.find((one) => one === kind);
  if (
    known === undefined ||
    typeof orgId !== 'string' ||
    !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(orgId) ||
    typeof seq !== 'number' ||
    !Number.isSafeInteger(seq) ||
    seq < 0 ||
    typeof hash !== 'string' ||
    typeof at !== 'number' ||
    !Number.isSafeInteger(at) ||
    typeof keyId !== 'string' ||
    typeof signature !== 'string'
  )
    return 'unreadable';
  return {
    anchor: { kind: known, orgId, seq, hash, atMicros: BigInt(at) },
    signed: { keyId, signature },
  };
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Rows that a restore has cost an organization: after `seq`, up to `lostToSeq`. */
export interface RestoreOfChain {
  atMicros: bigint;
  seq: number;
  lostToSeq: number;
}

/** Anchors of one organization, sorted out. */
export interface SettledAnchors {
  /** The hashes that hold, by row. */
  hashes: Map<number, string[]>;
  newestAtMicros: bigint | undefined;
  restores: RestoreOfChain[];
}

/**
 * Goes through an organization's anchors by their time: each restore takes those back that lie after its place, and at
 * its place where they say otherwise: that row is the restore's own, and may have the number of one that is lost.
 */
export function settleAnchors(anchors: readonly AuditAnchor[]): SettledAnchors {
  const hashes = new Map<number, string[]>();
  const restores: RestoreOfChain[] = [];
  const inOrder = [...anchors].sort((a, b) => Number(a.atMicros - b.atMicros));
  for (const { kind, seq, hash, atMicros } of inOrder) {
    if (kind === 'restored') {
      const lost = [...hashes].flatMap(([known, seen]) =>
        known > seq || (known === seq && seen.some((one) => one !== hash)) ? [known] : [],
      );
      for (const known of lost) hashes.delete(known);
      if (lost.length > 0) restores.push({ atMicros, seq, lostToSeq: Math.max(...lost) });
    }
    const known = hashes.get(seq) ?? [];
    if (seq > 0 && !known.includes(hash)) hashes.set(seq, [...known, hash]);
  }
  return { hashes, newestAtMicros: inOrder.at(-1)?.atMicros, restores };
}

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
