import { wholeInput, wholeOutput } from './joinUsages.js';
import { modelFamily } from './modelFamily.js';
import type { Telling } from './telling.js';

/** What decides whether two spans, one inside the other, can be one call. Read once a call, compared often. */
export interface CallTraits {
  isAttempt: boolean;
  family: string;
  /** Of the model that answered, where it is another family. */
  responseFamily: string | null;
  responseId: string | null;
  /** Equal for equal counts; null: none were sent. */
  counts: string | null;
}

export function traitsOf(telling: Telling): CallTraits {
  const { usage, model, responseModel, responseId } = telling;
  const family = modelFamily(model);
  const responseFamily = responseModel === null ? null : modelFamily(responseModel);
  return {
    isAttempt: isAttempt(telling),
    family,
    responseFamily: responseFamily === family ? null : responseFamily,
    responseId,
    counts: usage === null ? null : `${wholeInput(usage)} ${wholeOutput(usage)}`,
  };
}

/**
 * Whether nothing speaks against two spans being one call. An attempt that failed and a call that was answered are two,
 * as with repeats inside one outer call. Two response ids are two calls unless the counts agree: a gateway may give an
 * answer an id of its own.
 */
export function canBeOneCall(one: CallTraits, other: CallTraits): boolean {
  if (one.isAttempt !== other.isAttempt || !isOfOneFamily(one, other)) return false;
  if (one.responseId === null || other.responseId === null || one.responseId === other.responseId)
    return true;
  return one.counts !== null && one.counts === other.counts;
}

function isAttempt({ usage, status }: Telling): boolean {
  return status === 'blocked' || (usage === null && status === 'error');
}

function isOfOneFamily(one: CallTraits, other: CallTraits): boolean {
  return (
    one.family === other.family ||
    (one.responseFamily !== null &&
      (one.responseFamily === other.family || one.responseFamily === other.responseFamily)) ||
    (other.responseFamily !== null && one.family === other.responseFamily)
  );
}
