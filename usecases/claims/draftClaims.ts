import { findClaim, listDisputeIdsOfClaim, lockClaim, type StoredClaim } from '../../db/claims/claims.js';
import {
  type ClaimableDispute,
  type ClaimedAccount,
  listClaimable,
  listNettable,
  loadDraftDisputes,
  lockClaimable,
} from '../../db/claims/draftDisputes.js';
import { lockByName } from '../../db/locks.js';
import { newUuid } from '../../db/newUuid.js';
import type { OrgDb } from '../../db/orgDb.js';
import { plainArray } from '../../db/pgArray.js';
import { publishMessages } from '../../db/webhooks/webhookMessages.js';
import {
  type DraftClaim,
  disputedPicoOf,
  monthsOf,
  netDraft,
  nettedPicoOf,
} from '../../domain/claims/draft.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { claimCreatedMessage } from '../../domain/webhooks/claimCreatedMessage.js';
import { ratedDraft } from '../reconciliation/ratedDraft.js';
import { type EvidenceDeps, freezeEvidence } from './freezeEvidence.js';
import { insertDraft, replaceDraft } from './storeDraft.js';

/** What making a claim asks of the process. */
export type DraftDeps = EvidenceDeps;

/**
 * The same with the organization's prices at hand: ask for them before a transaction, which holds a connection while others
 * wait for their turn with theirs.
 */
export async function readyToDraft(orgId: string, deps: DraftDeps): Promise<DraftDeps> {
  const book = await deps.prices.freshOf(orgId);
  return { ...deps, prices: { freshOf: async () => book } };
}

/**
 * Makes a claim over disputes that somebody has chosen, in the transaction that it is given: as a draft, net of what the
 * provider charged the account too little in the same months, with its evidence frozen. Errors not_found, mixed_accounts,
 * already_claimed, already_resolved, nets_to_nothing.
 */
export async function createClaim(
  inside: OrgDb,
  given: { disputeIds: readonly string[]; by: string; notes: string | null },
  deps: DraftDeps,
): Promise<StoredClaim> {
  const seen = allOf(given.disputeIds, await listClaimable(inside, given.disputeIds));
  const account = accountOf(seen);
  for (const dispute of seen) assertClaimable(dispute);
  await lockDrafting(inside, account);
  const held = allOf(given.disputeIds, await lockClaimable(inside, given.disputeIds));
  for (const dispute of held) assertClaimable(dispute);
  const draft = await netChosen(inside, account, newUuid(deps.nowMicros()), given.disputeIds);
  return storeNewClaim(inside, draft, given, deps);
}

/** Stores a draft that holds its disputes, and tells whoever wants to know. */
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
 * Makes one draft of several: `intoId` stays, with all their disputes, netted and frozen anew; the others are gone.
 * Errors not_found, mixed_accounts, claim_not_draft, nets_to_nothing.
 */
export async function mergeDrafts(
  inside: OrgDb,
  given: { intoId: string; otherIds: readonly string[]; by: string },
  deps: DraftDeps,
): Promise<StoredClaim> {
  const ids = [given.intoId, ...given.otherIds];
  const seen = await Promise.all(ids.map((id) => findClaim(inside, id)));
  const account = accountOf(seen.map((claim) => claim ?? throwNoClaim()));
  await lockDrafting(inside, account);
  const held: StoredClaim[] = [];
  // In one order, so that two who merge the same claims wait for each other.
  for (const id of [...ids].sort()) held.push(await lockDraft(inside, id));
  const into = held.find(({ id }) => id === given.intoId) ?? throwNoClaim();
  const disputeIds = (await Promise.all(ids.map((id) => listDisputeIdsOfClaim(inside, id)))).flat();
  await lockClaimable(inside, disputeIds);
  await inside.run('delete from claim_undercharges where org_id = $1 and claim_id = any($2::uuid[])', [
    inside.orgId,
    plainArray(ids),
  ]);
  const draft = await ratedDraft(inside, await netChosen(inside, account, into.id, disputeIds));
  const frozen = await freezeEvidence(inside, draft, deps);
  const merged = await replaceDraft(inside, into, draft, frozen, given.by);
  for (const id of given.otherIds) await removeClaim(inside, id);
  return merged;
}

/**
 * Takes a draft away. Its disputes stay open and are in no claim; what it netted is free again. Returns what it was.
 * Errors not_found, claim_not_draft.
 */
export async function discardDraft(
  inside: OrgDb,
  id: string,
): Promise<{ claim: StoredClaim; disputeIds: string[] }> {
  const claim = await lockDraft(inside, id);
  const disputeIds = await listDisputeIdsOfClaim(inside, id);
  await inside.run('update disputes set claim_id = null where org_id = $1 and claim_id = $2::uuid', [
    inside.orgId,
    id,
  ]);
  await removeClaim(inside, id);
  return { claim, disputeIds };
}

/** With its history and its files, which go with the row. */
async function removeClaim(inside: OrgDb, id: string): Promise<void> {
  await inside.run(`delete from claims where org_id = $1 and id = $2::uuid and status = 'draft'`, [
    inside.orgId,
    id,
  ]);
}

/** Whoever drafts claims of an account waits for whoever does already, so that nothing is netted twice. */
export function lockDrafting(inside: OrgDb, { provider, accountId }: ClaimedAccount): Promise<void> {
  return lockByName(inside, 'claimDrafts', JSON.stringify([inside.orgId, provider, accountId]));
}

/** The claim over these disputes, which are held. Error nets_to_nothing. */
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

/** Error claim_not_draft, not_found. */
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
  throw new DomainError('not_found', 'there is no claim with this id');
}

/** Error not_found where one of them is none of the organization's. */
function allOf(ids: readonly string[], found: ClaimableDispute[]): ClaimableDispute[] {
  const known = new Set(found.map(({ id }) => id));
  const unknown = ids.findIndex((id) => !known.has(id));
  if (unknown >= 0)
    throw new DomainError('not_found', `there is no dispute with the id at place ${unknown + 1} of the list`);
  return found;
}

/** The one account that all of them are of. Error mixed_accounts. */
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

/** Error already_claimed or already_resolved where it is no longer open to be claimed. */
function assertClaimable({ id, status, claimId }: ClaimableDispute): void {
  const name = publicId('dsp', id);
  if (status === 'resolved') throw new DomainError('already_resolved', `${name} is resolved`);
  if (claimId !== null)
    throw new DomainError(
      'already_claimed',
      `${name} is in the claim ${publicId('clm', claimId)}: merge or discard that one while it is a draft`,
    );
}
