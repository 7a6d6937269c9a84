/**
 * A loopback Azure: Microsoft's login, which issues tokens to applications (OAuth 2.0 client credentials), and Cost
 * Management's query, with the documented limits: two groups, two sums, 31 days by day, resources only within a
 * subscription, expiring tokens, exhausted query units.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exactJson, sumDecimals } from '../../../lab/bills/exactJson.js';
import { createBodyServer } from '../../support/bodyServer.js';
import { type Fault, FaultSwitch } from './faults.js';

/** A line of the bill: the value of each dimension, and two decimals as the answer writes them. */
export interface AzureCharge {
  /** `YYYY-MM-DD` */
  day: string;
  cost: string;
  quantity: string;
  dimensions: Readonly<Record<string, string>>;
}

export interface AzureTruth {
  tenantId: string;
  clientId: string;
  clientSecret: string;
  /** Charges by scope (lower case, with a leading slash). */
  scopes: Readonly<Record<string, readonly AzureCharge[]>>;
  currency: string;
}

export interface AzureFakeOptions {
  truth: AzureTruth;
  nowSeconds: () => number;
  /** Rows of one page. */
  pageRows?: number;
  tokenSeconds?: number;
  /** Queries of one minute; the next is answered 429. */
  queriesPerMinute?: number;
}

export interface AzureRequest {
  report: 'token' | 'query';
  path: string;
  query: Record<string, string>;
  body: unknown;
  status: number;
}

export interface AzureFake {
  origin: string;
  requests: AzureRequest[];
  faults: FaultSwitch;
  setTruth(truth: AzureTruth): void;
  /** Invalidates all issued tokens. */
  revokeTokens(): void;
  close(): Promise<void>;
}

class Refused extends Error {
  constructor(
    readonly status: number,
    readonly body: object,
    readonly headers: Record<string, string> = {},
  ) {
    super(`refused with ${status}`);
  }
}

const refused = (status: number, code: string, message: string, headers?: Record<string, string>) =>
  new Refused(status, { error: { code, message } }, headers);
const badRequest = (message: string) => refused(400, 'BadRequest', message);

const API_VERSIONS = ['2023-11-01', '2024-08-01', '2025-03-01'];
const DAYS_MAX = 31;
const GROUPS_MAX = 2;
const SUMS_MAX = 2;
const DIMENSIONS = new Set([
  'Meter',
  'MeterCategory',
  'MeterSubcategory',
  'ResourceId',
  'SubscriptionId',
  'ChargeType',
  'UnitOfMeasure',
]);

/** Starts Azure on a free loopback port; its origin is both the login's and the resource manager's address. */
export async function startAzureBilling(options: AzureFakeOptions): Promise<AzureFake> {
  const azure = new Azure(options);
  const server = createBodyServer((request, response, body) =>
    azure.handle(request, response, body.toString('utf8')),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  azure.origin = origin;
  return {
    origin,
    requests: azure.requests,
    faults: azure.faults,
    setTruth: (truth) => {
      azure.truth = truth;
    },
    revokeTokens: () => azure.tokens.clear(),
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

class Azure {
  readonly requests: AzureRequest[] = [];
  readonly faults = new FaultSwitch();
  /** Token → when it ends. */
  readonly tokens = new Map<string, number>();
  truth: AzureTruth;
  origin = '';
  readonly #options: AzureFakeOptions;
  readonly #queriedAt: number[] = [];

  constructor(options: AzureFakeOptions) {
    this.#options = options;
    this.truth = options.truth;
  }

  async handle(request: IncomingMessage, response: ServerResponse, text: string): Promise<void> {
    const url = new URL(request.url ?? '/', this.origin);
    const report = /\/oauth2\/v2\.0\/token$/.test(url.pathname) ? 'token' : 'query';
    const recorded: AzureRequest = {
      report,
      path: decodeURIComponent(url.pathname),
      query: Object.fromEntries(url.searchParams),
      body: report === 'query' && text !== '' ? JSON.parse(text) : null,
      status: 0,
    };
    this.requests.push(recorded);
    const fault = this.faults.next(report);
    if (fault?.kind === 'hang') return;
    const send = (status: number, body: string, headers: Record<string, string> = {}) => {
      recorded.status = status;
      response.writeHead(status, {
        'content-type': 'application/json; charset=utf-8',
        'x-ms-request-id': `azure-${this.requests.length}`,
        ...headers,
      });
      response.end(body);
    };
    try {
      throwFault(fault);
      if (request.method !== 'POST') throw refused(405, 'MethodNotAllowed', 'Only POST is allowed here.');
      const answer =
        report === 'token' ? this.#token(url, request, text) : this.#query(url, request, recorded.body);
      if (answer === null) send(204, '');
      else if (fault?.kind === 'wrong_shape') send(200, fault.body);
      else if (fault?.kind === 'redirect') send(307, '', { location: fault.location });
      else send(200, exactJson(answer));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      send(error.status, JSON.stringify(error.body), error.headers);
    }
  }

  #token(url: URL, request: IncomingMessage, text: string): object {
    const fail = (status: number, error: string, code: number) =>
      new Refused(status, {
        error,
        // The real text names the application and, of a wrong secret, nothing; it is never to be quoted.
        error_description: `AADSTS${code}: refused for ${text}`,
        error_codes: [code],
      });
    if (!/^application\/x-www-form-urlencoded/.test(request.headers['content-type'] ?? ''))
      throw fail(400, 'invalid_request', 900144);
    const form = new URLSearchParams(text);
    const { tenantId, clientId, clientSecret } = this.truth;
    if (url.pathname.split('/')[1] !== tenantId) throw fail(400, 'invalid_request', 90002);
    if (form.get('grant_type') !== 'client_credentials') throw fail(400, 'unsupported_grant_type', 70003);
    if (form.get('client_id') !== clientId) throw fail(400, 'unauthorized_client', 700016);
    if (form.get('client_secret') !== clientSecret) throw fail(401, 'invalid_client', 7000215);
    if (form.get('scope') !== 'https://management.azure.com/.default')
      throw fail(400, 'invalid_scope', 70011);
    const token = `eyJ.${randomUUID()}.token`;
    const seconds = this.#options.tokenSeconds ?? 3_599;
    this.tokens.set(token, this.#options.nowSeconds() + seconds);
    return { token_type: 'Bearer', expires_in: seconds, ext_expires_in: seconds, access_token: token };
  }

  #query(url: URL, request: IncomingMessage, body: unknown): object | null {
    const ends = this.tokens.get(/^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '');
    if (ends === undefined) throw refused(401, 'InvalidAuthenticationToken', 'The access token is invalid.');
    if (ends <= this.#options.nowSeconds())
      throw refused(401, 'ExpiredAuthenticationToken', 'The access token expiry is before now.');
    const [, scope] = /^(.+)\/providers\/Microsoft\.CostManagement\/query$/.exec(url.pathname) ?? [];
    if (scope === undefined) throw refused(404, 'NotFound', 'Nothing is here.');
    const charges = this.truth.scopes[decodeURIComponent(scope).toLowerCase()];
    if (!charges)
      throw refused(403, 'AuthorizationFailed', `The client has no authorization over '${scope}'.`);
    if (!API_VERSIONS.includes(url.searchParams.get('api-version') ?? ''))
      throw refused(400, 'InvalidApiVersionParameter', 'The api-version is not supported.');
    this.#spend();
    return charges.length === 0 ? null : this.#page(url, scope, charges, body as QueryBody);
  }

  #spend(): void {
    const limit = this.#options.queriesPerMinute;
    if (limit === undefined) return;
    const now = this.#options.nowSeconds();
    const recent = this.#queriedAt.filter((at) => at > now - 60);
    if (recent.length >= limit) {
      throw refused(429, 'TooManyRequests', 'Too many requests. Please retry.', {
        'x-ms-ratelimit-microsoft.costmanagement-qpu-retry-after': '7',
        'x-ms-ratelimit-microsoft.costmanagement-entity-retry-after': '23',
        'x-ms-ratelimit-microsoft.costmanagement-qpu-consumed': '1',
        'x-ms-ratelimit-microsoft.costmanagement-qpu-remaining': 'QueryHourly:300',
      });
    }
    this.#queriedAt.push(now);
  }

  #page(url: URL, scope: string, charges: readonly AzureCharge[], body: QueryBody): object {
    const asked = readBody(body, scope);
    const rows = groupRows(charges, asked, this.truth.currency);
    const size = this.#options.pageRows ?? 5_000;
    const signature = Buffer.from(JSON.stringify(body)).toString('base64url').slice(-24);
    const token = url.searchParams.get('$skiptoken');
    const [, from = '0', of = signature] = /^(\d+)\.(.+)$/.exec(token ?? '') ?? [];
    if (of !== signature) throw badRequest('The skip token does not belong to this query.');
    const next = Number(from) + size;
    // The link leads to the public address, as a proxy in front of Azure would leave it.
    const link = `https://management.azure.com${url.pathname}?api-version=${url.searchParams.get('api-version')}&$skiptoken=${next}.${signature}`;
    return {
      id: `${scope.slice(1)}/providers/Microsoft.CostManagement/query/${randomUUID()}`,
      name: randomUUID(),
      type: 'Microsoft.CostManagement/query',
      properties: {
        nextLink: next < rows.length ? link : null,
        columns: [
          ...asked.sums.map((name) => ({ name, type: 'Number' })),
          { name: 'UsageDate', type: 'Number' },
          ...asked.groups.map((name) => ({ name, type: 'String' })),
          { name: 'Currency', type: 'String' },
        ],
        rows: rows.slice(Number(from), next),
      },
    };
  }
}

interface QueryBody {
  type?: string;
  timeframe?: string;
  timePeriod?: { from: string; to: string };
  dataset?: {
    granularity?: string;
    aggregation?: Record<string, { name: string; function: string }>;
    grouping?: { type: string; name: string }[];
    filter?: { dimensions?: { name: string; operator: string; values: string[] } };
  };
}

interface Asked {
  fromDay: string;
  toDay: string;
  sums: ('Cost' | 'UsageQuantity')[];
  groups: string[];
  filter: { name: string; values: string[] } | null;
}

/** Throws error 400 for a query beyond the documented limits. */
function readBody(body: QueryBody, scope: string): Asked {
  const { dataset, timePeriod } = body;
  if (body.type !== 'ActualCost' || body.timeframe !== 'Custom' || !timePeriod || !dataset)
    throw badRequest('Invalid query definition.');
  if (dataset.granularity !== 'Daily') throw badRequest('Invalid dataset granularity.');
  const sums = Object.values(dataset.aggregation ?? {});
  if (sums.length > SUMS_MAX)
    throw badRequest(`Invalid dataset aggregation, the maximum allowed number of items is ${SUMS_MAX}.`);
  if (sums.some((sum) => sum.function !== 'Sum' || !['Cost', 'UsageQuantity'].includes(sum.name)))
    throw badRequest('Invalid dataset aggregation.');
  const groups = (dataset.grouping ?? []).map(({ name }) => name);
  if (groups.length > GROUPS_MAX)
    throw badRequest(`Invalid dataset grouping, the maximum allowed number of items is ${GROUPS_MAX}.`);
  if (groups.some((name) => !DIMENSIONS.has(name))) throw badRequest('Invalid dataset grouping.');
  if (groups.includes('ResourceId') && !/^\/subscriptions\//i.test(scope))
    throw badRequest('ResourceId is not supported at this scope.');
  const toDay = timePeriod.to.slice(0, 10);
  const earliest = new Date(Date.parse(toDay) - (DAYS_MAX - 1) * 86_400_000).toISOString().slice(0, 10);
  const from = timePeriod.from.slice(0, 10);
  const filter = dataset.filter?.dimensions;
  if (filter && filter.operator !== 'In') throw badRequest('Invalid filter.');
  return {
    // A longer time is cut without a word.
    fromDay: from < earliest ? earliest : from,
    toDay,
    sums: sums.map(({ name }) => name as 'Cost' | 'UsageQuantity'),
    groups,
    filter: filter ? { name: filter.name, values: filter.values } : null,
  };
}

function groupRows(charges: readonly AzureCharge[], asked: Asked, currency: string): unknown[][] {
  const groups = new Map<string, { charge: AzureCharge; costs: string[]; quantities: string[] }>();
  for (const charge of charges) {
    if (charge.day < asked.fromDay || charge.day > asked.toDay) continue;
    if (asked.filter && !asked.filter.values.includes(charge.dimensions[asked.filter.name] ?? '')) continue;
    const key = JSON.stringify([charge.day, ...asked.groups.map((name) => charge.dimensions[name] ?? '')]);
    const group = groups.get(key) ?? { charge, costs: [], quantities: [] };
    group.costs.push(charge.cost);
    group.quantities.push(charge.quantity);
    groups.set(key, group);
  }
  return [...groups.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { charge, costs, quantities }]) => [
      ...asked.sums.map((name) => ({ $number: sumDecimals(name === 'Cost' ? costs : quantities) })),
      Number(charge.day.replaceAll('-', '')),
      ...asked.groups.map((name) => charge.dimensions[name] ?? ''),
      currency,
    ]);
}

function throwFault(fault: Fault | undefined): void {
  if (fault?.kind === 'outage') {
    throw refused(fault.status, 'ServiceUnavailable', 'The service is not available.', {
      ...(fault.retryAfter === undefined ? {} : { 'retry-after': fault.retryAfter }),
    });
  }
  if (fault?.kind === 'rate_limit')
    throw refused(429, 'TooManyRequests', 'Too many requests.', fault.headers);
  if (fault?.kind === 'denied') throw refused(403, 'AuthorizationFailed', 'The client has no authorization.');
}
