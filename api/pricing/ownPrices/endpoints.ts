import type { z } from 'zod';
import { findOwnPrice, listOwnPrices } from '../../../db/pricing/ownPrices.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, newUuid } from '../../../domain/ids.js';
import { dayOf } from '../../../domain/period.js';
import { OWN_ID_KINDS, type OwnPriceKind } from '../../../domain/pricing/ownPrices.js';
import {
  bookUnder,
  createOwnPrice,
  endOwnPrice,
  refuseWithoutPrice,
} from '../../../usecases/pricing/ownPrices.js';
import type { ApiDeps } from '../../deps.js';
import { type Endpoint, type EndpointRequest, type EndpointResponse, endpointGroup } from '../../endpoint.js';
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
  overrideSchema,
  ownPriceParams,
  presentOwnPriceOver,
} from './wire.js';

const PATHS: Readonly<Record<OwnPriceKind, string>> = {
  contract: CONTRACT_RATES_PATH,
  override: OVERRIDES_PATH,
};

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
  // Loaded before the transaction, because a book that is not cached is read on another connection. The entry does not
  // change the book that it overrides.
  const under = await bookUnder(deps.prices, kind, orgDb.orgId);
  refuseWithoutPrice(under, price);
  const id = newUuid(deps.nowMicros());
  return settle(async (inside) => {
    const stored = await createOwnPrice(inside, { ...price, id }, { caller, requestId });
    afterCommit(() => deps.prices.reload(inside.orgId));
    const shown = presentOwnPriceOver(under, stored);
    return { status: 201, headers: { Location: `${PATHS[kind]}/${shown.id}` }, body: shown };
  });
}

async function list(
  kind: OwnPriceKind,
  query: z.output<typeof listOwnPricesQuery>,
  { orgDb }: Pick<Request, 'orgDb'>,
  deps: ApiDeps,
) {
  const provider = providerFilter(query.provider);
  const found = await listOwnPrices(
    orgDb,
    { kind, provider, model: query.model, day: query.at },
    { limit: query.limit + 1, offset: query.offset },
  );
  const book = await bookUnder(deps.prices, kind, orgDb.orgId);
  const { shown, page } = pageOf(found, query);
  return { items: shown.map((price) => presentOwnPriceOver(book, price)), page };
}

async function end(
  kind: OwnPriceKind,
  publicOwnId: string,
  from: string | undefined,
  { orgDb, caller, requestId }: Request,
  deps: ApiDeps,
): Promise<EndpointResponse> {
  const id = findUuid(OWN_ID_KINDS[kind], publicOwnId);
  await endOwnPrice(orgDb, { kind, id, endsOn: from ?? dayOf(deps.nowMicros()) }, { caller, requestId });
  await deps.prices.reload(orgDb.orgId);
  return { status: 204 };
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
  return { status: 200, body: presentOwnPriceOver(await bookUnder(deps.prices, kind, orgDb.orgId), found) };
}

const LIST_DESCRIPTION =
  'The latest entry first, ended ones too; it stands over earlier ones for the days and models that it covers.';
const END_DESCRIPTION =
  'From a day on, by default today: calls and bills before it keep the price. The entry stays in the list with its history. 404 where it ended on that day or before.';

const routes = endpointGroup({
  tag: 'Pricing',
  access: {
    read: { scope: 'pricing:read', workspace: 'refused' },
    write: { scope: 'pricing:write', workspace: 'refused' },
  },
});

const createContractRate = routes.post(CONTRACT_RATES_PATH, {
  operationId: 'createContractRate',
  summary: 'Enter what was agreed with a provider',
  description:
    'A discount on every listed rate, or rates in place of listed ones, with the document that proves it. Nothing that is entered changes; a later entry stands over it.',
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

const createOverride = routes.post(OVERRIDES_PATH, {
  operationId: 'createPriceOverride',
  summary: 'Correct a list price, or enter one that is missing',
  description:
    'Rates in USD per million tokens in place of listed ones; a class that is absent keeps its listed rate. A model that is in no list needs both input and output.',
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

/** Endpoints that read, list and end entries of a kind; `field` names the list in its answer. */
function entryEndpoints(
  kind: OwnPriceKind,
  schema: z.ZodType,
  field: string,
  {
    list: listed,
    get,
    end: ended,
  }: Record<'list' | 'get' | 'end', { operationId: string; summary: string }> & {
    list: { response: z.ZodType };
  },
): Endpoint[] {
  const { response, ...listDocs } = listed;
  return [
    routes.get(PATHS[kind], {
      ...listDocs,
      csv: field.replaceAll('_', '-'),
      description: LIST_DESCRIPTION,
      query: listOwnPricesQuery,
      responses: { 200: { description: 'A page of entries', schema: response } },
      async handle({ query, orgDb }, deps) {
        const { items, page } = await list(kind, query, { orgDb }, deps);
        return { status: 200, body: { [field]: items, ...page } };
      },
    }),
    routes.get(`${PATHS[kind]}/{id}`, {
      ...get,
      params: ownPriceParams,
      responses: { 200: { description: 'The entry, ended ones too', schema } },
      problems: ['not_found'],
      handle: ({ params, orgDb }, deps) => read(kind, params.id, { orgDb }, deps),
    }),
    routes.delete(`${PATHS[kind]}/{id}`, {
      ...ended,
      description: END_DESCRIPTION,
      params: ownPriceParams,
      query: endOwnPriceQuery,
      responses: { 204: { description: 'Ended' } },
      problems: ['not_found'],
      handle: ({ params, query, orgDb, caller, requestId }, deps) =>
        end(kind, params.id, query.from, { orgDb, caller, requestId }, deps),
    }),
  ];
}

export const ownPriceEndpoints: readonly Endpoint[] = [
  createContractRate,
  ...entryEndpoints('contract', contractRateSchema, 'contract_rates', {
    list: {
      operationId: 'listContractRates',
      summary: 'Rates agreed with the providers',
      response: listContractRatesResponse,
    },
    get: { operationId: 'getContractRate', summary: 'One agreed price' },
    end: { operationId: 'endContractRate', summary: 'End an agreed price' },
  }),
  createOverride,
  ...entryEndpoints('override', overrideSchema, 'overrides', {
    list: {
      operationId: 'listPriceOverrides',
      summary: 'List prices that the organization knows better',
      response: listOverridesResponse,
    },
    get: { operationId: 'getPriceOverride', summary: 'One override' },
    end: { operationId: 'endPriceOverride', summary: 'End an override' },
  }),
];
