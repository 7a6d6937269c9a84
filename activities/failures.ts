import { ApplicationFailure } from '@temporalio/common';
import { DomainError, type ErrorCode } from '../domain/errors.js';

/** Failures that a repeat would only repeat. */
const LASTING: ReadonlySet<ErrorCode> = new Set([
  'invalid_billing_file',
  'account_required',
  'account_mismatch',
  'credentials_missing',
  'credentials_refused',
  'provider_answer_unreadable',
  'secret_key_missing',
  'not_found',
  'invalid_parameter',
  'illegal_transition',
  'claim_conflict',
  'command_too_late',
  'invalid_body',
]);

/**
 * Runs an activity so that its DomainError keeps its code on the way through the workflow (as the failure's type); the
 * lasting ones are not retried.
 */
export async function withFailures<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    throw ApplicationFailure.create({
      message: error.message,
      type: error.code,
      nonRetryable: LASTING.has(error.code),
      cause: error,
    });
  }
}
