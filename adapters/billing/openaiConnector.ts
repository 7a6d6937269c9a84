import { dayOf, MICROS_PER_DAY, startOfDay } from '../../domain/period.js';
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
import { askInPages, readOpenaiEnvelope } from './pageRows.js';
import { adminKeyOf, ProviderClient, type ProviderTerms, runChecks } from './providerClient.js';

const WORDS: ProviderTerms = {
  name: 'OpenAI',
  remedy:
    'create an admin key that may read usage (api.usage.read), as an owner of the organization, under platform.openai.com → Settings → Organization → Admin keys',
  adminKeyPrefix: 'sk-admin-',
  baseUrlSetting: 'OPENAI_ADMIN_BASE_URL',
};

interface OpenaiReport extends ReportFacts {
  path: string;
  /** The supported groupings of the report (OpenAI API reference, "Usage"), without users and sizes. */
  groupBy: readonly string[];
}

const KEYED = ['project_id', 'api_key_id', 'model'];
const usage = (report: string, groupBy: readonly string[]): OpenaiReport => ({
  report,
  feed: 'usage',
  path: `/v1/organization/usage/${report}`,
  groupBy,
  bucketsMax: { '1d': 31, '1h': 168 },
});

const REPORTS: readonly OpenaiReport[] = [
  {
    report: 'costs',
    feed: 'cost',
    path: '/v1/organization/costs',
    groupBy: ['project_id', 'line_item', 'api_key_id'],
    bucketsMax: { '1d': 180 },
  },
  usage('completions', [...KEYED, 'batch', 'service_tier']),
  usage('embeddings', KEYED),
  usage('moderations', KEYED),
  usage('images', KEYED),
  usage('audio_speeches', KEYED),
  usage('audio_transcriptions', KEYED),
  usage('web_search_calls', KEYED),
  usage('file_search_calls', ['project_id', 'api_key_id']),
  usage('vector_stores', ['project_id']),
  usage('code_interpreter_sessions', ['project_id']),
];

/** OpenAI documents no rate for its reports: at most two requests a second, far below any observed limit. */
export const OPENAI_REQUEST_GAP_MS = 500;
/** Days of costs that are searched for the organization's id. */
const IDENTIFY_DAYS = 90n;

const FACTS: ConnectorFacts = {
  credentialNames: ['admin_key'],
  provisionalDays: 2,
  // Two days are provisional; the hours of a week fit on one page, so a week costs no more requests than two days.
  revisableDays: 7,
  pollIntervalSeconds: 3_600,
  requestGapMs: OPENAI_REQUEST_GAP_MS,
};

/** OpenAI's costs and usage reports of an organization, as its API documents them (docs/connectors.md). */
export class OpenaiConnector implements BillingConnector {
  readonly provider = 'openai' as const;
  readonly facts = FACTS;
  readonly #client: ProviderClient;
  readonly #nowMicros: () => bigint;

  constructor(options: ConnectorOptions) {
    this.#nowMicros = options.nowMicros;
    this.#client = new ProviderClient({
      requestGapMs: OPENAI_REQUEST_GAP_MS,
      ...options,
      words: WORDS,
      authorize: (access) => ({ authorization: `Bearer ${adminKeyOf(access, WORDS)}` }),
    });
  }

  plan(window: { fromDay: string; toDay: string }, nowMicros: bigint): ReportChunk[] {
    return planChunks(REPORTS, window, nowMicros);
  }

  /**
   * OpenAI has no request for a key's organization. Cost results of some organizations name it in `organization_id`.
   * Every answer has the organization's short name in a header, which is not an id.
   */
  async identify(access: ProviderAccess): Promise<{ accountId: string | null; name: string | null }> {
    const endMicros = startOfDay(this.#nowMicros()) + MICROS_PER_DAY;
    const startMicros = endMicros - IDENTIFY_DAYS * MICROS_PER_DAY;
    const chunk: ReportChunk = { report: 'costs', feed: 'cost', bucketWidth: '1d', startMicros, endMicros };
    const { headers, body } = await askInPages(Number(IDENTIFY_DAYS), null, async (limit) => ({
      ...(await this.#ask(access, chunk, null, limit)),
      nextCursor: null,
    }));
    readOpenaiEnvelope(body, null);
    const accountId = ORGANIZATION_ID.exec(body.toString('utf8'))?.[1] ?? null;
    return { accountId, name: accountOf(headers.get('openai-organization')) };
  }

  test(access: ProviderAccess): Promise<ConnectorCheck[]> {
    const endMicros = startOfDay(this.#nowMicros());
    const startMicros = endMicros - MICROS_PER_DAY;
    const ask = async (report: string) => {
      const feed = report === 'costs' ? 'cost' : 'usage';
      const chunk: ReportChunk = { report, feed, bucketWidth: '1d', startMicros, endMicros };
      readOpenaiEnvelope((await this.#ask(access, chunk, null, 1)).body, null);
      return `the report ${report} of ${dayOf(startMicros)} can be read`;
    };
    return runChecks([
      { name: 'costs', run: () => ask('costs') },
      { name: 'usage', run: () => ask('completions') },
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
        providerRequestId: answer.headers.get('x-request-id'),
        ...readOpenaiEnvelope(answer.body, token),
      };
    });
  }

  #ask(access: ProviderAccess, chunk: ReportChunk, cursor: string | null, limit: number) {
    const { path, groupBy, report } = reportOf(chunk);
    const projects = access.settings.scope?.projects ?? [];
    return this.#client.ask(access, {
      path,
      report,
      query: {
        start_time: String(chunk.startMicros / 1_000_000n),
        end_time: String(chunk.endMicros / 1_000_000n),
        bucket_width: chunk.bucketWidth,
        group_by: groupBy,
        ...(projects.length > 0 ? { project_ids: projects } : {}),
        limit: String(limit),
        ...(cursor === null ? {} : { page: cursor }),
      },
    });
  }
}

const ORGANIZATION_ID = /"organization_id"\s*:\s*"([^"\\]{1,256})"/;

function accountOf(header: string | null): string | null {
  return header !== null && /^[\x20-\x7e]{1,256}$/.test(header) ? header : null;
}

function reportOf(chunk: ReportChunk): OpenaiReport {
  const found = REPORTS.find(({ report }) => report === chunk.report);
  if (!found) throw new RangeError(`OpenAI has no report ${chunk.report}`);
  return found;
}
