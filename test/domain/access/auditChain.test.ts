import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditAnchor,
  type AuditDetails,
  anchorText,
  auditFields,
  auditText,
  type ChainedRecord,
  type ChainPoint,
  type ChainResult,
  ChainWalk,
  FIRST_PREV_HASH,
  settleAnchors,
} from '../../../domain/access/auditLog.js';
import { auditDigest } from '../../../usecases/access/auditChain.js';

const ORG = '0192f3a0-0000-7000-8000-000000000001';
const OTHER_ORG = '0192f3a0-0000-7000-8000-000000000002';

const text = (maxLength: number) => fc.string({ minLength: 1, maxLength, unit: 'grapheme' });
const detailsArbitrary: fc.Arbitrary<AuditDetails> = fc.dictionary(
  text(8),
  fc.oneof(fc.string({ unit: 'binary' }), fc.integer(), fc.boolean(), fc.constant(null), fc.array(text(12))),
  { maxKeys: 4 },
);
const entryArbitrary = fc.record({
  action: fc.constantFrom(...(Object.keys(AUDIT_ACTIONS) as AuditAction[])),
  actor: fc.record({ kind: fc.constantFrom('key', 'command', 'system'), id: text(12) }),
  subject: fc.option(fc.record({ type: fc.constantFrom('key', 'connection'), id: text(12) })),
  details: detailsArbitrary,
  requestId: fc.option(text(12)),
});
const chainArbitrary = (minLength: number) =>
  fc.array(entryArbitrary, { minLength, maxLength: 12 }).map((entries) => {
    const chain: ChainedRecord[] = [];
    for (const [index, entry] of entries.entries()) {
      const record = {
        orgId: ORG,
        seq: index + 1,
        atMicros: 1_790_000_000_000_000n + BigInt(index),
        ...auditFields(entry),
      };
      chain.push(chained(record, chain.at(-1)?.hash ?? FIRST_PREV_HASH));
    }
    return chain;
  });

function chained(record: Omit<ChainedRecord, 'prevHash' | 'hash'>, prevHash: string): ChainedRecord {
  return { ...record, prevHash, hash: auditDigest(prevHash, auditText(record)) };
}

/** The chain from a row on with right hashes, as an attacker would compute them. */
function rebuilt(chain: readonly ChainedRecord[], from: number): ChainedRecord[] {
  const built = chain.slice(0, from);
  for (const record of chain.slice(from)) built.push(chained(record, built.at(-1)?.hash ?? FIRST_PREV_HASH));
  return built;
}

function walk(
  rows: readonly ChainedRecord[],
  head: ChainPoint | undefined,
  anchors = new Map<number, string[]>(),
): ChainResult {
  const following = new ChainWalk({ digest: auditDigest, anchors });
  for (const row of rows) following.next(row);
  return following.end(head);
}

const headOf = (chain: readonly ChainedRecord[]): ChainPoint | undefined => chain.at(-1);
const anchorsAt = (chain: readonly ChainedRecord[], ...seqs: number[]) =>
  new Map(seqs.map((seq) => [seq, [chain[seq - 1]?.hash ?? '']]));

/** One field of a row changed, each in a way that keeps its type. */
const CHANGES: Record<string, (row: ChainedRecord) => ChainedRecord> = {
  org_id: (row) => ({ ...row, orgId: OTHER_ORG }),
  seq: (row) => ({ ...row, seq: row.seq + 1_000 }),
  at: (row) => ({ ...row, atMicros: row.atMicros + 1n }),
  action: (row) => ({ ...row, action: row.action === 'key.revoked' ? 'key.created' : 'key.revoked' }),
  actor_kind: (row) => ({
    ...row,
    actor: { ...row.actor, kind: row.actor.kind === 'key' ? 'command' : 'key' },
  }),
  actor_id: (row) => ({ ...row, actor: { ...row.actor, id: `${row.actor.id}x` } }),
  subject_type: (row) => ({ ...row, subject: { type: 'elsewhere', id: row.subject?.id ?? 'x' } }),
  subject_id: (row) => ({ ...row, subject: { type: row.subject?.type ?? 'key', id: 'elsewhere' } }),
  subject: (row) => ({ ...row, subject: row.subject === null ? { type: 'key', id: 'x' } : null }),
  details: (row) => ({ ...row, details: `${row.details} ` }),
  request_id: (row) => ({ ...row, requestId: row.requestId === null ? 'x' : null }),
  prev_hash: (row) => ({
    ...row,
    prevHash: `${row.prevHash.startsWith('f') ? 'e' : 'f'}${row.prevHash.slice(1)}`,
  }),
  hash: (row) => ({ ...row, hash: `${row.hash.startsWith('f') ? 'e' : 'f'}${row.hash.slice(1)}` }),
};

describe('a chain', () => {
  it('as it was written has no fault, whatever its rows contain', () => {
    fc.assert(
      fc.property(chainArbitrary(0), (chain) => {
        const { faultCount, lastSeq, agreedSeq } = walk(
          chain,
          headOf(chain),
          chain.length > 0 ? anchorsAt(chain, chain.length) : undefined,
        );
        expect({ faultCount, lastSeq, agreedSeq }).toEqual({
          faultCount: 0,
          lastSeq: chain.length,
          agreedSeq: chain.length,
        });
      }),
    );
  });

  it.each(Object.keys(CHANGES))('with %s of any row changed is detected, and the row is named', (name) => {
    fc.assert(
      fc.property(chainArbitrary(1), fc.nat(), (chain, at) => {
        const index = at % chain.length;
        const changed = chain.map((row, i) => (i === index ? (CHANGES[name]?.(row) ?? row) : row));
        changed.sort((a, b) => a.seq - b.seq);
        const { faults } = walk(changed, headOf(chain));
        expect(faults.length).toBeGreaterThan(0);
        const named = faults.flatMap((fault) =>
          'fromSeq' in fault ? [fault.fromSeq, fault.toSeq] : [fault.seq],
        );
        expect(named).toContain(index + 1);
      }),
    );
  });

  it('from which any row was taken is detected, with the number of the row', () => {
    fc.assert(
      fc.property(chainArbitrary(1), fc.nat(), (chain, at) => {
        const index = at % chain.length;
        const { faults } = walk(
          chain.filter((_, i) => i !== index),
          headOf(chain),
        );
        expect(faults).toContainEqual(expect.objectContaining({ fromSeq: index + 1, toSeq: index + 1 }));
      }),
    );
  });

  it('in which any two rows have changed their places is detected', () => {
    fc.assert(
      fc.property(chainArbitrary(2), fc.nat(), fc.nat(), (chain, a, b) => {
        const first = a % chain.length;
        const second = b % chain.length;
        fc.pre(first !== second);
        const swapped = [...chain];
        const seqOf = (index: number) => index + 1;
        swapped[first] = { ...(chain[second] as ChainedRecord), seq: seqOf(first) };
        swapped[second] = { ...(chain[first] as ChainedRecord), seq: seqOf(second) };
        const { faults } = walk(swapped, headOf(chain));
        expect(faults).toContainEqual({ kind: 'row_edited', seq: Math.min(seqOf(first), seqOf(second)) });
      }),
    );
  });

  it('that was rewritten from any row on is detected by any anchor at or after it, and by none before', () => {
    fc.assert(
      fc.property(chainArbitrary(1), fc.nat(), fc.nat(), (chain, from, at) => {
        const index = from % chain.length;
        const anchored = (at % chain.length) + 1;
        const changed = chain.map((row, i) => (i === index ? { ...row, requestId: 'other' } : row));
        fc.pre(chain[index]?.requestId !== 'other');
        const forged = rebuilt(changed, index);
        const { faults } = walk(forged, headOf(forged), anchorsAt(chain, anchored));
        expect(faults).toEqual(anchored > index ? [{ kind: 'rebuilt', seq: anchored, agreedSeq: 0 }] : []);
      }),
    );
  });

  it('whose end is gone is detected by the head beside it, and by an anchor when the head was moved too', () => {
    fc.assert(
      fc.property(chainArbitrary(2), fc.nat(), (chain, at) => {
        const left = at % chain.length;
        const short = chain.slice(0, left);
        const missing = { kind: 'tail_missing', fromSeq: left + 1, toSeq: chain.length };
        expect(walk(short, headOf(chain)).faults).toEqual([{ ...missing, witness: 'head' }]);
        expect(walk(short, headOf(short), anchorsAt(chain, chain.length)).faults).toEqual([
          { ...missing, witness: 'anchor' },
        ]);
      }),
    );
  });

  it('is followed from a checkpoint on, and only from the right one', () => {
    fc.assert(
      fc.property(chainArbitrary(3), fc.nat(), (chain, at) => {
        const point = chain[at % (chain.length - 1)] as ChainedRecord;
        const follow = (start: ChainPoint) => {
          const following = new ChainWalk({ digest: auditDigest, start });
          for (const row of chain.slice(point.seq)) following.next(row);
          return following.end(headOf(chain)).faults;
        };
        expect(follow(point)).toEqual([]);
        expect(follow({ seq: point.seq, hash: 'f'.repeat(64) })).toEqual([
          { kind: 'row_not_following', seq: point.seq + 1 },
        ]);
      }),
    );
  });
});

describe('the details of an entry', () => {
  it('are the same text whatever order their names come in, and what is undefined is not in them', () => {
    const entry = (details: AuditDetails) =>
      auditFields({
        action: 'key.created',
        actor: { kind: 'key', id: 'k' },
        subject: null,
        details,
        requestId: null,
      }).details;
    expect(entry({ b: 1, a: 'x', c: undefined })).toBe('{"a":"x","b":1}');
    expect(entry({ a: 'x', b: 1 })).toBe('{"a":"x","b":1}');
  });

  it('never grow beyond their column, and hold nothing that Postgres cannot store', () => {
    const long = fc.string({ unit: 'binary', maxLength: 2_000 });
    fc.assert(
      fc.property(
        fc.dictionary(long, fc.oneof(long, fc.array(long, { maxLength: 60 })), { maxKeys: 60 }),
        (details) => {
          const stored = auditFields({
            action: 'key.created',
            actor: { kind: 'key', id: 'k' },
            subject: null,
            details,
            requestId: null,
          }).details;
          expect(Buffer.byteLength(stored)).toBeLessThanOrEqual(16_384);
          expect(stored.isWellFormed()).toBe(true);
          expect(JSON.stringify(JSON.parse(stored))).toBe(stored);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('anchors', () => {
  const anchor = (kind: AuditAnchor['kind'], seq: number, hash: string, at: number): AuditAnchor => ({
    kind,
    orgId: ORG,
    seq,
    hash,
    atMicros: BigInt(at),
  });

  it('after the place that a restore went back to do not count, and the restore is reported', () => {
    const settled = settleAnchors([
      anchor('head', 10, 'a', 1),
      anchor('head', 20, 'b', 2),
      anchor('restored', 12, 'c', 3),
      anchor('head', 15, 'd', 4),
    ]);
    expect([...settled.hashes]).toEqual([
      [10, ['a']],
      [12, ['c']],
      [15, ['d']],
    ]);
    expect(settled.restores).toEqual([{ atMicros: 3n, seq: 12, lostToSeq: 20 }]);
  });

  it('of a row that a restore has lost are reverted also where its own row has got the same number', () => {
    const settled = settleAnchors([
      anchor('head', 11, 'a', 1),
      anchor('head', 12, 'b', 2),
      anchor('restored', 12, 'c', 3),
    ]);
    expect([...settled.hashes]).toEqual([
      [11, ['a']],
      [12, ['c']],
    ]);
    expect(settled.restores).toEqual([{ atMicros: 3n, seq: 12, lostToSeq: 12 }]);
    // A repeated loss record, as after a rotation, withdraws nothing further.
    const again = settleAnchors([anchor('restored', 12, 'c', 3), anchor('restored', 12, 'c', 3)]);
    expect(again).toMatchObject({ hashes: new Map([[12, ['c']]]), restores: [] });
  });

  it('count by their time, not by their place in a file', () => {
    const inOrder = [anchor('head', 20, 'b', 2), anchor('restored', 12, 'c', 3), anchor('head', 20, 'e', 5)];
    expect(settleAnchors([...inOrder].reverse())).toEqual(settleAnchors(inOrder));
  });

  it('that contradict each other are both kept: one of them will not match the chain', () => {
    expect(settleAnchors([anchor('head', 5, 'a', 1), anchor('head', 5, 'b', 2)]).hashes.get(5)).toEqual([
      'a',
      'b',
    ]);
  });

  it('have another text for every other place, kind and time', () => {
    const texts = [
      anchor('head', 1, 'a', 1),
      anchor('restored', 1, 'a', 1),
      anchor('head', 11, 'a', 1),
      anchor('head', 1, 'b', 1),
      anchor('head', 1, 'a', 2),
      { ...anchor('head', 1, 'a', 1), orgId: OTHER_ORG },
    ].map(anchorText);
    expect(new Set(texts).size).toBe(texts.length);
  });
});
