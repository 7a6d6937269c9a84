import { recordAudit } from '../../db/access/auditLog.js';
import type { StoredClaim } from '../../db/claims/claims.js';
import {
  type ClaimedAccount,
  listDraftableAccounts,
  listNettable,
  loadDraftDisputes,
  lockClaimable,
} from '../../db/claims/draftDisputes.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { AuditEntry } from '../../domain/access/auditLog/actions.js';
import {
  type DraftGroup,
  type DraftPlan,
  monthsOf,
  netDraft,
  planDrafts,
  type WithheldDraft,
} from '../../domain/claims/draft.js';
import { DomainError, type ErrorCode } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { type DraftDeps, lockDrafting, readyToDraft, storeNewClaim } from './draftClaims.js';

/** Whether whoever drafts may still do so; it stays so until the transaction ends. */
type Holds = (inside: OrgDb) => Promise<boolean>;

/** What came of drafting. */
export interface Drafted {
  claims: StoredClaim[];
  /** Over what nothing was drafted, since as much was charged too little. */
  withheld: WithheldDraft[];
  /** What could not be made, and why. */
  failed: { group: DraftGroup; error: unknown }[];
}

/**
 * Drafts claims over what people have confirmed of a provider's bills (null: of all of them), as far as it is in no claim
 * and still found: one for each account, kind and month, each in a transaction of its own, so that what has been made stays
 * when the next one fails. Again it drafts nothing more. `by` is who the claims say made them; `checkpoint` is
 * asked between two of them and throws where nothing more is to be made; `holds` is asked in each transaction, and nothing
 * is made where it is false. Throws DomainError service_unavailable where the database cannot be asked; repeat it then.
 */
export async function draftConfirmed(
  orgDb: OrgDb,
  given: { provider: string | null; by: string; checkpoint?: () => void; holds?: Holds },
  deps: DraftDeps,
): Promise<Drafted> {
  const drafted: Drafted = { claims: [], withheld: [], failed: [] };
  const accounts = await listDraftableAccounts(orgDb, given.provider);
  if (accounts.length === 0) return drafted;
  const ready = await readyToDraft(orgDb.orgId, deps);
  for (const account of accounts) {
    const failed = new Map<string, { group: DraftGroup; error: unknown }>();
    for (let goesOn = true; goesOn; ) {
      given.checkpoint?.();
      const step = await draftOne(orgDb, account, given, new Set(failed.keys()), ready);
      goesOn = step.made !== undefined || step.failed !== undefined;
      if (step.made) drafted.claims.push(step.made);
      else if (step.failed) failed.set(step.failed.group.key, step.failed);
      else drafted.withheld.push(...step.withheld);
    }
    drafted.failed.push(...failed.values());
  }
  return drafted;
}

interface Step {
  made?: StoredClaim;
  failed?: { group: DraftGroup; error: unknown };
  withheld: WithheldDraft[];
}

/** Drafts the largest claim of an account that there is to draft, if there is one. */
async function draftOne(
  orgDb: OrgDb,
  account: ClaimedAccount,
  { by, holds }: { by: string; holds?: Holds },
  isLeftOut: ReadonlySet<string>,
  deps: DraftDeps,
): Promise<Step> {
  let group: DraftGroup | undefined;
  try {
    return await orgDb.transaction(async (inside) => {
      if (holds && !(await holds(inside))) return { withheld: [] };
      await lockDrafting(inside, account);
      const plan = await planAccount(inside, account);
      const next = plan.drafts.find((draft) => !isLeftOut.has(draft.group.key));
      if (!next) return { withheld: plan.withheld };
      group = next.group;
      const id = newUuid(deps.nowMicros());
      const draft = netDraft(id, { disputes: next.group.disputes, undercharges: next.undercharges });
      if (!draft) throw new Error('what is planned asks for something');
      const made = await storeNewClaim(inside, draft, { by, notes: null }, deps);
      await recordAudit(inside, createdByRun(made, next.group));
      return { made, withheld: [] };
    });
  } catch (error) {
    if (!group || isTransient(error)) throw error;
    return { failed: { group, error }, withheld: [] };
  }
}

const PASSING: ReadonlySet<ErrorCode> = new Set(['service_unavailable', 'storage_full']);
const isTransient = (error: unknown) => error instanceof DomainError && PASSING.has(error.code);

/** What is to be drafted in an account as it is now; its disputes are held. */
async function planAccount(inside: OrgDb, account: ClaimedAccount): Promise<DraftPlan> {
  const [draftable] = await listDraftableAccounts(inside, account.provider, account.accountId);
  // Held first and looked at then: what somebody resolves or claims meanwhile is out.
  const held = await lockClaimable(inside, draftable?.disputeIds ?? []);
  const open = held.filter(({ status, claimId }) => status === 'open' && claimId === null);
  const disputes = await loadDraftDisputes(
    inside,
    open.map(({ id }) => id),
  );
  return planDrafts(disputes, await listNettable(inside, account, monthsOf(disputes)));
}

function createdByRun(claim: StoredClaim, group: DraftGroup): AuditEntry {
  return {
    action: 'claim.created',
    actor: { kind: 'system', id: 'gap_run' },
    subject: { type: 'claim', id: publicId('clm', claim.id) },
    details: {
      run_id: claim.createdBy,
      dispute_ids: group.disputes.map(({ id }) => publicId('dsp', id)),
      total_recoverable_cents: claim.recoverableCents,
    },
    requestId: null,
  };
}
