import type { OrgDb } from '../../db/orgDb.js';
import { insertOwnPrice, insertOwnPriceEnd, type NewOwnPrice } from '../../db/pricing/ownPrices.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { coveredBy } from '../../domain/pricing/layBook.js';
import { OWN_ID_KINDS, type OwnPrice, type OwnPriceKind } from '../../domain/pricing/ownPrices.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import type { Prices } from './priceBookHolder.js';

const LIMITS = { entriesMax: 2_000, allModelsMax: 100 };

/** The book that an entry overrides: for a contract the organization's list prices, for an override the common list. */
export async function bookUnder(prices: Prices, kind: OwnPriceKind, orgId: string): Promise<PriceBook> {
  return kind === 'contract' ? (await prices.of(orgId)).list : prices.current();
}

/**
 * Throws invalid_body for an entry that could never price a call, which is most likely a typing error in the model's
 * name.
 */
export function refuseWithoutPrice(book: PriceBook, price: Omit<NewOwnPrice, 'id' | 'createdBy'>): void {
  if (coveredBy(book, price).coverage !== 'new') return;
  const gives = price.rates ?? {};
  if (gives.input !== undefined && gives.output !== undefined) return;
  const known = `no price of ${price.provider} has the id or the family ${price.model}`;
  throw price.discountPercent === null
    ? invalidField(
        'body',
        'rates',
        `${known}: give both input and output for it, or correct model`,
        'invalid_body',
      )
    : invalidField('body', 'model', `${known}, so there is nothing to discount`, 'invalid_body');
}

/** Stores an entry and records it, in the request's transaction. Error: too_many_items. */
export async function createOwnPrice(
  inside: OrgDb,
  price: Omit<NewOwnPrice, 'createdBy'>,
  author: RequestAuthor,
): Promise<OwnPrice> {
  const stored = await storeOwnPrice(inside, price, author);
  const { kind, provider, model, effectiveFrom } = stored;
  const details = { kind, provider, model, effective_from: effectiveFrom };
  await recordAction(inside, author, 'own_price.created', subjectOf(stored), details);
  return stored;
}

/** Stores an entry; the caller records why. Error: too_many_items. */
export async function storeOwnPrice(
  inside: OrgDb,
  price: Omit<NewOwnPrice, 'createdBy'>,
  author: RequestAuthor,
): Promise<OwnPrice> {
  const stored = await insertOwnPrice(inside, { ...price, createdBy: author.caller.keyId }, LIMITS);
  if (!stored)
    throw new DomainError(
      'too_many_items',
      `there are ${LIMITS.entriesMax} entries, or ${LIMITS.allModelsMax} for all models, already, ended ones counted; one for a family covers many models`,
    );
  return stored;
}

/** Ends an entry from a day on. Error: not_found, also for an entry that ended on that day or earlier. */
export async function endOwnPrice(
  orgDb: OrgDb,
  { kind, id, endsOn }: { kind: OwnPriceKind; id: string | undefined; endsOn: string },
  author: RequestAuthor,
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    const end = { kind, endsOn, endedBy: author.caller.keyId };
    const found = id === undefined ? undefined : await insertOwnPriceEnd(inside, { ...end, id });
    if (!found)
      throw new DomainError('not_found', 'there is no entry with this id that holds on that day or later');
    const details = { kind, provider: found.provider, model: found.model, ends_on: found.endsOn };
    await recordAction(inside, author, 'own_price.ended', subjectOf(found), details);
  });
}

const subjectOf = ({ kind, id }: OwnPrice) => ({ type: 'own_price', id: publicId(OWN_ID_KINDS[kind], id) });
