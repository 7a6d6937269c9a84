import { z } from 'zod';
import {
  type AzureScope,
  type ConnectionSettings,
  parseAzureScope,
} from '../../domain/billing/connections.js';
import { AZURE_MODEL_CATEGORIES } from '../../domain/billing/formats/azureCostDetails.js';
import { AZURE_QUERY_COLUMNS, dayOfUsageDate } from '../../domain/billing/formats/azureQuery.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf, MICROS_PER_DAY, startOfDay } from '../../domain/period.js';
import { AzureTokens } from './azureTokens.js';
import {
  type BillingConnector,
  type BucketTimes,
  type ConnectorCheck,
  type ConnectorFacts,
  type ConnectorOptions,
  type FetchedPage,
  type ProviderAccess,
  planChunks,
  type ReportChunk,
  type ReportFacts,
  type SettingsFault,
} from './connector.js';
import { readEnvelope } from './pageRows.js';
import { ProviderClient, type ProviderTerms, runChecks } from './providerClient.js';

const WORDS: ProviderTerms = {
  name: 'Azure',
  subject: 'the application',
  remedy:
    'give the application the role Cost Management Reader on the scope, under portal.azure.com → the subscription → Access control (IAM)',
  notFoundMeans: 'the scope does not exist, or the application may not see it',
  baseUrlSetting: 'AZURE_MANAGEMENT_BASE_URL',
};

/** Cost Management cuts a daily answer off at 31 days (Microsoft documentation, "Query - Usage"). */
const DAYS_MAX = 31;
const REPORTS: readonly ReportFacts[] = [{ report: 'query', feed: 'cost', bucketsMax: { '1d': DAYS_MAX } }];
const API_VERSION = '2025-03-01';

/**
 * A tenant has 12 query units for ten seconds and 60 for a minute, and a scope was observed to be limited at four calls
 * a minute. Ten requests a minute leave room for others, and a 429 is obeyed.
 */
export const AZURE_REQUEST_GAP_MS = 6_000;

const FACTS: ConnectorFacts = {
  credentialNames: ['tenant_id', 'client_id', 'client_secret'],
  // A month is closed up to five days after its end; its days may change until then.
  provisionalDays: 36,
  revisableDays: 36,
  // Costs are recalculated every four hours; Microsoft recommends one query a day.
  pollIntervalSeconds: 86_400,
  requestGapMs: AZURE_REQUEST_GAP_MS,
};

export interface AzureConnectorOptions extends ConnectorOptions {
  loginBaseUrl: string;
}

/** Azure's own costs of its OpenAI models, by Cost Management's query (docs/connectors.md). */
export class AzureOpenaiConnector implements BillingConnector {
  readonly provider = 'azure_openai' as const;
  readonly facts = FACTS;
  readonly #client: ProviderClient;
  readonly #nowMicros: () => bigint;

  constructor(options: AzureConnectorOptions) {
    this.#nowMicros = options.nowMicros;
    const tokens = new AzureTokens({
      loginBaseUrl: options.loginBaseUrl,
      managementBaseUrl: options.baseUrl,
      nowMicros: options.nowMicros,
      ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
    });
    this.#client = new ProviderClient({
      requestGapMs: AZURE_REQUEST_GAP_MS,
      ...options,
      words: WORDS,
      authorize: async (access) => ({ authorization: `Bearer ${await tokens.tokenOf(access)}` }),
      onUnauthorized: (access) => tokens.forget(access),
    });
  }

  plan(window: { fromDay: string; toDay: string }, nowMicros: bigint): ReportChunk[] {
    return planChunks(REPORTS, window, nowMicros);
  }

  settingsFault({ scope }: ConnectionSettings): SettingsFault | undefined {
    const field = 'scope';
    if (scope?.resource === undefined)
      return {
        field,
        message:
          'is required: the subscription to read, e.g. /subscriptions/00000000-0000-0000-0000-000000000000',
      };
    if (parseAzureScope(scope.resource)) return undefined;
    return {
      field,
      message:
        'must be /subscriptions/{id}, /subscriptions/{id}/resourceGroups/{name}, /providers/Microsoft.Billing/billingAccounts/{id} or /providers/Microsoft.Management/managementGroups/{name}',
    };
  }

  accountOfSettings({ scope }: ConnectionSettings): string | null {
    return parseAzureScope(scope?.resource ?? '')?.account ?? null;
  }

  /** The scope names the account; a query of one day verifies the application's permission. */
  async identify(access: ProviderAccess): Promise<{ accountId: string | null; name: string | null }> {
    await this.fetchPage(access, this.#yesterday(), null);
    return { accountId: scopeOf(access).account, name: null };
  }

  test(access: ProviderAccess): Promise<ConnectorCheck[]> {
    const chunk = this.#yesterday();
    return runChecks([
      {
        name: 'costs',
        run: async () => {
          await this.fetchPage(access, chunk, null);
          return `the costs of ${dayOf(chunk.startMicros)} can be read`;
        },
      },
    ]);
  }

  async fetchPage(access: ProviderAccess, chunk: ReportChunk, cursor: string | null): Promise<FetchedPage> {
    const scope = scopeOf(access);
    const answer = await this.#client.ask(access, {
      path: `${scope.path}/providers/Microsoft.CostManagement/query`,
      report: 'query',
      query: cursor === null ? { 'api-version': API_VERSION } : queryOf(cursor),
      body: JSON.stringify(queryBody(scope, chunk)),
      hasCursor: cursor !== null,
    });
    return {
      requestPath: answer.requestPath,
      status: answer.status,
      body: answer.body,
      fetchedAtMicros: answer.fetchedAtMicros,
      providerRequestId: answer.headers.get('x-ms-request-id'),
      ...readAzureEnvelope(answer.body, chunk, cursor),
    };
  }

  #yesterday(): ReportChunk {
    const endMicros = startOfDay(this.#nowMicros());
    return {
      report: 'query',
      feed: 'cost',
      bucketWidth: '1d',
      startMicros: endMicros - MICROS_PER_DAY,
      endMicros,
    };
  }
}

/** A query may have at most two groups and two sums. */
function queryBody(scope: AzureScope, chunk: ReportChunk): object {
  const dimension = (name: string) => ({ type: 'Dimension', name });
  return {
    type: 'ActualCost',
    timeframe: 'Custom',
    timePeriod: {
      from: `${dayOf(chunk.startMicros)}T00:00:00Z`,
      to: `${dayOf(chunk.endMicros - 1n)}T23:59:59Z`,
    },
    dataset: {
      granularity: 'Daily',
      aggregation: {
        totalCost: { name: 'Cost', function: 'Sum' },
        qty: { name: 'UsageQuantity', function: 'Sum' },
      },
      grouping: [dimension('Meter'), dimension(scope.groupsByResource ? 'ResourceId' : 'SubscriptionId')],
      filter: {
        dimensions: { name: 'MeterCategory', operator: 'In', values: [...AZURE_MODEL_CATEGORIES] },
      },
    },
  };
}

/** The link's parameters, each once. */
function queryOf(cursor: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(cursor));
}

/** Throws credentials_refused where the settings name no Azure scope. */
function scopeOf({ settings }: ProviderAccess): AzureScope {
  const scope = parseAzureScope(settings.scope?.resource ?? '');
  if (scope) return scope;
  throw new DomainError(
    'credentials_refused',
    'the connection names no scope of Azure; give /subscriptions/{id} in settings.scope',
  );
}

const page = z.object({
  properties: z.object({
    nextLink: z.string().max(65_536).nullish(),
    columns: z.array(z.object({ name: z.string().max(256) })).max(100),
    rows: z.array(z.array(z.union([z.string(), z.number(), z.null()]))),
  }),
});

/**
 * Parses the paging of `{properties: {columns, rows, nextLink}}`. Columns are found by name. A complete answer covers
 * its window and has rows only for days with charges, so the last page is marked as covering the whole window. `cursor`
 * is the query of the link of this page. Errors: provider_answer_unreadable, also where a row names a day that was not
 * requested; provider_paging_changed where the link leads back to this page.
 */
export function readAzureEnvelope(
  body: Buffer,
  { startMicros, endMicros }: BucketTimes,
  cursor: string | null,
): { buckets: BucketTimes[]; nextCursor: string | null } {
  const window = { startMicros, endMicros };
  // 204: the scope has no data.
  if (body.length === 0) return { buckets: [window], nextCursor: null };
  const { properties } = readEnvelope(page, body, 'Azure');
  const names = properties.columns.map(({ name }) => name.toLowerCase());
  const at = (columns: readonly string[]) => names.findIndex((name) => columns.includes(name));
  for (const [what, columns] of Object.entries(AZURE_QUERY_COLUMNS)) {
    if (at(columns) < 0 && (what === 'cost' || what === 'day' || what === 'meter'))
      throw unreadable(`it has no column ${columns[0]}`);
  }
  checkDays(properties.rows, at(AZURE_QUERY_COLUMNS.day), window);
  const nextCursor = nextCursorOf(properties.nextLink ?? null, cursor);
  return { buckets: nextCursor === null ? [window] : [], nextCursor };
}

function checkDays(rows: readonly (string | number | null)[][], at: number, window: BucketTimes): void {
  const [from, to] = [dayOf(window.startMicros), dayOf(window.endMicros - 1n)];
  for (const row of rows) {
    const day = dayOfUsageDate(String(row[at] ?? ''));
    if (day === undefined || day < from || day > to)
      throw unreadable('a row names a day that was not requested');
  }
}

/** The query of the link; its address is ignored, since a link could lead anywhere. */
function nextCursorOf(link: string | null, cursor: string | null): string | null {
  if (link === null || link === '') return null;
  const query = URL.canParse(link) ? new URL(link).search.slice(1) : '';
  if (query === '' || query.length > 8_192) throw unreadable('nextLink is not as documented');
  if (query !== cursor) return query;
  throw new DomainError(
    'provider_paging_changed',
    'Azure named the page that was asked for as the next one; the chunk is fetched from its beginning',
  );
}

function unreadable(reason: string): DomainError {
  return new DomainError('provider_answer_unreadable', `the answer of Azure cannot be read: ${reason}`);
}
