import { listDisputesOf } from '../../../db/claims/disputes.js';
import { listBrokenPolicies, sumFindings } from '../../../db/claims/reviewQueue.js';
import type { OrgDb } from '../../../db/orgDb.js';
import {
  type FindingFilter,
  findFinding,
  listFindings,
  lockFinding,
  recordDecision,
  type SizePosition,
  type StoredFinding,
} from '../../../db/reconciliation/findings.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, publicId } from '../../../domain/ids.js';
import { type Pico, picoFromDecimal, usdNumberFromPico } from '../../../domain/money.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { assertForReview, confirmFinding } from '../../../usecases/claims/confirmFinding.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeSizeCursor } from '../../paging.js';
import { providerFilter } from '../../query.js';
import { DISPUTES_PATH, disputeSchema, presentDispute } from '../disputes/wire.js';
import {
  confirmBody,
  dismissBody,
  policyItemId,
  presentPolicyItem,
  presentReviewItem,
  REVIEW_PATH,
  type ReviewItem,
  reviewItemSchema,
  reviewParams,
  reviewQuery,
  reviewResponse,
} from './wire.js';

const TAG = 'Financial';
const READ = { scope: 'financial:read', workspace: 'refused' } as const;
const WRITE = { scope: 'financial:write', workspace: 'refused' } as const;

const POLICY_ID = /^pol_[1-9]\d{0,8}$/;
/** Behind the ids of all findings: a policy's item stands behind the findings of its size. */
const LAST_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const sizeOf = (item: ReviewItem): Pico => picoFromDecimal(item.impact_usd_exact) ?? 0n;

/** The order of the queue: the largest first, then by id. */
function bySize(a: ReviewItem, b: ReviewItem): number {
  const [sizeA, sizeB] = [sizeOf(a), sizeOf(b)];
  if (sizeA !== sizeB) return sizeA > sizeB ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

const positionOf = (item: ReviewItem) => [sizeOf(item), item.id] as const;
const isItemId = (text: string) => POLICY_ID.test(text) || findUuid('fnd', text) !== undefined;

/**
 * A page of findings and policies in one order. Policies are few: findings are read from so many rows earlier on, and the
 * page is cut out of both.
 */
async function readPage(
  orgDb: OrgDb,
  filter: FindingFilter,
  policies: readonly ReviewItem[],
  page: { limit: number; offset: number; after: SizePosition | undefined },
): Promise<ReviewItem[]> {
  const { after } = page;
  const cursor = after && { sizePico: after.sizePico, id: findUuid('fnd', after.id) ?? LAST_UUID };
  const behind = policies.filter(
    (item) =>
      !after || sizeOf(item) < after.sizePico || (sizeOf(item) === after.sizePico && item.id > after.id),
  );
  const from = Math.max(0, page.offset - behind.length);
  const limit = page.limit + page.offset - from;
  const findings = await listFindings(orgDb, filter, { limit, offset: from, after: cursor });
  const both = [...findings.map(presentReviewItem), ...behind].sort(bySize);
  return both.slice(page.offset - from, page.offset - from + page.limit);
}

const readQueue = defineEndpoint({
  operationId: 'getReviewQueue',
  method: 'get',
  path: REVIEW_PATH,
  tag: TAG,
  summary: 'What people are to decide on, the most dollars first',
  description:
    'The provider’s mistakes of every grade once their days are final, what nothing explains, and policies that calls have broken. The organization’s own mistakes are read with the findings.',
  access: READ,
  query: reviewQuery,
  responses: { 200: { description: 'A page of the queue', schema: reviewResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const after = decodeSizeCursor(query.cursor, isItemId);
    const provider = providerFilter(query.provider);
    const minImpactPico = query.min_impact_usd;
    const filter = {
      ...{ provider, minImpactPico, status: query.status, direction: query.direction },
      // What has been decided on is shown, also where its days may be restated again.
      forReview: query.status === 'open',
    };
    const hasPolicies = query.status === 'open' && query.direction === 'overcharge';
    const { items, policies, sum } = await orgDb.transaction(async (inside) => {
      const broken = hasPolicies ? await listBrokenPolicies(inside, { provider, minImpactPico }) : [];
      const page = { limit: query.limit + 1, offset: after ? 0 : query.offset, after };
      return {
        policies: broken,
        items: await readPage(inside, filter, broken.map(presentPolicyItem), page),
        sum: await sumFindings(inside, filter),
      };
    }, 'repeatable read');
    const { shown, page } = cursoredPage(items, query, positionOf);
    const total = policies.reduce((size, policy) => size + policy.impactPico, sum.sizePico);
    return {
      status: 200,
      body: {
        items: shown,
        ...page,
        total_items: sum.findings + policies.length,
        total_impact_usd: usdNumberFromPico(total),
      },
    };
  },
});

/** Error decided_elsewhere for a policy's item, not_found for what is no item. */
async function refuseItem(orgDb: OrgDb, id: string): Promise<never> {
  const policies = POLICY_ID.test(id) ? await listBrokenPolicies(orgDb) : [];
  if (policies.some((policy) => policyItemId(policy) === id))
    throw new DomainError(
      'decided_elsewhere',
      'a policy’s item is closed by acknowledging its alerts: POST /api/v1/alerts/{id}/acknowledge',
    );
  throw new DomainError('not_found', 'there is no item with this id in the review queue');
}

/** The finding behind an item, which nobody else decides on meanwhile. Errors not_found, decided_elsewhere. */
async function lockItem(inside: OrgDb, id: string): Promise<StoredFinding> {
  const uuid = findUuid('fnd', id);
  const finding = uuid === undefined ? undefined : await lockFinding(inside, uuid);
  return finding ?? refuseItem(inside, id);
}

const confirmItem = defineEndpoint({
  operationId: 'confirmReviewItem',
  method: 'post',
  path: `${REVIEW_PATH}/{id}/confirm`,
  tag: TAG,
  summary: 'Say that an item is the provider’s mistake: opens a dispute',
  description:
    'A repeat answers 200 with the same dispute. Where later runs have found more days of it, another dispute is opened over those.',
  access: WRITE,
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
    const { params, body, orgDb, caller, afterCommit } = request;
    const said = { notes: body.notes || null, reopen: body.reopen === true, by: caller.keyId };
    const { dispute, isNew } = await orgDb.transaction(async (inside) => {
      const finding = await lockItem(inside, params.id);
      const confirmed = await confirmFinding(inside, finding, said, deps.nowMicros());
      if (confirmed.isDecided)
        await recordAction(inside, request, 'finding.confirmed', subjectOf(finding), {
          dispute_id: publicId('dsp', confirmed.dispute.id),
          kind: finding.kind,
          amount_cents: confirmed.dispute.amountCents,
        });
      return confirmed;
    });
    if (isNew) afterCommit(() => deps.kickDispatcher());
    const shown = presentDispute(orgDb.orgId, dispute);
    if (!isNew) return { status: 200, body: shown };
    return { status: 201, headers: { Location: `${DISPUTES_PATH}/${shown.id}` }, body: shown };
  },
});

const subjectOf = ({ id }: StoredFinding) => ({ type: 'finding', id: publicId('fnd', id) });

const dismissItem = defineEndpoint({
  operationId: 'dismissReviewItem',
  method: 'post',
  path: `${REVIEW_PATH}/{id}/dismiss`,
  tag: TAG,
  summary: 'Say that there is nothing in an item: closes it',
  description:
    'A repeat changes nothing, the first reason stands. It stays dismissed when later runs find it again, and can be confirmed with reopen.',
  access: WRITE,
  params: reviewParams,
  body: dismissBody,
  responses: { 200: { description: 'The item as it is now', schema: reviewItemSchema } },
  problems: ['not_found', 'decided_elsewhere', 'not_for_review', 'already_decided'],
  async handle(request) {
    const { params, body, orgDb, caller } = request;
    const dismissed = await orgDb.transaction(async (inside) => {
      const finding = await lockItem(inside, params.id);
      if (finding.status === 'dismissed') return finding;
      const live = (await listDisputesOf(inside, finding.id)).find(({ status }) => status !== 'resolved');
      if (live)
        throw new DomainError(
          'already_decided',
          `the dispute ${publicId('dsp', live.id)} is about it; resolve that one first`,
        );
      if (finding.status === 'gone')
        throw new DomainError('already_decided', 'later runs no longer find it: there is nothing to dismiss');
      assertForReview(finding);
      await recordDecision(inside, finding.id, {
        status: 'dismissed',
        by: caller.keyId,
        reason: body.reason,
      });
      const after = await findFinding(inside, finding.id);
      await recordAction(inside, request, 'finding.dismissed', subjectOf(finding), { kind: finding.kind });
      return after ?? finding;
    });
    return { status: 200, body: presentReviewItem(dismissed) };
  },
});

export const reviewQueueEndpoints: readonly Endpoint[] = [readQueue, confirmItem, dismissItem];
