import { keepPublishedRunOpen } from '../../db/reconciliation/publishedGapRuns.js';
import { type RunDrafts, recordRunDrafts } from '../../db/reconciliation/runDrafts.js';
import type { WithheldDraft } from '../../domain/claims/draft.js';
import { publicId } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import type { DraftDeps } from '../claims/draftClaims.js';
import { draftConfirmed } from '../claims/draftConfirmed.js';
import { findCredits } from '../claims/findCredits.js';
import { loadRun, type RunWork } from './gapRunWork.js';

/**
 * Looks for the answers to filed claims on the bills that a run has compared. A run that has published nothing, or has
 * ended, looks for none.
 */
export async function findRunCredits(work: RunWork): Promise<void> {
  const { orgDb, runId, checkpoint } = work;
  const { provider } = await loadRun(work);
  await findCredits(orgDb, {
    provider,
    checkpoint,
    holds: (inside) => keepPublishedRunOpen(inside, runId),
  });
}

/** What was withheld, as far as a run's result lists it. */
const LISTED_MAX = 200;

/**
 * Drafts claims over what people have confirmed of the bills that a run has compared, and adds to its result what came of
 * it. A run that has published nothing, or has ended, drafts nothing. Returns how many claims could not be drafted.
 */
export async function draftRunClaims(work: RunWork, deps: DraftDeps): Promise<{ failed: number }> {
  const { orgDb, runId, checkpoint } = work;
  const run = await loadRun(work);
  const by = publicId('run', runId);
  const drafted = await draftConfirmed(
    orgDb,
    { provider: run.provider, by, checkpoint, holds: (inside) => keepPublishedRunOpen(inside, runId) },
    deps,
  );
  for (const { group, error } of drafted.failed)
    work.deps.logger.error(
      { err: error, orgId: orgDb.orgId, runId, disputes: group.disputes.map(({ id }) => id) },
      'a claim could not be drafted; the next run of the provider tries again',
    );
  const withheld = drafted.withheld.slice(0, LISTED_MAX).map(presentWithheld);
  await recordRunDrafts(orgDb, runId, { by, withheld });
  return { failed: drafted.failed.length };
}

function presentWithheld({ group, underchargedPico }: WithheldDraft): RunDrafts['withheld'][number] {
  return {
    provider: group.provider,
    provider_account_id: group.accountId,
    kind: group.kind,
    month: group.month,
    dispute_ids: group.disputes.map(({ id }) => id).sort(),
    disputed_usd: decimalFromPico(group.disputedPico),
    undercharged_usd: decimalFromPico(underchargedPico),
  };
}
