import { z } from 'zod';
import { includesDefaultWorkspace } from '../../domain/billing/connections.js';
import { dayOf, isoFromMicros, MICROS_PER_DAY, startOfDay } from '../../domain/period.js';
import {
  type BillingConnector,
  type ConnectorCheck,
  type ConnectorFacts,
  type ConnectorOptions,
  type FetchedPage,
  type ProviderAccess,
  planChunks,
  type ReportChunk,
  type ReportFacts,
} from './connector.js';
import { askInPages, readAnthropicEnvelope, readEnvelope } from './pageRows.js';
import { adminKeyOf, ProviderClient, type ProviderTerms, runChecks } from './providerClient.js';

const WORDS: ProviderTerms = {
  name: 'Anthropic',
  remedy:
    'create an admin key, as a member with the role admin, under the Claude Console → Settings → Admin keys (individual accounts have none)',
  adminKeyPrefix: 'sk-ant-admin',
  baseUrlSetting: 'ANTHROPIC_ADMIN_BASE_URL',
};

interface AnthropicReport extends ReportFacts {
  path: string;
  groupBy: readonly string[];
  /** The usage report can be filtered by workspace; the cost report cannot. */
  canFilterWorkspaces: boolean;
}

const REPORTS: readonly AnthropicReport[] = [
  {
    report: 'cost_report',
    feed: 'cost',
    path: '/v1/organizations/cost_report',
    // Results name model, token type, tier, context window and place only when grouped by description.
    groupBy: ['workspace_id', 'description'],
    canFilterWorkspaces: false,
    bucketsMax: { '1d': 31 },
  },
  {
    report: 'messages',
    feed: 'usage',
    path: '/v1/organizations/usage_report/messages',
    // Any subset is permitted. `speed` needs a beta header, so it is omitted.
    groupBy: ['api_key_id', 'workspace_id', 'model', 'service_tier', 'context_window', 'inference_geo'],
    canFilterWorkspaces: true,
    bucketsMax: { '1d': 31, '1h': 168 },
  },
];

/**
 * Anthropic documents one request a minute for sustained polling and permits more in short bursts, such as fetching
 * pages. A sync is such a burst, of ten requests for ninety days, and the schedule keeps bursts an hour apart.
 */
export const ANTHROPIC_REQUEST_GAP_MS = 1_000;
const VERSION = '2023-06-01';

const FACTS: ConnectorFacts = {
  credentialNames: ['admin_key'],
  provisionalDays: 2,
  revisableDays: 30,
  pollIntervalSeconds: 3_600,
  requestGapMs: ANTHROPIC_REQUEST_GAP_MS,
};

const organization = z.object({ id: z.string().min(1).max(256), name: z.string().max(512).nullish() });

/** Anthropic's cost report and its usage report of messages, as its Admin API documents them (docs/connectors.md). */
export class AnthropicConnector implements BillingConnector {
  readonly provider = 'anthropic' as const;
  readonly facts = FACTS;
  readonly #client: ProviderClient;
  readonly #nowMicros: () => bigint;

  constructor(options: ConnectorOptions) {
    this.#nowMicros = options.nowMicros;
    this.#client = new ProviderClient({
      requestGapMs: ANTHROPIC_REQUEST_GAP_MS,
      ...options,
      words: WORDS,
      authorize: (access) => ({ 'x-api-key': adminKeyOf(access, WORDS), 'anthropic-version': VERSION }),
    });
  }

  plan(window: { fromDay: string; toDay: string }, nowMicros: bigint): ReportChunk[] {
    return planChunks(REPORTS, window, nowMicros);
  }

  async identify(access: ProviderAccess): Promise<{ accountId: string | null; name: string | null }> {
    const request = { path: '/v1/organizations/me', report: 'organizations/me', query: {} };
    const { body } = await this.#client.ask(access, request);
    const { id, name } = readEnvelope(organization, body, WORDS.name);
    return { accountId: id, name: name ?? null };
  }

  test(access: ProviderAccess): Promise<ConnectorCheck[]> {
    const endMicros = startOfDay(this.#nowMicros());
    const startMicros = endMicros - MICROS_PER_DAY;
    const ask = async ({ report, feed }: AnthropicReport) => {
      const chunk: ReportChunk = { report, feed, bucketWidth: '1d', startMicros, endMicros };
      readAnthropicEnvelope((await this.#ask(access, chunk, null, 1)).body, null);
      return `the report ${report} of ${dayOf(startMicros)} can be read`;
    };
    return runChecks([
      {
        name: 'organization',
        run: async () => {
          const { accountId, name } = await this.identify(access);
          return `the key belongs to ${name === null ? `organization ${accountId}` : `${name} (${accountId})`}`;
        },
      },
      ...REPORTS.map((report) => ({
        name: report.feed === 'cost' ? 'costs' : 'usage',
        run: () => ask(report),
      })),
    ]);
  }

  async fetchPage(access: ProviderAccess, chunk: ReportChunk, cursor: string | null): Promise<FetchedPage> {
    const { bucketsMax } = reportOf(chunk);
    return askInPages(bucketsMax[chunk.bucketWidth] ?? bucketsMax['1d'], cursor, async (limit, token) => {
      const answer = await this.#ask(access, chunk, token, limit);
      return {
        requestPath: answer.requestPath,
        status: answer.status,
        body: answer.body,
        fetchedAtMicros: answer.fetchedAtMicros,
        providerRequestId: answer.headers.get('request-id'),
        ...readAnthropicEnvelope(answer.body, token),
      };
    });
  }

  #ask(access: ProviderAccess, chunk: ReportChunk, cursor: string | null, limit: number) {
    const { path, groupBy, report, canFilterWorkspaces } = reportOf(chunk);
    const workspaces = access.settings.scope?.workspaces ?? [];
    // The default workspace has no id, so a scope that includes it is filtered when the rows are read.
    const isFiltered =
      canFilterWorkspaces && workspaces.length > 0 && !includesDefaultWorkspace(access.settings);
    return this.#client.ask(access, {
      path,
      report,
      query: {
        starting_at: isoFromMicros(chunk.startMicros),
        ending_at: isoFromMicros(chunk.endMicros),
        bucket_width: chunk.bucketWidth,
        group_by: groupBy,
        ...(isFiltered ? { workspace_ids: workspaces } : {}),
        limit: String(limit),
        ...(cursor === null ? {} : { page: cursor }),
      },
    });
  }
}

function reportOf(chunk: ReportChunk): AnthropicReport {
  const found = REPORTS.find(({ report }) => report === chunk.report);
  if (!found) throw new RangeError(`Anthropic has no report ${chunk.report}`);
  return found;
}
