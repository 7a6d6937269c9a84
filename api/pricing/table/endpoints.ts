import { daysBefore, exclusiveEnd, MICROS_PER_DAY } from '../../../domain/period.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { holdsAt, type PricedModel, priceTable } from '../../../domain/pricing/pricedModel.js';
import { listUnpricedModels } from '../../../usecases/pricing/repriceCalls.js';
import { endpointGroup } from '../../endpoint.js';
import { matchesEntityTag } from '../../pipeline/answer.js';
import { providerFilter, windowOf } from '../../query.js';
import {
  listPricesQuery,
  listPricesResponse,
  presentPriceRecord,
  presentPricingTable,
  presentUnpriced,
  pricingTableResponse,
  unpricedQuery,
  unpricedResponse,
} from './wire.js';

/** A cached table is valid for five minutes, and for a day while the service is unreachable. */
const TABLE_CACHE_CONTROL = 'public, max-age=300, stale-if-error=86400';
const UNPRICED_DAYS = 90n;

/** The presented table of each book, until another version is requested: the table is public and often fetched. */
const presentedTables = new WeakMap<PriceBook, ReturnType<typeof presentPricingTable>>();

function pricingTableOf(book: PriceBook, nowMicros: bigint): ReturnType<typeof presentPricingTable> {
  const version = book.versionAt(nowMicros);
  const kept = presentedTables.get(book);
  if (kept?.version === version) return kept;
  const table = presentPricingTable(version, priceTable(book, nowMicros));
  presentedTables.set(book, table);
  return table;
}

const routes = endpointGroup({ tag: 'Pricing', access: { public: true } });

routes.get('/api/v1/pricing/table', {
  operationId: 'getPricingTable',
  summary: 'One price for each model family',
  description:
    'Public: client wrappers fetch it on startup. Send the ETag back as If-None-Match to hear whether it changed.',
  responses: {
    200: {
      description: 'The table',
      schema: pricingTableResponse,
      headers: { ETag: 'The version, quoted', 'Cache-Control': 'How long a copy serves' },
    },
    304: { description: 'The copy named by If-None-Match is the current one' },
  },
  async handle({ header }, deps) {
    const table = pricingTableOf(deps.prices.current(), deps.nowMicros());
    const etag = `"${table.version}"`;
    const headers = { ETag: etag, 'Cache-Control': TABLE_CACHE_CONTROL };
    if (matchesEntityTag(header('if-none-match'), etag)) return { status: 304, headers };
    return { status: 200, headers, body: table };
  },
});

routes.get('/api/v1/pricing', {
  operationId: 'listPrices',
  csv: 'prices',
  summary: 'Every price with its dates, tiers and sources',
  description:
    'One record for each price period, by provider, model and beginning. An unknown rate is null, which is not free.',
  access: { scope: 'pricing:read', workspace: 'shared' },
  query: listPricesQuery,
  responses: { 200: { description: 'The records', schema: listPricesResponse } },
  async handle({ query }, deps) {
    const book = deps.prices.current();
    const provider = providerFilter(query.provider);
    const wanted = (priced: PricedModel) =>
      (provider === undefined || priced.entry.provider === provider) &&
      (query.model === undefined || carries(priced, query.model)) &&
      (query.at === undefined || holdsAt(priced, query.at.micros));
    const records = [...book.periods()].filter(wanted).map(presentPriceRecord);
    return {
      status: 200,
      body: { version: book.versionAt(deps.nowMicros()), count: records.length, records },
    };
  },
});

function carries({ entry }: PricedModel, id: string): boolean {
  return entry.model === id || entry.aliases.includes(id);
}

routes.get('/api/v1/pricing/unpriced', {
  operationId: 'listUnpricedModels',
  csv: 'unpriced-models',
  summary: 'Models seen without a price',
  description:
    'Calls whose cost is unknown and stands as 0 in totals, by who bills them and the model that answered, the most calls first; beside them the models whose price rests on an assumed rate.',
  access: { scope: 'pricing:read', workspace: 'own' },
  query: unpricedQuery,
  responses: { 200: { description: 'The models', schema: unpricedResponse } },
  problems: ['invalid_range'],
  async handle({ query, orgDb }, deps) {
    windowOf(query.since, query.until, ['since', 'until']);
    // Without `until`, calls of clients whose clocks are up to a day ahead are included.
    const now = deps.nowMicros();
    const toMicros = query.until ? exclusiveEnd(query.until) : now + MICROS_PER_DAY;
    const fromMicros = query.since?.micros ?? daysBefore(query.until ? toMicros : now, UNPRICED_DAYS);
    const found = await listUnpricedModels(orgDb, { fromMicros, toMicros });
    const book = await deps.prices.of(orgDb.orgId);
    return { status: 200, body: presentUnpriced(book, book.versionAt(deps.nowMicros()), found) };
  },
});

export const pricingEndpoints = routes.endpoints;
