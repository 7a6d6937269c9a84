import { z } from 'zod';
import type { OrgDb } from '../../db/orgDb.js';
import { listRuns, type OpenableRunTable, type Run } from '../../db/runs/runTable.js';
import type { AuditAction, AuditDetails, AuditSubject } from '../../domain/access/auditLog.js';
import type { DomainError } from '../../domain/errors.js';
import { publicRunId } from '../../domain/runs/runKinds.js';
import { recordAction } from '../../usecases/access/recordAction.js';
import { cancelRun } from '../../usecases/runs/endRun.js';
import { getRun, openRun, type RunOpening } from '../../usecases/runs/openRun.js';
import type { ApiDeps } from '../deps.js';
import {
  type Access,
  defineEndpoint,
  type Endpoint,
  type EndpointDefinition,
  type EndpointRequest,
} from '../endpoint.js';
import { pageOf } from '../paging.js';
import { acceptedResponse, acceptedRun } from './runWire.js';

type Presented = { status_url: string };
type Words = { operationId: string; summary: string; description?: string };

/** A kind of run in the API. */
export interface RunResource<R extends Run, N extends { id: string }> {
  runs: OpenableRunTable<R, N>;
  tag: string;
  read: Access;
  write: Access;
  /** Path of the list; a run has `${path}/{id}`. */
  path: string;
  schema: z.ZodType;
  present(runs: R[], orgDb: OrgDb, isListed: boolean): Presented[] | Promise<Presented[]>;
  /** Finds the run's parent by the id in the path; the run's id is then called run_id. Error: not_found. */
  findParent?(orgDb: OrgDb, id: string): Promise<Record<string, string>>;
}

const PARAMS = z.object({ id: z.string() });
const CHILD_PARAMS = z.object({ id: z.string(), run_id: z.string() });

/** The way in which a request starts a run. */
export interface StartedRun<R extends Run, N> extends RunOpening<N> {
  /** The audit log's record of a new run. */
  audit(run: R): { action: AuditAction; subject: AuditSubject; details: AuditDetails };
  /** Further changes in the new run's transaction. */
  opened?(inside: OrgDb): Promise<void>;
  /** The error when the open run differs from the requested one; undefined: the open run is returned. */
  refuseOpen?(open: R): DomainError | undefined;
}

export function startRunEndpoint<
  R extends Run,
  N extends { id: string },
  Q extends z.ZodType = z.ZodType<unknown>,
  P extends z.ZodType = z.ZodType<unknown>,
  B extends z.ZodType = z.ZodType<unknown>,
>(
  { runs, tag, write, schema, present }: RunResource<R, N>,
  {
    prepare,
    ...definition
  }: Words &
    Pick<
      EndpointDefinition<Q, P, B>,
      'path' | 'query' | 'params' | 'body' | 'isBodyOptional' | 'problems'
    > & {
      prepare(
        request: EndpointRequest<z.output<Q>, z.output<P>, z.output<B>>,
        deps: ApiDeps,
      ): StartedRun<R, N> | Promise<StartedRun<R, N>>;
    },
): Endpoint {
  return defineEndpoint<Q, P, B>({
    ...definition,
    method: 'post',
    tag,
    access: write,
    limit: runs.kind,
    responses: acceptedResponse(schema),
    async handle(request, deps) {
      const { orgDb, afterCommit, runLimit: limit } = request;
      const { audit, opened: begin, refuseOpen, ...opening } = await prepare(request, deps);
      const record = async (inside: OrgDb, opened: R) => {
        await begin?.(inside);
        const { action, subject, details } = audit(opened);
        await recordAction(inside, request, action, subject, details);
      };
      const options = { nowMicros: deps.nowMicros(), limit, record };
      const { run, existing } = await openRun(orgDb, runs, opening, options);
      const refusal = existing ? refuseOpen?.(run) : undefined;
      if (refusal) throw refusal;
      if (!existing) afterCommit(() => deps.kickDispatcher());
      return acceptedRun(await presentOne(present, run, orgDb), existing);
    },
  });
}

async function presentOne<R extends Run>(
  present: RunResource<R, never>['present'],
  run: R,
  orgDb: OrgDb,
): Promise<Presented> {
  const [presented] = await present([run], orgDb, false);
  return presented as Presented;
}

/** Lists runs, newest first. `filter` is by their properties: undefined skips a property, null matches nothing. */
export function listRunsEndpoint<
  R extends Run,
  N extends { id: string },
  Q extends z.ZodType<{ limit: number; offset: number }>,
>(
  { runs, tag, read, path, present, findParent }: RunResource<R, N>,
  {
    query,
    response,
    described,
    field = 'runs',
    filter = () => ({}),
    ...words
  }: Words & {
    query: Q;
    response: z.ZodType;
    described: string;
    field?: string;
    filter?: (query: z.output<Q>) => Record<string, string | undefined> | null;
  },
): Endpoint {
  return defineEndpoint<Q, z.ZodType<{ id: string }>>({
    ...words,
    method: 'get',
    csv: `${runs.kind.replaceAll('_', '-')}s`,
    path,
    tag,
    access: read,
    ...(findParent ? { params: PARAMS } : {}),
    query,
    responses: { 200: { description: described, schema: response } },
    problems: findParent ? ['not_found'] : [],
    async handle({ params, query: asked, orgDb }) {
      const wanted = filter(asked);
      const within = { ...(await findParent?.(orgDb, params.id)), ...wanted };
      const { limit, offset } = asked;
      const found = wanted ? await listRuns(orgDb, runs, within, { limit: limit + 1, offset }) : [];
      const { shown, page } = pageOf(found, asked);
      return { status: 200, body: { [field]: await present(shown, orgDb, true), ...page } };
    },
  });
}

export function getRunEndpoint<R extends Run, N extends { id: string }>(
  { runs, tag, read, path, schema, present, findParent }: RunResource<R, N>,
  { described, ...words }: Words & { described: string },
): Endpoint {
  return defineEndpoint<z.ZodType<unknown>, z.ZodType<{ id: string; run_id?: string }>>({
    ...words,
    method: 'get',
    path: `${path}/{${findParent ? 'run_id' : 'id'}}`,
    tag,
    access: read,
    params: findParent ? CHILD_PARAMS : PARAMS,
    responses: { 200: { description: described, schema } },
    problems: ['not_found'],
    async handle({ params, orgDb }) {
      const parent = await findParent?.(orgDb, params.id);
      const run = await getRun(orgDb, runs, params.run_id ?? params.id, parent);
      return { status: 200, body: await presentOne(present, run, orgDb) };
    },
  });
}

export function cancelRunEndpoint<R extends Run, N extends { id: string }>(
  { runs, tag, write, path, schema, present }: RunResource<R, N>,
  { action, subjectType, ...words }: Words & { action: AuditAction; subjectType: string },
): Endpoint {
  return defineEndpoint<z.ZodType<unknown>, typeof PARAMS>({
    ...words,
    method: 'post',
    path: `${path}/{id}/cancel`,
    tag,
    access: write,
    params: PARAMS,
    responses: acceptedResponse(schema),
    problems: ['not_found', 'run_not_cancellable'],
    async handle(request, deps) {
      const { params, orgDb, afterCommit } = request;
      const { id } = await getRun(orgDb, runs, params.id);
      const subject = { type: subjectType, id: publicRunId(runs.kind, id) };
      const run = await cancelRun(orgDb, runs, id, (inside) =>
        recordAction(inside, request, action, subject),
      );
      afterCommit(() => deps.kickDispatcher());
      return acceptedRun(await presentOne(present, run, orgDb), false);
    },
  });
}
