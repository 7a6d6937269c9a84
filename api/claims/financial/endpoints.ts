import { usdNumberFromPico } from '../../../domain/money.js';
import { confirmItem, dismissItem } from '../../../usecases/claims/decideFindings.js';
import { readFinancialSummary } from '../../../usecases/claims/financialSummary.js';
import { isItemId, readReviewQueue } from '../../../usecases/claims/reviewQueue.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeSizeCursor } from '../../paging.js';
import { providerFilter, windowOf } from '../../query.js';
import { DISPUTES_PATH, disputeSchema, presentDispute } from '../disputes/wire.js';
import {
  confirmBody,
  dismissBody,
  FINANCIAL_SUMMARY_PATH,
  presentFinancialSummary,
  presentItem,
  presentReviewItem,
  REVIEW_PATH,
  reviewItemSchema,
  reviewParams,
  reviewQuery,
  reviewResponse,
  summaryQuery,
  summaryResponse,
} from './wire.js';

const routes = endpointGroup({
  tag: 'Financial',
  access: {
    read: { scope: 'financial:read', workspace: 'refused' },
    write: { scope: 'financial:write', workspace: 'refused' },
  },
});

const readQueue = routes.get(REVIEW_PATH, {
  operationId: 'getReviewQueue',
  csv: 'review-queue',
  summary: 'Decisions that are due, the most dollars first',
  description:
    'The provider’s mistakes of every grade once their days are final, what nothing explains, and policies that calls have broken. The organization’s own mistakes are read with the findings.',
  query: reviewQuery,
  responses: { 200: { description: 'A page of the queue', schema: reviewResponse } },
  async handle({ query, orgDb }) {
    const after = decodeSizeCursor(query.cursor, isItemId);
    const { status, direction, min_impact_usd: minImpactPico } = query;
    const filter = { status, direction, minImpactPico, provider: providerFilter(query.provider) };
    const asked = { limit: query.limit + 1, offset: after ? 0 : query.offset, after };
    const { items, count, sizePico } = await readReviewQueue(orgDb, filter, asked);
    const { shown, page } = cursoredPage(items, query, (item) => [item.sizePico, item.id]);
    const totals = { total_items: count, total_impact_usd: usdNumberFromPico(sizePico) };
    return { status: 200, body: { items: shown.map(presentItem), ...page, ...totals } };
  },
});

const confirmItemEndpoint = routes.post(`${REVIEW_PATH}/{id}/confirm`, {
  operationId: 'confirmReviewItem',
  summary: 'Say that an item is the provider’s mistake: opens a dispute',
  description:
    'A repeat answers 200 with the same dispute. Where later runs have found more days of it, another dispute is opened over those.',
  params: reviewParams,
  body: confirmBody,
  isBodyOptional: true,
  responses: {
    201: {
      description: 'The dispute that was opened',
      schema: disputeSchema,
      headers: { Location: 'The dispute' },
    },
    200: { description: 'The dispute that there was', schema: disputeSchema },
  },
  problems: [
    'not_found',
    'decided_elsewhere',
    'not_for_review',
    'nothing_to_dispute',
    'already_decided',
    'already_disputed',
  ],
  async handle(request, deps) {
    const { params, body, orgDb, afterCommit } = request;
    const said = { notes: body.notes || null, reopen: body.reopen === true };
    const { dispute, isNew } = await confirmItem(orgDb, params.id, said, request, deps.nowMicros());
    const shown = presentDispute(orgDb.orgId, dispute);
    if (!isNew) return { status: 200, body: shown };
    afterCommit(() => deps.kickDispatcher());
    return { status: 201, headers: { Location: `${DISPUTES_PATH}/${shown.id}` }, body: shown };
  },
});

const dismissItemEndpoint = routes.post(`${REVIEW_PATH}/{id}/dismiss`, {
  operationId: 'dismissReviewItem',
  summary: 'Say that there is nothing in an item: closes it',
  description:
    'A repeat changes nothing and keeps the first reason. The finding stays dismissed when later runs find it again, and can be confirmed with reopen.',
  params: reviewParams,
  body: dismissBody,
  responses: { 200: { description: 'The item as it is now', schema: reviewItemSchema } },
  problems: ['not_found', 'decided_elsewhere', 'not_for_review', 'already_decided'],
  async handle(request) {
    const { params, body, orgDb } = request;
    const dismissed = await dismissItem(orgDb, params.id, body.reason, request);
    return { status: 200, body: presentReviewItem(dismissed) };
  },
});

export const reviewQueueEndpoints: readonly Endpoint[] = [
  readQueue,
  confirmItemEndpoint,
  dismissItemEndpoint,
];

const readSummary = routes.get(FINANCIAL_SUMMARY_PATH, {
  operationId: 'getFinancialSummary',
  tag: 'Financial',
  summary: 'Amounts to recover and to save, in six numbers that add up',
  description:
    'Of all time unless from or to are given. A finding that spans the window counts with its days in it. Each number is rounded to cents before the total is made.',
  access: { scope: 'financial:read', workspace: 'refused' },
  query: summaryQuery,
  responses: { 200: { description: 'The summary', schema: summaryResponse } },
  problems: ['invalid_range'],
  async handle({ query, orgDb }, deps) {
    const window = windowOf(query.from, query.to, ['from', 'to']);
    const { summary, modeled } = await readFinancialSummary(orgDb, window, deps.nowMicros());
    return { status: 200, body: presentFinancialSummary(summary, window, modeled) };
  },
});

export const financialEndpoints: readonly Endpoint[] = [readSummary];
