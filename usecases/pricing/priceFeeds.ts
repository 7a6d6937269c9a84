import type { Logger } from 'pino';
import type { FetchPriceFile } from '../../adapters/prices/fetchPriceFile.js';
import { listOrganizationIds } from '../../db/installation/retentionRuns.js';
import { loadOwnPrices } from '../../db/pricing/ownPrices.js';
import {
  findPriceFeedEtag,
  findPriceFile,
  recordPriceFeedFailure,
  recordPriceFile,
} from '../../db/pricing/priceFeeds.js';
import { listCallTotals, type NewPriceProposal, storeProposals } from '../../db/pricing/proposals.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid } from '../../domain/ids.js';
import { dayOf, daysBefore } from '../../domain/period.js';
import type { ListedCollection } from '../../domain/pricing/imports/collection.js';
import { compareCollection } from '../../domain/pricing/imports/differences.js';
import { bookWithOwnPrices } from '../../domain/pricing/ownPrices.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import {
  bookWithProposals,
  boundariesOf,
  effectsOf,
  proposedPrices,
} from '../../domain/pricing/proposals.js';
import { proposedMessage } from '../../domain/webhooks/messages.js';
import type { PriceFeed } from '../../platform/priceFeeds.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';
import type { Prices } from './priceBookHolder.js';
import { knownPriceDays } from './priceImport.js';

/** Days of calls in the effect of a proposal. */
const EFFECT_DAYS = 30n;
/** Most open proposals of a feed in an organization; those with the most calls stay. */
const PROPOSALS_MAX = 2_000;

export interface PriceFeedDeps extends UseCaseDeps {
  prices: Prices;
  priceFeeds: readonly PriceFeed[];
  fetchPriceFile: FetchPriceFile;
  /** adapters/prices/readPriceCollection.ts. */
  readPriceCollection(bytes: Buffer): ListedCollection;
  nowMicros(): bigint;
  logger: Logger;
}

/** Fetches a feed's file and stores it. Error: provider_unavailable, provider_answer_unreadable. */
export async function fetchPriceFeed(deps: PriceFeedDeps, url: string, signal: AbortSignal): Promise<void> {
  const { database } = deps;
  const file = await deps.fetchPriceFile({ url, etag: await findPriceFeedEtag(database, url), signal });
  // A file that cannot be read does not replace one that can.
  if (file) readCollection(deps, file.content);
  await recordPriceFile(database, url, { day: dayOf(deps.nowMicros()), ...(file ? { file } : {}) });
}

function readCollection(deps: Pick<PriceFeedDeps, 'readPriceCollection'>, content: Buffer): ListedCollection {
  try {
    return deps.readPriceCollection(content);
  } catch (error) {
    throw error instanceof RangeError ? new DomainError('provider_answer_unreadable', error.message) : error;
  }
}

/** Notes why a feed could not be read; its stored file stays. */
export async function failPriceFeed(deps: PriceFeedDeps, url: string, message: string): Promise<void> {
  const feed = deps.priceFeeds.find((one) => one.url === url)?.name;
  deps.logger.warn({ feed, reason: message }, 'a price feed was not read');
  await recordPriceFeedFailure(deps.database, url, message);
}

/** Compares the stored file of a feed with the prices of each organization. Nothing is applied. */
export async function proposePrices(deps: PriceFeedDeps, url: string, signal: AbortSignal): Promise<void> {
  const { database, priceFeeds } = deps;
  const feed = priceFeeds.find((one) => one.url === url);
  const file = await findPriceFile(database, url);
  // A feed may have been removed from the settings since the run began.
  if (!feed || !file) return;
  const collection = readCollection(deps, file.content);
  await deps.prices.freshOf('');
  const known = await knownPriceDays(database);
  for (const orgId of await listOrganizationIds(database)) {
    signal.throwIfAborted();
    await proposeToOrganization(deps, orgId, { feed, collection, known, retrievedOn: file.retrievedOn });
  }
}

interface ReadFeed {
  feed: PriceFeed;
  collection: ListedCollection;
  known: ReadonlyMap<string, string>;
  retrievedOn: string;
}

async function proposeToOrganization(deps: PriceFeedDeps, orgId: string, read: ReadFeed): Promise<void> {
  const { feed, collection, known, retrievedOn } = read;
  const nowMicros = deps.nowMicros();
  const day = dayOf(nowMicros);
  const orgDb = orgDbOf(deps, orgId);
  const { prices: own } = await orgDb.transaction(loadOwnPrices, 'repeatable read');
  const list = deps.prices.current();
  const overrides = own.filter(({ kind }) => kind === 'override');
  const contracts = own.filter(({ kind }) => kind === 'contract');
  const listed = bookWithOwnPrices(list, overrides, list.state);
  const differences = compareCollection(collection, listed, {
    day,
    retrievedOn,
    provider: undefined,
    knownAsOf: (provider, model) => known.get(`${provider}\n${model}`),
  });
  const found = proposedPrices(collection.source, differences, listed).map((one) => ({
    ...one,
    id: newUuid(nowMicros),
  }));
  const withContracts = (book: PriceBook) => bookWithOwnPrices(book, contracts, book.state);
  const before = withContracts(listed);
  const after = withContracts(bookWithProposals(listed, found, { day, micros: nowMicros }));
  const window = { fromMicros: daysBefore(nowMicros, EFFECT_DAYS), toMicros: nowMicros };
  const totals = found.length === 0 ? [] : await listCallTotals(orgDb, window, boundariesOf([before, after]));
  const effects = effectsOf(totals, { before, after, ids: new Set(found.map(({ id }) => id)) }, nowMicros);
  const proposals = found
    .map((one): NewPriceProposal => {
      const effect = effects.get(one.id) ?? { calls: 0, currentPico: null, proposedPico: null };
      return { ...one, ...effect, feed: feed.name, retrievedOn, effectUntilMicros: nowMicros };
    })
    .sort((a, b) => b.calls - a.calls)
    .slice(0, PROPOSALS_MAX);
  await orgDb.transaction(async (inside) => {
    const stored = await storeProposals(inside, feed.name, proposals);
    const made = proposals.filter(({ id }) => stored.has(id));
    if (made.length > 0)
      await publishMessages(inside, [proposedMessage(newUuid(nowMicros), feed.name, made, nowMicros)]);
  });
}
