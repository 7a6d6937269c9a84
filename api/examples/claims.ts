import { idFrom, type OperationExample, ValueFrom } from './example.js';

const DISPUTE_ID = idFrom('dsp', 'confirmReviewItem', '/id');
const OPEN_DISPUTE_ID = idFrom('dsp', 'listDisputes', '/disputes/0/id', { status: 'open' });
const FINDING_ID = idFrom('fnd', 'listFindings', '/findings/0/id');
const CLAIM_ID = idFrom('clm', 'createClaim', '/id');
const ESCALATED_ID = idFrom('clm', 'setClaimStatus', '/id');
const RESOLUTION = { resolution: 'provider_correct', notes: 'The provider showed the order.' };

/** Findings, the decisions on them, disputes and claims. */
export const CLAIM_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  getFinancialSummary: {},
  getReviewQueue: { query: { provider: 'openai', limit: '1' } },
  confirmReviewItem: {
    params: { id: idFrom('fnd', 'getReviewQueue', '/items/0/id') },
    body: { notes: 'Checked against the invoice.' },
  },
  dismissReviewItem: {
    params: { id: idFrom('fnd', 'getReviewQueue', '/items/0/id', { provider: 'anthropic' }) },
    body: { reason: 'The provider has already credited it.' },
  },
  listFindings: { query: { provider: 'openai', limit: '1' } },
  getFinding: { params: { id: FINDING_ID } },
  listDisputes: { query: { limit: '1' } },
  getDispute: { params: { id: DISPUTE_ID } },
  exportDisputes: { query: { status: 'open' } },
  resolveDispute: { params: { id: OPEN_DISPUTE_ID }, body: RESOLUTION },
  resolveDisputeByPatch: { params: { id: OPEN_DISPUTE_ID }, body: RESOLUTION },
  resolveDisputeByPut: { params: { id: OPEN_DISPUTE_ID }, body: RESOLUTION },
  listClaims: { query: { limit: '1' } },
  createClaim: { body: { dispute_ids: [DISPUTE_ID], notes: 'First claim of the month.' } },
  getClaim: { params: { id: CLAIM_ID } },
  discardClaim: { params: { id: CLAIM_ID } },
  mergeClaims: {
    params: { id: CLAIM_ID },
    body: { claim_ids: [idFrom('clm', 'listClaims', '/claims/1/id', { status: 'draft', limit: '2' })] },
  },
  submitClaim: { params: { id: CLAIM_ID } },
  snoozeClaim: {
    params: { id: idFrom('clm', 'submitClaim', '/id') },
    body: {
      until: new ValueFrom('2026-12-14', { operationId: 'submitClaim', pointer: '/next_action_at' }),
    },
  },
  setClaimStatus: {
    params: { id: idFrom('clm', 'submitClaim', '/id') },
    body: { status: 'escalated', external_ticket_id: 'CASE-2026-118' },
  },
  getClaimEvidenceJson: { params: { id: CLAIM_ID } },
  getClaimEvidenceCsv: { params: { id: CLAIM_ID } },
  getClaimEvidencePdf: { params: { id: CLAIM_ID } },
  getClaimEvidencePack: { params: { id: CLAIM_ID } },
  draftTicket: { params: { id: ESCALATED_ID } },
  getTicketDraft: { params: { id: ESCALATED_ID } },
  rejectClaimCredit: {
    params: {
      id: CLAIM_ID,
      credit_id: idFrom('crd', 'getClaim', '/proposed_credits/0/id'),
    },
  },
};
