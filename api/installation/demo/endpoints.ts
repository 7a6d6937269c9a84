import { DomainError } from '../../../domain/errors.js';
import { findUuid } from '../../../domain/ids.js';
import {
  getDemoRun,
  getDemoState,
  makeDemoLink,
  openDemoRun,
  removeDemo,
} from '../../../usecases/installation/demoRuns.js';
import { endpointGroup } from '../../endpoint.js';
import { DEMO_PATH, demoRunParams, demoRunSchema, demoSchema, presentDemo, presentDemoRun } from './wire.js';

const routes = endpointGroup({ tag: 'Demo', access: { scope: 'org:admin', workspace: 'refused' } });

routes.post(DEMO_PATH, {
  operationId: 'startDemo',
  summary: 'Load the demo',
  description:
    'An invented company in an organization of its own, Demo Labs, with calls, bills, invoices, claims and findings. It takes about a minute; what is there already stays. A load that is under way is returned.',
  responses: {
    202: {
      description: 'The load',
      schema: demoRunSchema,
      headers: { Location: 'The load', 'Retry-After': 'Seconds until the first read' },
    },
  },
  async handle(request, deps) {
    const { run, isNew } = await openDemoRun(request.orgDb, deps.nowMicros(), request);
    if (isNew) request.afterCommit(() => deps.demo.load({ orgId: request.orgDb.orgId, id: run.id }));
    const body = presentDemoRun(run);
    return { status: 202, headers: { Location: body.status_url, 'Retry-After': '2' }, body };
  },
});

routes.get(DEMO_PATH, {
  operationId: 'getDemo',
  summary: 'Whether the demo is loaded',
  description: 'Its organization, and the newest load that this organization has started.',
  responses: { 200: { description: 'The demo', schema: demoSchema } },
  async handle({ orgDb }) {
    const { demo, run } = await getDemoState(orgDb);
    return { status: 200, body: presentDemo(demo, run) };
  },
});

routes.get(`${DEMO_PATH}/runs/{id}`, {
  operationId: 'getDemoRun',
  summary: 'A load of the demo',
  description: 'Once it has succeeded each read has a new one-time link into the demo.',
  params: demoRunParams,
  responses: { 200: { description: 'The load', schema: demoRunSchema } },
  problems: ['not_found'],
  async handle(request, deps) {
    const id = findUuid('run', request.params.id);
    if (id === undefined) throw new DomainError('not_found', 'there is no load of the demo with this id');
    const run = await getDemoRun(request.orgDb, id);
    if (run.status !== 'succeeded') return { status: 200, body: presentDemoRun(run) };
    const loaded = await makeDemoLink(deps, deps.settings.baseUrl(), deps.nowMicros(), request);
    return { status: 200, body: presentDemoRun(run, loaded) };
  },
});

routes.delete(DEMO_PATH, {
  operationId: 'removeDemo',
  summary: 'Remove the demo',
  description: 'With all of its rows and its key. No other organization is touched.',
  responses: { 204: { description: 'Removed' } },
  problems: ['not_found'],
  async handle(request, deps) {
    await removeDemo(request.orgDb, deps.demo, request);
    return { status: 204 };
  },
});

export const demoEndpoints = routes.endpoints;
