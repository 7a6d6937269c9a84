import { createHash } from 'node:crypto';
import type { DraftClaim } from '../../domain/claims/draft.js';
import type { OrgDb } from '../orgDb.js';

export type FreezeDeps = object;
export interface FrozenEvidence {
  evidence: object;
  sha256: string;
  files: readonly { name: string; mediaType: string; bytes: Buffer }[];
}

export async function freezeEvidence(
  _inside: OrgDb,
  draft: DraftClaim,
  _deps: FreezeDeps,
): Promise<FrozenEvidence> {
  const text = JSON.stringify({ claim: draft.id, disputes: draft.disputes.map(({ id }) => id) });
  const bytes = Buffer.from(text);
  return {
    evidence: JSON.parse(text),
    sha256: createHash('sha256').update(text).digest('hex'),
    files: [{ name: 'claim.json', mediaType: 'application/json', bytes }],
  };
}
