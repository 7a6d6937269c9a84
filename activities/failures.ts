import { ApplicationFailure } from '@temporalio/common';
import { DomainError, type ErrorCode } from '../domain/errors.js';

/** Lasting failures: a retry would fail again. */
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
  'document_failed',
]);

/**
 * Runs an activity. A DomainError keeps its code in the workflow (as the failure's type), and lasting ones are not
 * retried.
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

/**
 * Whether no engine is configured that could read the images. A failure of a configured engine that does not answer is
 * temporary.
 */
function isUnsetEngine({ code, retryAfterSeconds }: DomainError): boolean {
  return code === 'ocr_unavailable' && retryAfterSeconds === undefined;
}
