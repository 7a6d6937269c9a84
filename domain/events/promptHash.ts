/** A number by which calls with equal prompts are told, without keeping what was said (docs/decisions/0027). */
import { hash } from 'node:crypto';

/** No text can hold it: texts are stripped of it before. */
const SEPARATOR = '\u001f';

/**
 * The first eight bytes of the sha256 of the prompts, in their order, as the signed integer that Postgres keeps. Null
 * where there are none.
 */
export function promptHashOf(prompts: readonly string[]): bigint | null {
  if (prompts.length === 0) return null;
  return hash('sha256', prompts.join(SEPARATOR), 'buffer').readBigInt64BE();
}

/** Of two tellings of a call, whichever comes first: the smaller number, or the one that is there. */
export function joinPromptHashes(one: bigint | null, other: bigint | null): bigint | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
