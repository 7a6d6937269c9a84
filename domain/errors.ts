/**
 * Every error code of the product: the code of a DomainError, the type of an ApplicationFailure and the problem's
 * `code`.
 */
export const ERROR_CODES = [
  'invalid_parameter',
  'missing_parameter',
  'invalid_range',
  'invalid_body',
  'invalid_json',
  'json_too_deep',
  'invalid_encoding',
  'invalid_protobuf',
  'invalid_multipart',
  'invalid_idempotency_key',
  'idempotency_key_reused',
  'idempotency_in_progress',
  'unknown_observation_type',
  'export_window_too_large',
  'unauthenticated',
  'forbidden',
  'cross_site_request',
  'not_found',
  'route_not_found',
  'method_not_allowed',
  'not_acceptable',
  'payload_too_large',
  'too_many_items',
  'uri_too_long',
  'host_not_allowed',
  'malformed_request',
  'request_head_too_large',
  'request_too_slow',
  'body_too_slow',
  'unsupported_media_type',
  'run_not_cancellable',
  'reprice_in_progress',
  'period_not_over',
  'period_out_of_order',
  'as_of_unanswerable',
  'account_required',
  'invalid_billing_file',
  'invalid_pdf',
  'invoice_encrypted',
  'too_many_pages',
  'resource_limit',
  'no_line_items',
  'not_a_pdf',
  'invalid_logo',
  'invoice_empty',
  'invoice_busy',
  'invoice_cited',
  'ocr_unavailable',
  'report_not_found',
  'report_delayed',
  'account_already_connected',
  'account_mismatch',
  'credentials_missing',
  'credentials_refused',
  'secret_key_missing',
  'provider_rate_limited',
  'provider_unavailable',
  'provider_paging_changed',
  'provider_answer_unreadable',
  'last_admin_key',
  'key_not_active',
  'project_taken',
  'workspace_archived',
  'invalid_policy_type',
  'webhook_disabled',
  'mail_not_configured',
  'rule_removed',
  'nothing_to_dispute',
  'not_for_review',
  'already_decided',
  'already_disputed',
  'decided_elsewhere',
  'already_resolved',
  'already_claimed',
  'mixed_accounts',
  'nets_to_nothing',
  'claim_not_draft',
  'claim_over',
  'document_failed',
  'illegal_transition',
  'claim_conflict',
  'command_too_late',
  'rate_limited',
  'service_unavailable',
  'storage_full',
  'workflow_engine_unavailable',
  'internal_error',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** One fault of one input field: where the field was sent, its path, and a sentence with the remedy. */
export interface FieldIssue {
  in: 'query' | 'path' | 'body' | 'header';
  field: string;
  message: string;
}

/** A failure with a stable code and a sentence for people; api/problem.ts maps it to problem+json. */
export class DomainError extends Error {
  readonly code: ErrorCode;
  readonly issues: readonly FieldIssue[];
  /** Seconds after which a repeat can succeed; set on transient failures only. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ErrorCode,
    sentence: string,
    options: { issues?: readonly FieldIssue[]; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(sentence, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DomainError';
    this.code = code;
    this.issues = options.issues ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** A DomainError for one wrong field. */
export function invalidField(
  where: FieldIssue['in'],
  field: string,
  message: string,
  code: ErrorCode = 'invalid_parameter',
): DomainError {
  return new DomainError(code, `${field}: ${message}`, { issues: [{ in: where, field, message }] });
}
