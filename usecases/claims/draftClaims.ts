import { recordAudit } from '../../db/access/auditLog.js';
import { recordBilledDays } from '../../db/claims/claimCredits.js';
import {
  deleteDraft,
  deleteUndercharges,
  insertClaim,
  insertClaimParts,
  releaseDisputes,
  updateDraft,
} from '../../db/claims/claimRows.js';
import {
  findClaim,
  insertClaimEvent,
  listDisputeIdsOfClaim,
  lockClaim,
  readBusinessDays,
  type StoredClaim,
} from '../../db/claims/claims.js';
import {
  type ClaimableDispute,
  type ClaimedAccount,
  listClaimable,
  listDraftableAccounts,
  listNettable,
  loadDraftDisputes,
  lockClaimable,
} from '../../db/claims/draftDisputes.js';
import { insertClaimFiles } from '../../db/claims/evidence.js';
import { recordCitedInvoices } from '../../db/invoices/comparedInvoices.js';
import { lockByName } from '../../db/locks.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import type { AuditEntry } from '../../domain/access/auditLog.js';
import { nextDeadline } from '../../domain/claims/deadlines.js';
import {
  type DraftClaim,
  type DraftGroup,
  type DraftPlan,
  disputedPicoOf,
  monthsOf,
  netDraft,
  nettedPicoOf,
  planDrafts,
  type WithheldDraft,
} from '../../domain/claims/draft.js';
import { NO_FIELDS } from '../../domain/claims/lifecycle.js';
import { DomainError, type ErrorCode, invalidField } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { claimCreatedMessage } from '../../domain/webhooks/messages.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { ratedDraft } from '../reconciliation/recomputeWeights.js';
import { type EvidenceDeps, type FrozenEvidence, freezeEvidence } from './freezeEvidence.js';
import { claimNotFound, getWholeClaim, type WholeClaim } from './wholeClaim.js';

/** Dependencies of drafting claims. */
export type DraftDeps = EvidenceDeps;

/**
 * Loads the organization's prices. Call it before a transaction: loading inside one holds a connection while it waits
 * for another, and two such requests can block each other.
 */
export async function readyToDraft(orgId: string, deps: DraftDeps): Promise<DraftDeps> {
  const book = await deps.prices.freshOf(orgId);
  return { ...deps, prices: { freshOf: async () => book } };
}

/** `readyToDraft` for drafts that are to be merged. Error: invalid_body where a draft would be merged with itself. */
export function readyToMerge(
  orgId: string,
  { intoId, otherIds }: { intoId: string; otherIds: readonly string[] },
  deps: DraftDeps,
): Promise<DraftDeps> {
  if (otherIds.includes(intoId))
    throw invalidField('body', 'claim_ids', 'must not name the draft itself', 'invalid_body');
  return readyToDraft(orgId, deps);
}

/**
 * Drafts a claim over chosen disputes. The claim is net of undercharges to the account in the same months, and its
 * evidence is frozen. `deps` come from `readyToDraft`. Errors: not_found, mixed_accounts, already_claimed,
 * already_resolved, nets_to_nothing.
 */
export async function createClaim(
  orgDb: OrgDb,
  given: { disputeIds: readonly string[]; notes: string | null },
  author: RequestAuthor,
  deps: DraftDeps,
): Promise<WholeClaim> {
  return orgDb.transaction(async (inside) => {
    const draft = await planChosen(inside, given.disputeIds, deps);
    const said = { by: author.caller.keyId, notes: given.notes };
    const claim = await storeNewClaim(inside, draft, said, deps);
    const whole = await getWholeClaim(inside, claim.id);
    await recordAction(inside, author, 'claim.created', subjectOf(claim.id), {
      dispute_ids: whole.disputeIds.map((id) => publicId('dsp', id)),
      total_recoverable_cents: claim.recoverableCents,
    });
    return whole;
  });
}

/** Locks the chosen disputes and plans their claim. */
async function planChosen(
  inside: OrgDb,
  disputeIds: readonly string[],
  deps: DraftDeps,
): Promise<DraftClaim> {
  const seen = allOf(disputeIds, await listClaimable(inside, disputeIds));
  const account = accountOf(seen);
  for (const dispute of seen) assertClaimable(dispute);
  await lockDrafting(inside, account);
  const held = allOf(disputeIds, await lockClaimable(inside, disputeIds));
  for (const dispute of held) assertClaimable(dispute);
  return netChosen(inside, account, newUuid(deps.nowMicros()), disputeIds);
}

/** Stores a draft that holds its disputes, and publishes a message. */
export async function storeNewClaim(
  inside: OrgDb,
  planned: DraftClaim,
  said: { by: string; notes: string | null },
  deps: DraftDeps,
): Promise<StoredClaim> {
  const draft = await ratedDraft(inside, planned);
  const frozen = await freezeEvidence(inside, draft, deps);
  const claim = await insertDraft(inside, draft, frozen, said);
  await publishMessages(inside, [claimCreatedMessage(claim)]);
  return claim;
}

/**
 * Merges drafts into `intoId` with all their disputes, nets and freezes it again, and deletes the others. Errors:
 * not_found, mixed_accounts, claim_not_draft, nets_to_nothing.
 */
export async function mergeDrafts(
  orgDb: OrgDb,
  given: { intoId: string; otherIds: readonly string[] },
  author: RequestAuthor,
  deps: DraftDeps,
): Promise<WholeClaim> {
  return orgDb.transaction(async (inside) => {
    const claim = await mergeInside(inside, { ...given, by: author.caller.keyId }, deps);
    const whole = await getWholeClaim(inside, claim.id);
    await recordAction(inside, author, 'claim.merged', subjectOf(claim.id), {
      merged_claim_ids: given.otherIds.map((id) => publicId('clm', id)),
      total_recoverable_cents: claim.recoverableCents,
    });
    return whole;
  });
}

async function mergeInside(
  inside: OrgDb,
  given: { intoId: string; otherIds: readonly string[]; by: string },
  deps: DraftDeps,
): Promise<StoredClaim> {
  const ids = [given.intoId, ...given.otherIds];
  const seen = await Promise.all(ids.map((id) => findClaim(inside, id)));
  const account = accountOf(seen.map((claim) => claim ?? throwNoClaim()));
  await lockDrafting(inside, account);
  const held: StoredClaim[] = [];
  // Locked in one order, so that two merges of the same claims cannot deadlock.
  for (const id of [...ids].sort()) held.push(await lockDraft(inside, id));
  const into = held.find(({ id }) => id === given.intoId) ?? throwNoClaim();
  const disputeIds = (await Promise.all(ids.map((id) => listDisputeIdsOfClaim(inside, id)))).flat();
  await lockClaimable(inside, disputeIds);
  await deleteUndercharges(inside, ids);
  const draft = await ratedDraft(inside, await netChosen(inside, account, into.id, disputeIds));
  const frozen = await freezeEvidence(inside, draft, deps);
  const merged = await replaceDraft(inside, into, draft, frozen, given.by);
  for (const id of given.otherIds) await deleteDraft(inside, id);
  return merged;
}

/**
 * Discards a draft. Its disputes stay open and are in no claim; the undercharges that it netted are available again.
 * Errors: not_found, claim_not_draft.
 */
export async function discardDraft(orgDb: OrgDb, id: string, author: RequestAuthor): Promise<void> {
  await orgDb.transaction(async (inside) => {
    const claim = await lockDraft(inside, id);
    const disputeIds = await listDisputeIdsOfClaim(inside, id);
    await releaseDisputes(inside, id);
    await deleteDraft(inside, id);
    await recordAction(inside, author, 'claim.discarded', subjectOf(id), {
      dispute_ids: disputeIds.map((one) => publicId('dsp', one)),
      total_recoverable_cents: claim.recoverableCents,
    });
  });
}

const subjectOf = (id: string) => ({ type: 'claim', id: publicId('clm', id) });

/** Serializes drafting within an account, so that no undercharge is netted twice. */
export function lockDrafting(inside: OrgDb, { provider, accountId }: ClaimedAccount): Promise<void> {
  return lockByName(inside, 'claimDrafts', JSON.stringify([inside.orgId, provider, accountId]));
}

/** Plans the claim over these disputes, which are locked. Error: nets_to_nothing. */
async function netChosen(
  inside: OrgDb,
  account: ClaimedAccount,
  id: string,
  disputeIds: readonly string[],
): Promise<DraftClaim> {
  const disputes = await loadDraftDisputes(inside, disputeIds);
  const undercharges = await listNettable(inside, account, monthsOf(disputes));
  const draft = netDraft(id, { disputes, undercharges });
  if (draft) return draft;
  const [over, under] = [disputedPicoOf(disputes), nettedPicoOf(undercharges)].map(decimalFromPico);
  throw new DomainError(
    'nets_to_nothing',
    `$${over} was charged too much and $${under} too little in the account and the months of these disputes: nothing is left to ask for`,
  );
}

/** Locks and returns a draft. Errors: claim_not_draft, not_found. */
async function lockDraft(inside: OrgDb, id: string): Promise<StoredClaim> {
  const claim = (await lockClaim(inside, id)) ?? throwNoClaim();
  if (claim.status !== 'draft')
    throw new DomainError(
      'claim_not_draft',
      `${publicId('clm', id)} is ${claim.status}: only drafts are merged or discarded`,
    );
  return claim;
}

function throwNoClaim(): never {
  throw claimNotFound();
}

/** Throws not_found where the organization lacks one of the disputes. */
function allOf(ids: readonly string[], found: ClaimableDispute[]): ClaimableDispute[] {
  const known = new Set(found.map(({ id }) => id));
  const unknown = ids.findIndex((id) => !known.has(id));
  if (unknown >= 0)
    throw new DomainError('not_found', `there is no dispute with the id at place ${unknown + 1} of the list`);
  return found;
}

/** The account that all of them share. Error: mixed_accounts. */
function accountOf(all: readonly ClaimedAccount[]): ClaimedAccount {
  const [first] = all;
  const other = all.find(
    ({ provider, accountId }) => provider !== first?.provider || accountId !== first.accountId,
  );
  if (!first || other)
    throw new DomainError(
      'mixed_accounts',
      `a claim is over one account of one provider, and these are of ${all.map(nameOf).filter(isFirst).join(', ')}`,
    );
  return { provider: first.provider, accountId: first.accountId };
}

const nameOf = ({ provider, accountId }: ClaimedAccount) =>
  accountId === '' ? `${provider} without an account` : `${provider} ${accountId}`;
const isFirst = (name: string, at: number, all: readonly string[]) => all.indexOf(name) === at;

/** Throws already_claimed or already_resolved for a dispute that can no longer be claimed. */
function assertClaimable({ id, status, claimId }: ClaimableDispute): void {
  const name = publicId('dsp', id);
  if (status === 'resolved') throw new DomainError('already_resolved', `${name} is resolved`);
  if (claimId !== null)
    throw new DomainError(
      'already_claimed',
      `${name} is in the claim ${publicId('clm', claimId)}: merge or discard that one while it is a draft`,
    );
}

/** Stores a claim as a draft with all its parts. Its disputes are locked, open and in no claim. */
export async function insertDraft(
  inside: OrgDb,
  draft: DraftClaim,
  frozen: FrozenEvidence,
  said: { by: string; notes: string | null },
): Promise<StoredClaim> {
  const atMicros = await readClock(inside);
  const { periodEnd } = draft;
  const next = nextDeadline(
    { status: 'draft', enteredAtMicros: atMicros, periodEnd, notifiedSteps: [], snoozedUntilMicros: null },
    await readBusinessDays(inside),
  );
  await insertClaim(inside, { draft, evidence: frozen, next, atMicros, ...said });
  await insertParts(inside, draft, frozen);
  await insertClaimEvent(inside, {
    ...{ claimId: draft.id, version: 1, commandId: `draft:${draft.id}`, from: null, to: 'draft' },
    ...{ atMicros, actor: said.by, fields: NO_FIELDS },
    ...{ nextAction: next?.action ?? null, nextActionAtMicros: next?.atMicros ?? null },
  });
  return woken(inside, draft.id);
}

/**
 * Replaces a draft under the same id by one over more disputes, netted and frozen again. Its creation time stays, and
 * its history records the replacement. The row is locked; the undercharges that it netted are already released.
 */
export async function replaceDraft(
  inside: OrgDb,
  before: StoredClaim,
  draft: DraftClaim,
  frozen: FrozenEvidence,
  by: string,
): Promise<StoredClaim> {
  const atMicros = await readClock(inside);
  // Reminders that were sent for the former draft are not repeated.
  const next = nextDeadline(
    { ...before, periodEnd: draft.periodEnd, snoozedUntilMicros: null },
    await readBusinessDays(inside),
  );
  await updateDraft(inside, { draft, evidence: frozen, next, atMicros });
  await insertParts(inside, draft, frozen);
  const version = before.version + 1;
  await insertClaimEvent(inside, {
    ...{ claimId: draft.id, version, commandId: `draft:${draft.id}:${version}`, from: null, to: 'draft' },
    ...{ atMicros, actor: by, fields: NO_FIELDS },
    ...{ nextAction: next?.action ?? null, nextActionAtMicros: next?.atMicros ?? null },
  });
  return woken(inside, draft.id);
}

/** The stored claim, with a message that wakes its workflow, which watches its deadlines. */
async function woken(inside: OrgDb, id: string): Promise<StoredClaim> {
  await insertOutboxMessage(inside, 'claim.wake', id);
  const claim = await findClaim(inside, id);
  if (!claim) throw new Error('the claim was stored, so it is there');
  return claim;
}

/**
 * Stores the claim's disputes, its netted undercharges, the bill's state of its days, and the files of its evidence.
 */
async function insertParts(inside: OrgDb, draft: DraftClaim, frozen: FrozenEvidence): Promise<void> {
  await insertClaimParts(inside, draft);
  await recordCitedInvoices(inside, draft.id, frozen.invoiceIds);
  await recordBilledDays(inside, draft.id);
  await insertClaimFiles(inside, draft.id, frozen.files);
}

/** Whether drafting is still allowed; the answer holds until the transaction ends. */
type Holds = (inside: OrgDb) => Promise<boolean>;

export interface Drafted {
  claims: StoredClaim[];
  /** Groups without a draft, because undercharges cancel them out. */
  withheld: WithheldDraft[];
  /** Groups whose draft failed, with the error. */
  failed: { group: DraftGroup; error: unknown }[];
}

/**
 * Drafts claims over the confirmed disputes of a provider's bills (null: of all bills) that are in no claim and still
 * found: one for each account, kind and month. Each is one transaction, so that finished drafts stay when the next one
 * fails. A repeat drafts nothing more. `by` is recorded as the claims' author. `checkpoint` is called between two
 * drafts and throws to stop. `holds` is called in each transaction, which drafts nothing when it returns false. Throws
 * DomainError service_unavailable when the database is unreachable; the caller may repeat it then.
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

/** Drafts the largest claim of an account that can be drafted, if any. */
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

/** The account's present draft, with its disputes locked. */
async function planAccount(inside: OrgDb, account: ClaimedAccount): Promise<DraftPlan> {
  const [draftable] = await listDraftableAccounts(inside, account.provider, account.accountId);
  // Locked before they are read again: disputes that others resolve or claim meanwhile drop out.
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
