import { readWeights } from '../../../usecases/reconciliation/readRuns.js';
import { endpointGroup } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { presentOutcome, presentWeights, WEIGHTS_PATH, weightsQuery, weightsResponse } from './wire.js';

const routes = endpointGroup({
  tag: 'Reconciliation',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
});

routes.get(WEIGHTS_PATH, {
  operationId: 'getWeights',
  summary: 'Weights learned from the outcomes of claims, with these outcomes',
  description:
    'The weights that the organization’s runs judge by: how often each kind of finding was credited, what each signal of a match counts, what providers said it was instead, and from which probability on a claim is HIGH or MEDIUM; each beside what it was before any outcome. Findings name the version as weight_set. limit and offset go through the outcomes, newest first.',
  query: weightsQuery,
  responses: {
    200: { description: 'The newest version and a page of outcomes', schema: weightsResponse },
  },
  problems: ['invalid_parameter'],
  async handle({ query, orgDb }) {
    const asked = { limit: query.limit + 1, offset: query.offset };
    const { stored, sum, outcomes } = await readWeights(orgDb, asked);
    const { shown, page } = pageOf(outcomes, query);
    const listed = shown.map((outcome) => presentOutcome(outcome, sum.newestMicros ?? 0n));
    return { status: 200, body: { ...presentWeights(stored, sum.count), outcomes: listed, ...page } };
  },
});

export const weightEndpoints = routes.endpoints;
