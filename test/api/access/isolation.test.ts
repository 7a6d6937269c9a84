import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { publicId } from '../../../domain/ids.js';
import { endRun } from '../../../usecases/runs/endRun.js';
import { Belongings } from '../../db/support/outcomes.js';
import { makeOwned, type Owned } from '../../db/support/ownedThings.js';
import { digestTenantRows } from '../../db/support/tenantRows.js';
import type { TestOrganization } from '../../support/api.js';
import { type FetchingPlace, startFetchingPlace } from '../../support/fetchingPlace.js';
import { storeFindings } from '../../support/findings.js';
import { claimsOf } from '../support/claims.js';
import { financialOf } from '../support/financial.js';
import {
  addressOf,
  bodyOf,
  markerOf,
  type Operation,
  type OperationRequest,
  randomName,
  unknownId,
} from '../support/operations/operation.js';
import { OPERATIONS } from '../support/operations.js';
import { type RawAnswer, send } from '../support/requests.js';

/**
 * Two organizations: the owner can read its objects, and for the stranger no object with these ids exists. No list,
 * sum, header or filter shows the stranger any of the owner's data.
 */
let place: FetchingPlace;
let owned: Owned;
let owner: TestOrganization;
let stranger: TestOrganization;
let document: {
  paths: Record<
    string,
    Record<string, { operationId: string; parameters?: Parameter[]; requestBody?: object }>
  >;
};

interface Parameter {
  name: string;
  in: string;
  schema: { type?: string; enum?: unknown[]; format?: string; description?: string };
}

beforeAll(async () => {
  place = await startFetchingPlace();
  await place.engine.startWorker();
  const prices = await loadPriceBook(place.api.database.database);
  owned = await makeOwned(place.api, {
    // None that another organization's own words begin with: those end in an id.
    marker: 'owned-by-first',
    provider: 'anthropic',
    prices,
    importedDaysAgo: 20,
  });
  owner = owned.org;
  stranger = await place.api.addOrganization('stranger');
  await place.engine.close();
  // Only one re-pricing of an organization is open at a time.
  await endRun(owner.orgDb, 'reprice', owned.openRepriceId, { status: 'cancelled' });
  document = (await send(place.api, { path: '/openapi.json', key: null })).body;
}, 300_000);

afterAll(() => place?.api.close());

function ask(operation: Operation, request: OperationRequest, who: TestOrganization): Promise<RawAnswer> {
  const method = operation.method;
  return send(place.api, {
    method,
    path: addressOf(operation, request),
    key: who.adminKey,
    ...bodyOf(request),
  });
}

/** Everything that a client sees, except the parts that differ with each request. */
function seen({ status, headers, body, bytes }: RawAnswer): object {
  const { date: _d, 'x-request-id': _x, ...rest } = headers;
  if (status < 400) return { status, headers: rest, bytes: bytes.toString() };
  const { request_id: _r, instance: _i, ...problem } = body;
  return { status, headers: rest, problem };
}

const rowsOfOwner = () => digestTenantRows(place.api.database.superuser, owner.orgId);

const ENTRIES = Object.entries(OPERATIONS);
const BY_ID = ENTRIES.flatMap(([name, operation]) =>
  Object.entries(operation.ids ?? {}).map(([id, draw]) => [name, id, operation, draw] as const),
);

describe('an id', () => {
  it('is known to the list of operations wherever a path takes one', () => {
    // Parameters that do not identify a row: a month, a dimension, a policy type, a page and a line of an invoice, a
    // cadence of reports.
    const words = ['period', 'dimension', 'policy_type', 'page', 'line', 'cadence'];
    for (const [name, operation] of ENTRIES) {
      const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, id = '']) => id);
      expect(Object.keys(operation.ids ?? {}), name).toEqual(inPath.filter((id) => !words.includes(id)));
    }
    expect(BY_ID.length).toBeGreaterThan(20);
  });

  it.each(BY_ID)(
    '%s: %s of another organization is as one that nothing has',
    async (name, id, operation, draw) => {
      const theirs = await operation.request(place, owner);
      const own = await operation.request(place, stranger);
      const before = await rowsOfOwner();
      // All other ids in the path are the stranger's, so that only this one is foreign.
      const foreign = { ...own, params: { ...own.params, [id]: theirs.params?.[id] ?? '' } };
      const nothing = { ...own, params: { ...own.params, [id]: draw() } };
      const answer = await ask(operation, foreign, stranger);
      const code = name === 'getReport' ? 'report_not_found' : 'not_found';
      expect([answer.status, answer.body.code]).toEqual([404, code]);
      expect(seen(answer)).toEqual(seen(await ask(operation, nothing, stranger)));
      const all = await ask(operation, theirs, stranger);
      expect(all.status).toBe(404);
      expect(await rowsOfOwner()).toEqual(before);
      expect((await ask(operation, theirs, owner)).status).toBe(operation.status);
    },
  );
});

/** These answers concern no single organization: they are the same for both. */
const SAME_FOR_ALL = ['getSignInOptions', 'getPricingTable', 'listPrices'];
/** One file of the organization: another has its own or none. */
const LOGO = 'getBrandingLogo';
const LISTS = ENTRIES.filter(
  ([name, { method, ids }]) => method === 'GET' && ids === undefined && name !== LOGO,
);

it('the logo of an organization is not found by another', async () => {
  const [, operation] = ENTRIES.find(([name]) => name === LOGO) as [string, Operation];
  const fresh = await place.api.addOrganization();
  const request = await operation.request(place, owner);
  expect((await ask(operation, request, owner)).status).toBe(200);
  expect((await ask(operation, request, fresh)).status).toBe(404);
});

describe('a list or a sum', () => {
  const requests = new Map<string, OperationRequest>();
  let belongings: Belongings;

  beforeAll(async () => {
    await owner.orgDb.run(
      `update organizations set settings = '{"time_zone":"Europe/Berlin"}' where id = $1`,
      [owner.orgId],
    );
    for (const [name, operation] of LISTS) requests.set(name, await operation.request(place, owner));
    belongings = await Belongings.read(
      place.api.database.superuser,
      { orgId: owner.orgId, markers: [owned.marker, markerOf(owner)] },
      [stranger.orgId],
    );
  });

  it.each(LISTS)('%s shows its own organization, and nothing of it to another', async (name, operation) => {
    const request = requests.get(name) ?? {};
    // Without one of its own the stranger has none to be shown.
    if (name === 'getReportSchedule') await operation.request(place, stranger);
    const theirs = await ask(operation, request, owner);
    const mine = await ask(operation, request, stranger);
    expect([theirs.status, mine.status]).toEqual([200, 200]);
    expect(belongings.findInText(`${mine.bytes} ${JSON.stringify(mine.headers)}`)).toEqual([]);
    const isSame = mine.bytes.equals(theirs.bytes);
    expect(isSame).toBe(SAME_FOR_ALL.includes(name));
  });

  it.each(LISTS)(
    '%s returns nothing of another organization to a filter by its texts',
    async (name, operation) => {
      const request = requests.get(name) ?? {};
      for (const [parameter, value] of await foreignFilters(name, operation)) {
        const mine = await ask(
          operation,
          { ...request, query: { ...request.query, [parameter]: value } },
          stranger,
        );
        expect([200, 400], `${parameter}=${value}: ${mine.bytes}`).toContain(mine.status);
        const shown = belongings.findInText(
          `${mine.bytes} ${JSON.stringify(mine.headers)}`.replaceAll(value, ''),
        );
        expect(shown, `${parameter}=${value}`).toEqual([]);
      }
    },
  );
});

/** Free-text filters of a list, each with a value that finds the owner's data. */
async function foreignFilters(name: string, operation: Operation): Promise<[string, string][]> {
  const parameters = document.paths[operation.path]?.[operation.method.toLowerCase()]?.parameters ?? [];
  const words = [
    owned.marker,
    `${owned.marker}-march`,
    publicId('wsp', owned.workspaceId),
    publicId('run', owned.runId),
    owned.keyId,
    'anthropic',
    `' or org_id = '${owner.orgId}' --`,
    `'; reset role; select 1; --`,
  ];
  const filters = parameters
    .filter(
      ({ in: where, schema }) =>
        where === 'query' && schema.type === 'string' && !schema.enum && !schema.format,
    )
    .filter(
      ({ name: parameter, schema }) =>
        parameter !== 'cursor' && !/ISO 8601|UTC/.test(schema.description ?? ''),
    )
    .flatMap(({ name: parameter }) => words.map((word): [string, string] => [parameter, word]));
  if (!parameters.some((parameter) => parameter.name === 'cursor')) return filters;
  const first = await ask(operation, { query: { limit: '1' } }, owner);
  expect(typeof first.body.next_cursor, `${name} has a second page`).toBe('string');
  return [...filters, ['cursor', first.body.next_cursor]];
}

describe('an id in a body', () => {
  /** Filters by names that the organization does not own: ids of providers, and labels. */
  const NOT_OURS = ['project_id', 'provider_key_id', 'provider_account_id', 'team_id', 'external_ticket_id'];
  /** A resource of the owner, its kind, and the request of another organization that names it. */
  interface NamedId {
    kind: 'wsp' | 'dsp' | 'clm';
    theirs(): Promise<string>;
    request(id: string, who: TestOrganization): Promise<OperationRequest>;
  }
  const BODIES: Record<string, NamedId> = {
    'createKey workspace_id': {
      kind: 'wsp',
      theirs: async () => publicId('wsp', owned.workspaceId),
      request: async (id) => ({ json: { name: 'of a workspace', role: 'ingest', workspace_id: id } }),
    },
    'createClaim dispute_ids': {
      kind: 'dsp',
      theirs: () => aDispute(owner),
      request: async (id) => ({ json: { dispute_ids: [id] } }),
    },
    'mergeClaims claim_ids': {
      kind: 'clm',
      theirs: () => aDraft(owner),
      request: async (id, who) => ({ params: { id: await aDraft(who) }, json: { claim_ids: [id] } }),
    },
  };

  it('is known wherever a body takes one', () => {
    const found = ENTRIES.flatMap(([name, { path, method, access }]) => {
      const isIngest = access !== 'public' && access.scope === 'ingest';
      const body = document.paths[path]?.[method.toLowerCase()]?.requestBody;
      if (!body || isIngest) return [];
      return (
        idFieldsOf(body)
          // The id of a message of MCP is its sender's.
          .filter((field) => !NOT_OURS.includes(field) && name !== 'mcp')
          .map((field) => `${name} ${field}`)
      );
    });
    expect(found.sort()).toEqual(Object.keys(BODIES).sort());
  });

  it.each(Object.entries(BODIES))(
    '%s of another organization is as one that nothing has',
    async (name, { kind, theirs, request }) => {
      const operation = OPERATIONS[name.split(' ')[0] ?? ''] as Operation;
      const id = await theirs();
      const before = await rowsOfOwner();
      const foreign = await ask(operation, await request(id, stranger), stranger);
      const nothing = await ask(operation, await request(unknownId(kind)(), stranger), stranger);
      expect(foreign.status).toBeGreaterThanOrEqual(400);
      expect(seen(foreign)).toEqual(seen(nothing));
      expect(await rowsOfOwner()).toEqual(before);
      expect((await ask(operation, await request(id, owner), owner)).status).toBe(operation.status);
    },
  );

  /** A dispute of an organization in no claim. */
  async function aDispute(who: TestOrganization): Promise<string> {
    const model = `${markerOf(who)}-${randomName()}`;
    const [id = ''] = await storeFindings(who.orgDb, [{ model, accountId: markerOf(who) }]);
    return (await financialOf(() => place.api).confirm(who, publicId('fnd', id))).body.id;
  }

  async function aDraft(who: TestOrganization): Promise<string> {
    return (await claimsOf(() => place.api).create(who, [await aDispute(who)])).body.id;
  }
});

/** Names of properties that are ids, in a schema and all that it refers to. */
function idFieldsOf(schema: unknown, visited = new Set<string>()): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const fields: string[] = [];
  for (const [name, part] of Object.entries(schema)) {
    if (name === '$ref' && typeof part === 'string' && !visited.has(part)) {
      visited.add(part);
      const found = part
        .replace(/^#\//, '')
        .split('/')
        .reduce<unknown>((at, step) => (at as Record<string, unknown>)?.[step], document);
      fields.push(...idFieldsOf(found, visited));
    }
    if (name === 'properties')
      fields.push(...Object.keys(part as object).filter((field) => /(^|_)ids?$/.test(field)));
    fields.push(...idFieldsOf(part, visited));
  }
  return [...new Set(fields)];
}
