import {
  endOwnPrice,
  findOwnPrice,
  insertOwnPrice,
  listOwnPrices,
  type NewOwnPrice,
} from '../../../db/pricing/ownPrices.js';
import { DomainError, invalidField } from '../../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../../domain/ids.js';
import { dayOf } from '../../../domain/period.js';
import { coveredBy } from '../../../domain/pricing/layBook.js';
import type { OwnPrice, OwnPriceKind } from '../../../domain/pricing/ownPrices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import type { ApiDeps } from '../../deps.js';
import {
  defineEndpoint,
  type Endpoint,
  type EndpointRequest,
  type EndpointResponse,
} from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { providerFilter } from '../../query.js';
import {
  CONTRACT_RATES_PATH,
  contractRateSchema,
  createContractRateBody,
  createOverrideBody,
  endOwnPriceQuery,
  entryOfBody,
  listContractRatesResponse,
  listOverridesResponse,
  listOwnPricesQuery,
  OVERRIDES_PATH,
  OWN_ID_KINDS,
  overrideSchema,
  ownPriceParams,
  presentOwnPrice,
} from './wire.js';

const PATHS: Readonly<Record<OwnPriceKind, string>> = {
  contract: CONTRACT_RATES_PATH,
  override: OVERRIDES_PATH,
};
const LIMITS = { entriesMax: 2_000, allModelsMax: 100 };

type Request<More extends keyof EndpointRequest<unknown, unknown, unknown> = never> = Pick<
  EndpointRequest<unknown, unknown, unknown>,
  'orgDb' | 'caller' | 'requestId' | More
>;

async function create(
  kind: OwnPriceKind,
  { orgDb, caller, requestId, settle, afterCommit }: Request<'settle' | 'afterCommit'>,
  deps: ApiDeps,
  entry: ReturnType<typeof entryOfBody>,
): Promise<EndpointResponse> {
  const price = { kind, ...entry };
  // Asked before the transaction: a book that is not at hand is read on a connection of its own. The entry itself
  // changes nothing in what it is laid over.
  const under = await bookUnder(price.kind, orgDb.orgId, deps);
  refuseWithoutPrice(under, price);
  const id = newUuid(deps.nowMicros());
  return settle(async (inside) => {
    const stored = await insertOwnPrice(inside, { ...price, id, createdBy: caller.keyId }, LIMITS);
    if (!stored) {
      throw new DomainError(
        'too_many_items',
        `there are ${LIMITS.entriesMax} entries, or ${LIMITS.allModelsMax} for all models, already, ended ones counted; one for a family covers many models`,
      );
    }
    await recordAction(inside, { caller, requestId }, 'own_price.created', subjectOf(stored), {
      kind: stored.kind,
      provider: stored.provider,
      model: stored.model,
      effective_from: price.effectiveFrom,
    });
    afterCommit(() => deps.prices.reload(inside.orgId));
    const shown = present(under, stored);
    return { status: 201, headers: { Location: `${PATHS[kind]}/${shown.id}` }, body: shown };
  });
}

const subjectOf = ({ kind, id }: OwnPrice) => ({ type: 'own_price', id: publicId(OWN_ID_KINDS[kind], id) });

/** What an entry is laid over: a contract over the organization's list prices, an override over everybody's. */
async function bookUnder(kind: OwnPriceKind, orgId: string, deps: ApiDeps): Promise<PriceBook> {
  return kind === 'contract' ? (await deps.prices.of(orgId)).list : deps.prices.current();
}

/** An entry that could never price anything is most likely a slip in the model's name. */
function refuseWithoutPrice(book: PriceBook, price: Omit<NewOwnPrice, 'id' | 'createdBy'>): void {
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

function present(book: PriceBook, price: OwnPrice) {
  return presentOwnPrice(price, coveredBy(book, price).coverage);
}

async function list(
  kind: OwnPriceKind,
  query: {
    provider?: string | undefined;
    model?: string | undefined;
    at?: string | undefined;
    limit: number;
    offset: number;
  },
  { orgDb }: Pick<Request, 'orgDb'>,
  deps: ApiDeps,
) {
  const provider = providerFilter(query.provider);
  const found = await listOwnPrices(
    orgDb,
    { kind, provider, model: query.model, day: query.at },
    { limit: query.limit + 1, offset: query.offset },
  );
  const book = await bookUnder(kind, orgDb.orgId, deps);
  const { shown, page } = pageOf(found, query);
  return { items: shown.map((price) => present(book, price)), page };
}

async function end(
  kind: OwnPriceKind,
  publicOwnId: string,
  from: string | undefined,
  { orgDb, caller, requestId }: Request,
  deps: ApiDeps,
): Promise<EndpointResponse> {
  const id = findUuid(OWN_ID_KINDS[kind], publicOwnId);
  const endsOn = from ?? dayOf(deps.nowMicros());
  await orgDb.transaction(async (inside) => {
    const found =
      id === undefined ? undefined : await endOwnPrice(inside, { kind, id, endsOn, endedBy: caller.keyId });
    if (!found) throw notFound();
    const details = { kind, provider: found.provider, model: found.model, ends_on: found.endsOn };
    await recordAction(inside, { caller, requestId }, 'own_price.ended', subjectOf(found), details);
  });
  await deps.prices.reload(orgDb.orgId);
  return { status: 204 };
}

function notFound(): DomainError {
  return new DomainError('not_found', 'there is no entry with this id that holds on that day or later');
}

async function read(
  kind: OwnPriceKind,
  publicOwnId: string,
  { orgDb }: Pick<Request, 'orgDb'>,
  deps: ApiDeps,
): Promise<EndpointResponse> {
  const id = findUuid(OWN_ID_KINDS[kind], publicOwnId);
  const found = id === undefined ? undefined : await findOwnPrice(orgDb, kind, id);
  if (!found) throw new DomainError('not_found', 'there is no entry with this id');
  return { status: 200, body: present(await bookUnder(kind, orgDb.orgId, deps), found) };
}

const LIST_DESCRIPTION =
  'The latest entry first, ended ones too; it stands over earlier ones for the days and models that it covers.';
const END_DESCRIPTION =
  'From a day on, by default today: calls and bills before it keep the price. The entry stays in the list with its history. 404 where it ended on that day or before.';

const createContractRate = defineEndpoint({
  operationId: 'createContractRate',
  method: 'post',
  path: CONTRACT_RATES_PATH,
  tag: 'Pricing',
  summary: 'Enter what was agreed with a provider',
  description:
    'A discount on every listed rate, or rates in place of listed ones, with the document that proves it. Nothing that is entered changes; a later entry stands over it.',
  access: { scope: 'pricing:write', workspace: 'refused' },
  body: createContractRateBody,
  idempotency: 'afterwards',
  responses: {
    201: {
      description: 'The entry, in force for the next call',
      schema: contractRateSchema,
      headers: { Location: 'The entry' },
    },
  },
  problems: ['invalid_body', 'too_many_items'],
  handle: (request, deps) => create('contract', request, deps, entryOfBody(request.body)),
});

const createOverride = defineEndpoint({
  operationId: 'createPriceOverride',
  method: 'post',
  path: OVERRIDES_PATH,
  tag: 'Pricing',
  summary: 'Correct a list price, or enter one that is missing',
  description:
    'Rates in USD per million tokens in place of listed ones; a class that is not named stays as listed. For a model that no list knows both input and output are needed.',
  access: { scope: 'pricing:write', workspace: 'refused' },
  body: createOverrideBody,
  idempotency: 'afterwards',
  responses: {
    201: {
      description: 'The entry, in force for the next call',
      schema: overrideSchema,
      headers: { Location: 'The entry' },
    },
  },
  problems: ['invalid_body', 'too_many_items'],
  handle: (request, deps) => create('override', request, deps, entryOfBody(request.body)),
});

const listContractRates = defineEndpoint({
  operationId: 'listContractRates',
  method: 'get',
  path: CONTRACT_RATES_PATH,
  tag: 'Pricing',
  summary: 'What was agreed with the providers',
  description: LIST_DESCRIPTION,
  access: { scope: 'pricing:read', workspace: 'refused' },
  query: listOwnPricesQuery,
  responses: { 200: { description: 'A page of entries', schema: listContractRatesResponse } },
  problems: [],
  async handle({ query, orgDb }, deps) {
    const { items, page } = await list('contract', query, { orgDb }, deps);
    return { status: 200, body: { contract_rates: items, ...page } };
  },
});

const listOverrides = defineEndpoint({
  operationId: 'listPriceOverrides',
  method: 'get',
  path: OVERRIDES_PATH,
  tag: 'Pricing',
  summary: 'List prices that the organization knows better',
  description: LIST_DESCRIPTION,
  access: { scope: 'pricing:read', workspace: 'refused' },
  query: listOwnPricesQuery,
  responses: { 200: { description: 'A page of entries', schema: listOverridesResponse } },
  problems: [],
  async handle({ query, orgDb }, deps) {
    const { items, page } = await list('override', query, { orgDb }, deps);
    return { status: 200, body: { overrides: items, ...page } };
  },
});

const getContractRate = defineEndpoint({
  operationId: 'getContractRate',
  method: 'get',
  path: `${CONTRACT_RATES_PATH}/{id}`,
  tag: 'Pricing',
  summary: 'One agreed price',
  access: { scope: 'pricing:read', workspace: 'refused' },
  params: ownPriceParams,
  responses: { 200: { description: 'The entry, ended ones too', schema: contractRateSchema } },
  problems: ['not_found'],
  handle: ({ params, orgDb }, deps) => read('contract', params.id, { orgDb }, deps),
});

const getOverride = defineEndpoint({
  operationId: 'getPriceOverride',
  method: 'get',
  path: `${OVERRIDES_PATH}/{id}`,
  tag: 'Pricing',
  summary: 'One override',
  access: { scope: 'pricing:read', workspace: 'refused' },
  params: ownPriceParams,
  responses: { 200: { description: 'The entry, ended ones too', schema: overrideSchema } },
  problems: ['not_found'],
  handle: ({ params, orgDb }, deps) => read('override', params.id, { orgDb }, deps),
});

const endContractRate = defineEndpoint({
  operationId: 'endContractRate',
  method: 'delete',
  path: `${CONTRACT_RATES_PATH}/{id}`,
  tag: 'Pricing',
  summary: 'End an agreed price',
  description: END_DESCRIPTION,
  access: { scope: 'pricing:write', workspace: 'refused' },
  params: ownPriceParams,
  query: endOwnPriceQuery,
  responses: { 204: { description: 'Ended' } },
  problems: ['not_found'],
  handle: ({ params, query, orgDb, caller, requestId }, deps) =>
    end('contract', params.id, query.from, { orgDb, caller, requestId }, deps),
});

const endOverride = defineEndpoint({
  operationId: 'endPriceOverride',
  method: 'delete',
  path: `${OVERRIDES_PATH}/{id}`,
  tag: 'Pricing',
  summary: 'End an override',
  description: END_DESCRIPTION,
  access: { scope: 'pricing:write', workspace: 'refused' },
  params: ownPriceParams,
  query: endOwnPriceQuery,
  responses: { 204: { description: 'Ended' } },
  problems: ['not_found'],
  handle: ({ params, query, orgDb, caller, requestId }, deps) =>
    end('override', params.id, query.from, { orgDb, caller, requestId }, deps),
});

export const ownPriceEndpoints: readonly Endpoint[] = [
  createContractRate,
  listContractRates,
  getContractRate,
  endContractRate,
  createOverride,
  listOverrides,
  getOverride,
  endOverride,
];
