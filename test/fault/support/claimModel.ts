/**
 * The expected state of a claim after every request, an independent model from the documentation alone, which the
 * product is compared with.
 */

/** The moves, each status with those that may follow it. */
const MOVES: Readonly<Record<string, string>> = {
  draft: 'submitted_to_provider',
  submitted_to_provider:
    'provider_acknowledged under_review credit_approved credit_issued partial denied escalated',
  provider_acknowledged: 'under_review credit_approved credit_issued partial denied escalated',
  under_review: 'credit_approved credit_issued partial denied escalated',
  credit_approved: 'credit_issued partial escalated',
  escalated: 'provider_acknowledged under_review credit_approved credit_issued partial denied',
  credit_issued: '',
  denied: '',
  partial: '',
};
export const STATUSES = Object.keys(MOVES);

const followers = (status: string): string[] => (MOVES[status] ?? '').split(' ').filter(Boolean);

/** Kinds that a provider may name, with the resolution of the disputes when a claim is denied so. */
export const DENIALS: Readonly<Record<string, string>> = {
  contract_terms: 'provider_correct',
  client_metering_error: 'our_error',
  insufficient_evidence: 'written_off',
  other: 'written_off',
};

/** A request that changes a claim, as a client sends it. */
export type ClaimRequest = { call: 'submit' } | { call: 'discard' } | { call: 'patch'; body: unknown };

/** A body with the fields that a status needs. */
export function saying(status: string, more: object = {}): Record<string, unknown> {
  if (status === 'denied') return { status, denial_reason: 'not ours', violation_type: 'other', ...more };
  if (status === 'credit_issued' || status === 'partial')
    return { status, credit_issued_cents: 1_000, ...more };
  return { status, ...more };
}

export interface ModelEvent {
  from_status: string | null;
  to_status: string;
  denial_reason: string | null;
  violation_type: string | null;
  credit_issued_cents: number | null;
  external_ticket_id: string | null;
}

export interface ModelClaim {
  status: string;
  ticket: string | null;
  credit: number | null;
  total: number;
  history: readonly ModelEvent[];
  isGone: boolean;
}

const NOTHING_SAID = {
  denial_reason: null,
  violation_type: null,
  credit_issued_cents: null,
  external_ticket_id: null,
};

export function aDraft(total: number): ModelClaim {
  const made = { from_status: null, to_status: 'draft', ...NOTHING_SAID };
  return { status: 'draft', ticket: null, credit: null, total, history: [made], isGone: false };
}

/** A status, an error code if any, and the claim afterwards; an unchanged one where nothing changes. */
export interface Expected {
  status: number;
  code?: string;
  after: ModelClaim;
}

export function expectOf(claim: ModelClaim, request: ClaimRequest): Expected {
  const refuse = (status: number, code: string): Expected => ({ status, code, after: claim });
  if (request.call === 'patch' && !isWellSaid(request.body)) return refuse(400, 'invalid_body');
  if (claim.isGone) return refuse(404, 'not_found');
  if (request.call === 'discard')
    return claim.status === 'draft'
      ? { status: 204, after: { ...claim, isGone: true } }
      : refuse(409, 'claim_not_draft');
  const body =
    request.call === 'submit'
      ? { status: 'submitted_to_provider' }
      : (request.body as Record<string, unknown>);
  const to = String(body.status);
  const isLegal = request.call === 'submit' ? claim.status === 'draft' : followers(claim.status).includes(to);
  if (!isLegal) return refuse(409, 'illegal_transition');
  const said = { ...NOTHING_SAID, ...withoutStatus(body) } as Omit<ModelEvent, 'from_status' | 'to_status'>;
  if (to === 'partial' && (said.credit_issued_cents ?? 0) >= claim.total) return refuse(400, 'invalid_body');
  return {
    status: 200,
    after: {
      ...claim,
      status: to,
      ticket: said.external_ticket_id ?? claim.ticket,
      credit: to === 'denied' ? null : (said.credit_issued_cents ?? claim.credit),
      history: [...claim.history, { from_status: claim.status, to_status: to, ...said }],
    },
  };
}

function withoutStatus({ status: _status, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return rest;
}

/** Whether the body alone has no fault. */
function isWellSaid(given: unknown): boolean {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false;
  const body = given as Record<string, unknown>;
  const { status, denial_reason: reason, violation_type: kind, credit_issued_cents: cents } = body;
  const { external_ticket_id: ticket, ...others } = withoutStatus(body);
  const known = ['denial_reason', 'violation_type', 'credit_issued_cents'];
  if (Object.keys(others).some((name) => !known.includes(name))) return false;
  const isAbsent = (value: unknown) => value === undefined || value === null;
  const isText = (value: unknown, longest: number) =>
    typeof value === 'string' && value.trim().length > 0 && value.length <= longest;
  if (typeof status !== 'string' || !STATUSES.includes(status)) return false;
  if (!isAbsent(reason) && !isText(reason, 4_000)) return false;
  if (!isAbsent(kind) && !(typeof kind === 'string' && kind in DENIALS)) return false;
  if (!isAbsent(cents) && !(Number.isInteger(cents) && (cents as number) > 0)) return false;
  if (!isAbsent(ticket) && !isText(ticket, 256)) return false;
  if (status === 'denied') return !isAbsent(reason) && !isAbsent(kind) && isAbsent(cents);
  if (status === 'credit_issued' || status === 'partial') return !isAbsent(cents);
  return true;
}

/** A claim as GET shows it, without the database's values: ids and times. */
export function shownAs(claim: ModelClaim): Record<string, unknown> {
  const last = claim.history.at(-1);
  const isOver = followers(claim.status).length === 0;
  return {
    status: claim.status,
    version: claim.history.length,
    next_statuses: followers(claim.status).sort(),
    external_ticket_id: claim.ticket,
    credit_issued_cents: claim.credit,
    total_recoverable_cents: claim.total,
    events: claim.history.map((event, at) => ({ version: at + 1, ...event })),
    outcomes: isOver
      ? [
          {
            status: claim.status,
            denial_reason: last?.denial_reason ?? null,
            violation_type: last?.violation_type ?? null,
            credit_issued_cents: claim.credit,
          },
        ]
      : [],
  };
}

/** The status and resolution of its disputes. */
export function disputesOf(claim: ModelClaim): { status: string; resolution: string | null } {
  if (claim.status === 'draft') return { status: 'open', resolution: null };
  if (followers(claim.status).length > 0) return { status: 'claimed', resolution: null };
  const kind = claim.history.at(-1)?.violation_type ?? '';
  const ends: Record<string, string> = { credit_issued: 'credit_received', partial: 'credit_partial' };
  return { status: 'resolved', resolution: ends[claim.status] ?? DENIALS[kind] ?? 'written_off' };
}
