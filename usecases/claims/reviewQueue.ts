import { type BrokenPolicy, listBrokenPolicies, sumFindings } from '../../db/claims/financialSums.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  type FindingFilter,
  listFindings,
  type SizePosition,
  type StoredFinding,
} from '../../db/reconciliation/findings.js';
import type { FindingStatus } from '../../domain/claims/financialSummary.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { absPico, type Pico } from '../../domain/money.js';
import type { Direction } from '../../domain/reconciliation/engine/index.js';

/** An item that people decide on: a finding, or a policy that calls have broken. */
export interface QueueItem {
  id: string;
  sizePico: Pico;
  of: { finding: StoredFinding } | { policy: BrokenPolicy };
}

interface QueueFilter {
  status: FindingStatus;
  direction: Direction;
  provider: string | undefined;
  minImpactPico: Pico | undefined;
}

interface QueuePage {
  limit: number;
  offset: number;
  /** Size and public id of the last item of the previous page. */
  after: SizePosition | undefined;
}

const POLICY_ID = /^pol_[1-9]\d{0,8}$/;
/** Sorts after the ids of all findings, because a policy's item follows the findings of its size. */
const LAST_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export const isPolicyItemId = (text: string): boolean => POLICY_ID.test(text);
export const isItemId = (text: string): boolean =>
  isPolicyItemId(text) || findUuid('fnd', text) !== undefined;
/** Public id of a policy's item, from the policy's number in the organization. */
export const policyItemId = ({ policyId }: { policyId: number }): string => `pol_${policyId}`;

/**
 * A page of the queue, largest items first, with the count and size of all items that match the filter, in one
 * snapshot.
 */
export async function readReviewQueue(
  orgDb: OrgDb,
  wanted: QueueFilter,
  page: QueuePage,
): Promise<{ items: QueueItem[]; count: number; sizePico: Pico }> {
  const { status, direction, provider, minImpactPico } = wanted;
  // Decided findings are listed even where their days may be restated again.
  const filter = { provider, minImpactPico, status, direction, forReview: status === 'open' };
  const hasPolicies = status === 'open' && direction === 'overcharge';
  return orgDb.transaction(async (inside) => {
    const policies = hasPolicies ? await listBrokenPolicies(inside, { provider, minImpactPico }) : [];
    const items = await readPage(inside, filter, policies.map(itemOfPolicy), page);
    const sum = await sumFindings(inside, filter);
    return {
      items,
      count: sum.findings + policies.length,
      sizePico: policies.reduce((size, policy) => size + policy.impactPico, sum.sizePico),
    };
  }, 'repeatable read');
}

const itemOfPolicy = (policy: BrokenPolicy): QueueItem => ({
  id: policyItemId(policy),
  sizePico: policy.impactPico,
  of: { policy },
});

const itemOfFinding = (finding: StoredFinding): QueueItem => ({
  id: publicId('fnd', finding.id),
  sizePico: absPico(finding.impactPico),
  of: { finding },
});

/**
 * A page of findings and policies in one order. Policies are few: findings are read from as many rows before the page
 * as there are policies, and the page is cut from the merged list.
 */
async function readPage(
  inside: OrgDb,
  filter: FindingFilter,
  policies: readonly QueueItem[],
  { limit, offset, after }: QueuePage,
): Promise<QueueItem[]> {
  const cursor = after && { sizePico: after.sizePico, id: findUuid('fnd', after.id) ?? LAST_UUID };
  const behind = policies.filter(
    ({ id, sizePico }) =>
      !after || sizePico < after.sizePico || (sizePico === after.sizePico && id > after.id),
  );
  const from = Math.max(0, offset - behind.length);
  const found = await listFindings(inside, filter, {
    limit: limit + offset - from,
    offset: from,
    after: cursor,
  });
  return [...found.map(itemOfFinding), ...behind].sort(bySize).slice(offset - from, offset - from + limit);
}

/** Largest first, then by id. */
function bySize(a: QueueItem, b: QueueItem): number {
  if (a.sizePico !== b.sizePico) return a.sizePico > b.sizePico ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
