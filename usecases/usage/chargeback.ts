import { getOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import { listCoverage } from '../../db/reconciliation/coverage.js';
import { listRequestCosts } from '../../db/usage/requestCosts.js';
import type { UsageDimension, UsageMeasures } from '../../db/usage/usage.js';
import type { AsOfQuestion, UsageView } from '../../domain/billing/periods.js';
import { DomainError } from '../../domain/errors.js';
import type { Pico } from '../../domain/money.js';
import { dayOf } from '../../domain/period.js';
import {
  type Allocation,
  type CalledSpend,
  type Chargeback,
  type ChargebackDimension,
  chargeBack,
  type UncalledSpend,
} from '../../domain/usage/chargeback.js';
import { foldWhenBehind, sumUsageAsOf, type UsageBooks } from './usage.js';

/** Buckets of one answer, beside the one of all others. */
export const CHARGEBACK_BUCKETS_MAX = 10_000;
/** Each of them is one request. */
export const REQUEST_BUCKETS_MAX = 1_000;

/** The totals that have a dimension; `api_key_hash` has none. */
const USAGE_DIMENSIONS: Record<Exclude<ChargebackDimension, 'api_key_hash'>, UsageDimension> = {
  provider: 'provider',
  model: 'model',
  team_id: 'team',
  feature: 'feature',
  project_id: 'project',
  user_id: 'user',
  api_key_id: 'key',
};

export interface ChargebackQuestion extends AsOfQuestion {
  dimension: ChargebackDimension;
  /** Whole UTC days, half-open. */
  fromMicros: bigint;
  toMicros: bigint;
  /** undefined: as the organization has chosen. */
  allocation: Allocation | undefined;
}

export interface ChargebackReport extends Chargeback, Pick<UsageBooks, 'adjustments'> {
  view: UsageView;
  allocation: Allocation;
  /** Billed on days that no run has compared since their bill changed; in no bucket. Null where nothing is allocated. */
  notComparedPico: Pico | null;
}

/**
 * Returns the charge of each value of a dimension for a window, in one snapshot. Joins a transaction of the caller. Errors:
 * as_of_unanswerable; forbidden for a key of a workspace that asks for an allocation.
 */
export async function readChargeback(orgDb: OrgDb, question: ChargebackQuestion): Promise<ChargebackReport> {
  await foldWhenBehind(orgDb);
  return orgDb.transaction(async (inside) => {
    const allocation = await allocationOf(inside, question.allocation);
    const { called, ...books } = await sumCalled(inside, question);
    const { spend, notComparedPico } =
      allocation === 'none' ? { spend: [], notComparedPico: null } : await listUncalled(inside, question);
    const { view, adjustments, totals } = books;
    const back = chargeBack(called, spendOf('', totals), allocation, spend);
    return { ...back, view, adjustments, allocation, notComparedPico };
  }, 'repeatable read');
}

async function allocationOf(inside: OrgDb, asked: Allocation | undefined): Promise<Allocation> {
  if (inside.projectId === undefined)
    return asked ?? (await getOrganization(inside)).settings.chargebackAllocation;
  if (asked === undefined || asked === 'none') return 'none';
  throw new DomainError(
    'forbidden',
    'a key of a workspace reads its own calls alone, and bills are of the whole organization: leave allocation out',
  );
}

const spendOf = (key: string, sums: UsageMeasures): CalledSpend => ({
  key,
  costPico: sums.costPico,
  tokens: sums.inputTokens + sums.outputTokens + sums.cacheRead + sums.cacheCreation,
  rows: sums.calls,
});

async function sumCalled(
  inside: OrgDb,
  question: ChargebackQuestion,
): Promise<UsageBooks & { view: UsageView; called: CalledSpend[] }> {
  const { dimension } = question;
  const byRequest = dimension === 'api_key_hash';
  const asked = byRequest ? 'provider' : USAGE_DIMENSIONS[dimension];
  const sums = await sumUsageAsOf(inside, question, {
    dimension: asked,
    filter: {},
    limit: CHARGEBACK_BUCKETS_MAX,
  });
  const called = byRequest
    ? await listRequestCosts(inside, question, REQUEST_BUCKETS_MAX)
    : sums.groups.slice(0, CHARGEBACK_BUCKETS_MAX).map((group) => spendOf(group.key, group));
  return { ...sums, called };
}

/** Billed usage that no call explains, by the dimension's value where bills name it. */
async function listUncalled(
  inside: OrgDb,
  { dimension, fromMicros, toMicros }: ChargebackQuestion,
): Promise<{ spend: UncalledSpend[]; notComparedPico: Pico }> {
  const days = { fromDay: dayOf(fromMicros), toDay: dayOf(toMicros) };
  const group = dimension === 'model' ? 'model' : 'provider';
  const groups = await listCoverage(inside, group, { ...days, provider: undefined, accountId: undefined });
  const spend = groups.map(({ provider, model, figures }) => ({
    key: dimension === 'provider' ? provider : dimension === 'model' ? model : null,
    unobservedPico: figures.notMatchedPico + figures.notYetObservedPico,
    feesPico: figures.notObservablePico,
  }));
  const notComparedPico = groups.reduce((sum, { figures }) => sum + figures.notComparedPico, 0n);
  return { spend, notComparedPico };
}
