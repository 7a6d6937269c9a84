import { LimitError } from '../domain/access/rate.js';
import { DomainError, type ErrorCode, type FieldIssue } from '../domain/errors.js';

/** Status and title of each error code. No other place defines them. */
const PROBLEMS: Record<ErrorCode, { status: number; title: string }> = {
  invalid_parameter: { status: 400, title: 'Invalid parameter' },
  missing_parameter: { status: 400, title: 'Missing parameter' },
  invalid_range: { status: 400, title: 'Invalid range' },
  invalid_body: { status: 400, title: 'Invalid body' },
  invalid_json: { status: 400, title: 'Invalid JSON' },
  json_too_deep: { status: 400, title: 'JSON nested too deep' },
  invalid_encoding: { status: 400, title: 'Broken content encoding' },
  invalid_protobuf: { status: 400, title: 'Invalid protobuf' },
  invalid_multipart: { status: 400, title: 'Invalid multipart body' },
  invalid_idempotency_key: { status: 400, title: 'Invalid idempotency key' },
  unknown_observation_type: { status: 400, title: 'Unknown observation type' },
  export_window_too_large: { status: 400, title: 'Export window too large' },
  account_required: { status: 400, title: 'Account required' },
  invalid_billing_file: { status: 400, title: 'Invalid billing file' },
  invalid_pdf: { status: 400, title: 'Invalid PDF' },
  unauthenticated: { status: 401, title: 'Not authenticated' },
  forbidden: { status: 403, title: 'Forbidden' },
  cross_site_request: { status: 403, title: 'Cross-site request' },
  not_found: { status: 404, title: 'Not found' },
  route_not_found: { status: 404, title: 'No such path' },
  report_not_found: { status: 404, title: 'No such report' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  not_acceptable: { status: 406, title: 'Not acceptable' },
  as_of_unanswerable: { status: 400, title: 'The state of that time is not kept' },
  idempotency_in_progress: { status: 409, title: 'The same request is under way' },
  reprice_in_progress: { status: 409, title: 'Another re-pricing is under way' },
  period_not_over: { status: 409, title: 'Month not over' },
  period_out_of_order: { status: 409, title: 'An earlier month is open' },
  run_not_cancellable: { status: 409, title: 'Run has ended' },
  account_already_connected: { status: 409, title: 'Account already connected' },
  account_mismatch: { status: 409, title: 'Another account' },
  credentials_missing: { status: 409, title: 'Credentials missing' },
  last_admin_key: { status: 409, title: 'Last admin key' },
  key_not_active: { status: 409, title: 'Key not active' },
  project_taken: { status: 409, title: 'Project taken' },
  workspace_archived: { status: 409, title: 'Workspace archived' },
  invalid_policy_type: { status: 400, title: 'Unknown type of policy' },
  webhook_disabled: { status: 409, title: 'Webhook endpoint disabled' },
  mail_not_configured: { status: 409, title: 'No mail server is set' },
  rule_removed: { status: 409, title: 'Rule removed' },
  nothing_to_dispute: { status: 409, title: 'Nothing to dispute' },
  not_for_review: { status: 409, title: 'Not for review' },
  already_decided: { status: 409, title: 'Already decided' },
  already_disputed: { status: 409, title: 'Already disputed' },
  decided_elsewhere: { status: 409, title: 'Decided elsewhere' },
  already_resolved: { status: 409, title: 'Already resolved' },
  already_claimed: { status: 409, title: 'Already claimed' },
  mixed_accounts: { status: 400, title: 'Several accounts' },
  nets_to_nothing: { status: 409, title: 'Nothing left to claim' },
  claim_not_draft: { status: 409, title: 'Claim is no draft' },
  claim_over: { status: 409, title: 'Claim is over' },
  document_failed: { status: 500, title: 'Document cannot be set' },
  illegal_transition: { status: 409, title: 'Illegal transition' },
  claim_conflict: { status: 409, title: 'Claim changed meanwhile' },
  body_too_slow: { status: 408, title: 'Body too slow' },
  request_too_slow: { status: 408, title: 'Request too slow' },
  malformed_request: { status: 400, title: 'Malformed request' },
  request_head_too_large: { status: 431, title: 'Request head too large' },
  payload_too_large: { status: 413, title: 'Body too large' },
  too_many_items: { status: 413, title: 'Too many items' },
  uri_too_long: { status: 414, title: 'Address too long' },
  host_not_allowed: { status: 421, title: 'Host not allowed' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  idempotency_key_reused: { status: 422, title: 'Idempotency key of another request' },
  credentials_refused: { status: 422, title: 'Provider refuses the credentials' },
  invalid_logo: { status: 400, title: 'Invalid logo' },
  not_a_pdf: { status: 415, title: 'Not a PDF' },
  invoice_empty: { status: 400, title: 'Empty file' },
  invoice_busy: { status: 409, title: 'Invoice is being read' },
  invoice_cited: { status: 409, title: 'A claim cites the invoice' },
  invoice_encrypted: { status: 422, title: 'Invoice is encrypted' },
  too_many_pages: { status: 422, title: 'Too many pages' },
  resource_limit: { status: 422, title: 'PDF needs too much' },
  no_line_items: { status: 422, title: 'Invoice without lines' },
  rate_limited: { status: 429, title: 'Too many requests' },
  internal_error: { status: 500, title: 'Internal error' },
  provider_answer_unreadable: { status: 502, title: 'Provider answer unreadable' },
  ocr_unavailable: { status: 503, title: 'No engine reads images' },
  report_delayed: { status: 503, title: 'Report takes longer' },
  service_unavailable: { status: 503, title: 'Temporarily unavailable' },
  storage_full: { status: 503, title: 'Storage full' },
  workflow_engine_unavailable: { status: 503, title: 'Workflow engine unavailable' },
  command_too_late: { status: 503, title: 'Too late' },
  secret_key_missing: { status: 503, title: 'Secret key missing' },
  provider_rate_limited: { status: 503, title: 'Provider limits requests' },
  provider_unavailable: { status: 503, title: 'Provider unavailable' },
  provider_paging_changed: { status: 503, title: 'Provider changed its paging' },
};

/** An error whose answer names the run that continues all the same. */
export class LocatedError extends DomainError {
  constructor(
    code: ErrorCode,
    sentence: string,
    readonly location: string,
    retryAfterSeconds: number,
  ) {
    super(code, sentence, { retryAfterSeconds });
  }
}

/** The body of every error (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: ErrorCode;
  message: string;
  request_id: string;
  errors?: readonly FieldIssue[];
  /** For 429: the limit policies that were exceeded (draft-ietf-httpapi-ratelimit-headers-11, 5.1). */
  'violated-policies'?: readonly string[];
}

export function statusOf(code: ErrorCode): number {
  return PROBLEMS[code].status;
}

export function titleOf(code: ErrorCode): string {
  return PROBLEMS[code].title;
}

/**
 * The problem of a failure. Any error but a DomainError is a bug: the answer is a bare 500 that reveals no internals.
 */
export function presentProblem(error: unknown, requestId: string): Problem {
  const known = error instanceof DomainError ? error : undefined;
  const code = known?.code ?? 'internal_error';
  const { status, title } = PROBLEMS[code];
  const detail = known && code !== 'internal_error' ? known.message : title;
  return {
    type: `urn:problem:${code}`,
    title,
    status,
    detail,
    instance: `urn:request:${requestId}`,
    code,
    message: detail,
    request_id: requestId,
    ...(known && known.issues.length > 0 ? { errors: known.issues } : {}),
    ...(known instanceof LimitError ? { 'violated-policies': known.violatedPolicies } : {}),
  };
}
