import type { OrgDb } from '../../db/orgDb.js';
import { decideProposal, lockProposal, type PriceProposal } from '../../db/pricing/proposals.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { isStillPresent, termsOverPresent } from '../../domain/pricing/proposals.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { storeOwnPrice } from './ownPrices.js';

/**
 * Turns a proposal into an override of the organization, in the request's transaction. `listed` is the list with the
 * organization's overrides. Error: not_found, already_decided, too_many_items.
 */
export async function applyProposal(
  inside: OrgDb,
  wanted: { id: string | undefined; overrideId: string; effectiveFrom: string; nowMicros: bigint },
  listed: PriceBook,
  author: RequestAuthor,
): Promise<PriceProposal> {
  const proposal = await openProposal(inside, wanted.id);
  const { provider, model } = proposal;
  if (!isStillPresent(listed, proposal, wanted.nowMicros))
    throw new DomainError(
      'already_decided',
      'the price of this model has changed since it was compared; nothing was applied, and the next daily comparison proposes what still differs',
    );
  const { rates, tiers, batchMultiplier } = termsOverPresent(listed, proposal, wanted.nowMicros);
  const input = listed.find(provider, model, wanted.nowMicros)?.version.rates.input;
  const override = await storeOwnPrice(
    inside,
    {
      id: wanted.overrideId,
      kind: 'override',
      provider,
      model,
      discountPercent: null,
      // An override has at least one standard rate.
      rates: Object.keys(rates).length === 0 && typeof input === 'bigint' ? { input } : rates,
      tiers,
      batchMultiplier,
      effectiveFrom: wanted.effectiveFrom,
      effectiveTo: null,
      source: { document: `${proposal.feed}, file of ${proposal.retrievedOn}`, clause: null, url: null },
    },
    author,
  );
  const by = author.caller.keyId;
  const decided = await decideProposal(inside, proposal.id, {
    status: 'applied',
    overrideId: override.id,
    by,
  });
  await recordAction(inside, author, 'price_proposal.applied', subjectOf(proposal), {
    ...{ provider, model, feed: proposal.feed, effective_from: wanted.effectiveFrom },
    override_id: publicId('ovr', override.id),
  });
  return decided ?? proposal;
}

/** Dismisses a proposal: equal rates are not proposed again. Error: not_found, already_decided. */
export async function dismissProposal(
  orgDb: OrgDb,
  { id, reason }: { id: string | undefined; reason: string | null },
  author: RequestAuthor,
): Promise<PriceProposal> {
  return orgDb.transaction(async (inside) => {
    const proposal = await openProposal(inside, id);
    const decision = { status: 'dismissed' as const, reason, by: author.caller.keyId };
    const decided = await decideProposal(inside, proposal.id, decision);
    const { provider, model, feed } = proposal;
    await recordAction(inside, author, 'price_proposal.dismissed', subjectOf(proposal), {
      provider,
      model,
      feed,
    });
    return decided ?? proposal;
  });
}

async function openProposal(inside: OrgDb, id: string | undefined): Promise<PriceProposal> {
  const proposal = id === undefined ? undefined : await lockProposal(inside, id);
  if (!proposal) throw new DomainError('not_found', 'there is no proposal with this id');
  if (proposal.status === 'open') return proposal;
  const at = proposal.decidedAtMicros === null ? '' : ` at ${isoFromMicros(proposal.decidedAtMicros)}`;
  throw new DomainError(
    'already_decided',
    proposal.status === 'superseded'
      ? `the price list has changed${at}, so this proposal is out of date; look at the list again`
      : `${proposal.decidedBy ?? 'somebody'} ${proposal.status} this proposal${at}; nothing was changed now`,
  );
}

const subjectOf = ({ id }: PriceProposal) => ({ type: 'price_proposal', id: publicId('prp', id) });
