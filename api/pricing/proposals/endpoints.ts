import { listPriceFeeds } from '../../../db/pricing/priceFeeds.js';
import { countOpenProposals, listProposals } from '../../../db/pricing/proposals.js';
import { findUuid, newUuid } from '../../../domain/ids.js';
import { dayOf } from '../../../domain/period.js';
import { applyProposal, dismissProposal } from '../../../usecases/pricing/decideProposal.js';
import { endpointGroup } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { providerFilter } from '../../query.js';
import { proposalsCsv } from './csv.js';
import {
  applyProposalBody,
  dismissProposalBody,
  listProposalsQuery,
  listProposalsResponse,
  PROPOSALS_PATH,
  presentFeeds,
  presentProposal,
  proposalParams,
  proposalSchema,
} from './wire.js';

const routes = endpointGroup({
  tag: 'Pricing',
  access: {
    read: { scope: 'pricing:read', workspace: 'refused' },
    write: { scope: 'pricing:write', workspace: 'refused' },
  },
});

routes.get(PROPOSALS_PATH, {
  operationId: 'listPriceProposals',
  summary: 'Prices that differ in the public lists',
  description:
    'From the lists of PRICE_FEEDS, which are read daily; open ones first. Nothing is applied by itself. `effect` shows the cost of the organization’s calls of 30 days at present and at proposed rates.',
  query: listProposalsQuery,
  csv: true,
  responses: { 200: { description: 'A page of proposals', schema: listProposalsResponse } },
  async handle({ query, orgDb }, deps) {
    const filter = { status: query.status, provider: providerFilter(query.provider), model: query.model };
    const found = await listProposals(orgDb, filter, { limit: query.limit + 1, offset: query.offset });
    const { shown, page } = pageOf(found, query);
    const feeds = presentFeeds(deps.priceFeeds, await listPriceFeeds(deps.database));
    const open = await countOpenProposals(orgDb);
    const body = { feeds, open, proposals: shown.map(presentProposal), ...page };
    return { status: 200, body, table: proposalsCsv(shown) };
  },
});

routes.post(`${PROPOSALS_PATH}/{id}/apply`, {
  operationId: 'applyPriceProposal',
  summary: 'Make a proposed price an override',
  description:
    'Writes an override of the organization; the list of the installation stays. 409 where somebody has decided already, or the price has changed since the comparison.',
  params: proposalParams,
  body: applyProposalBody,
  isBodyOptional: true,
  idempotency: 'afterwards',
  responses: { 200: { description: 'The proposal with its override', schema: proposalSchema } },
  problems: ['not_found', 'already_decided', 'too_many_items'],
  async handle({ params, body, orgDb, caller, requestId, settle, afterCommit }, deps) {
    const nowMicros = deps.nowMicros();
    const ids = { id: findUuid('prp', params.id), overrideId: newUuid(nowMicros) };
    const wanted = { ...ids, effectiveFrom: body.effective_from ?? dayOf(nowMicros), nowMicros };
    const { list } = await deps.prices.freshOf(orgDb.orgId);
    return settle(async (inside) => {
      const applied = await applyProposal(inside, wanted, list, { caller, requestId });
      afterCommit(() => deps.prices.reload(inside.orgId));
      return { status: 200, body: presentProposal(applied) };
    });
  },
});

routes.post(`${PROPOSALS_PATH}/{id}/dismiss`, {
  operationId: 'dismissPriceProposal',
  summary: 'Dismiss a proposed price',
  description: 'Equal rates are not proposed again. 409 where somebody has decided already.',
  params: proposalParams,
  body: dismissProposalBody,
  isBodyOptional: true,
  responses: { 200: { description: 'The proposal', schema: proposalSchema } },
  problems: ['not_found', 'already_decided'],
  async handle({ params, body, orgDb, caller, requestId }) {
    const wanted = { id: findUuid('prp', params.id), reason: body.reason };
    const dismissed = await dismissProposal(orgDb, wanted, { caller, requestId });
    return { status: 200, body: presentProposal(dismissed) };
  },
});

export const proposalEndpoints = routes.endpoints;
