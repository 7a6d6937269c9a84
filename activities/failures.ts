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
  'invalid_pdf',
  'invoice_encrypted',
  'too_many_pages',
  'resource_limit',
  'no_line_items',
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
      nonRetryable: LASTING.has(error.code) || isUnsetEngine(error),
      cause: error,
    });
  }
}

/** No engine is set that could read the images; where one is set and does not answer, the failure passes. */
function isUnsetEngine({ code, retryAfterSeconds }: DomainError): boolean {
  return code === 'ocr_unavailable' && retryAfterSeconds === undefined;
}
