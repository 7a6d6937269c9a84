import type { DraftDeps } from '../../db/claims/draftClaims.js';
import { draftConfirmed } from '../../db/claims/draftConfirmed.js';
import { type RunDrafts, recordRunDrafts } from '../../db/queries/runDrafts.js';
import type { WithheldDraft } from '../../domain/claims/planDrafts.js';
import { publicId } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { loadRun, type RunWork } from './runWork.js';

/** What was withheld, as far as a run's result lists it. */
const LISTED_MAX = 200;

/**
 * Drafts claims over what people have confirmed of the bills that a run has compared, and says in its result what came of
 * it. A run that has published nothing drafts nothing.
 */
export async function draftRunClaims(work: RunWork, deps: DraftDeps): Promise<void> {
  const { orgDb, runId, checkpoint } = work;
  const run = await loadRun(work);
  if (run.status !== 'succeeded' && run.status !== 'partial') return;
  const by = publicId('run', runId);
  const drafted = await draftConfirmed(orgDb, { provider: run.provider, by, checkpoint }, deps);
  for (const { group, error } of drafted.failed)
    work.deps.logger.error(
      { err: error, orgId: orgDb.orgId, runId, disputes: group.disputes.map(({ id }) => id) },
      'a claim could not be drafted; the next run of the provider tries again',
    );
  const withheld = drafted.withheld.slice(0, LISTED_MAX).map(toldWithheld);
  await recordRunDrafts(orgDb, runId, { by, withheld });
}

function toldWithheld({ group, underchargedPico }: WithheldDraft): RunDrafts['withheld'][number] {
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
