/**
 * Fetching a provider's bill: one interface, with a connector for each provider. A connector sends requests and
 * returns the answers unchanged. The reader of saved files reads rows from the stored bytes, so that fetched pages and
 * pages saved by hand are read by the same code.
 */

import type { ChargeCategory, Feed } from '../../domain/billing/billedRow.js';
import type { ConnectionSettings } from '../../domain/billing/connections.js';
import { MICROS_PER_DAY, microsOfDay, startOfDay } from '../../domain/period.js';

export type { ConnectionSettings } from '../../domain/billing/connections.js';

/** The providers whose bills can be fetched. */
export const CONNECTED_PROVIDERS = ['openai', 'anthropic', 'azure_openai', 'aws_bedrock'] as const;
export type ConnectedProvider = (typeof CONNECTED_PROVIDERS)[number];

/** Facts about a provider's reports: when they settle and how often to fetch them. */
export interface ConnectorFacts {
  /** Required names in `credentials`, e.g. `admin_key`. */
  credentialNames: readonly string[];
  /** Optional names in `credentials`, e.g. `session_token`. */
  optionalCredentialNames?: readonly string[];
  /** The longest time in which a day is provisional, in days from its beginning: such days are fetched at every sync. */
  provisionalDays: number;
  /** Days back that the provider may still restate: fetched again once a day. */
  revisableDays: number;
  /** Seconds between two scheduled syncs. */
  pollIntervalSeconds: number;
  /** Milliseconds between two requests of one connection during a backfill. */
  requestGapMs: number;
}

/** One series of requests: a report over a half-open span that fits on one page of the provider. */
export interface ReportChunk {
  /** The last part of the report's path: `costs`, `completions`, `cost_report`, `messages`, … */
  report: string;
  feed: Feed;
  bucketWidth: '1d' | '1h';
  startMicros: bigint;
  endMicros: bigint;
}

export interface ProviderAccess {
  credentials: Readonly<Record<string, string>>;
  settings: ConnectionSettings;
  signal: AbortSignal;
}

/** The half-open times of one bucket, microseconds. */
export interface BucketTimes {
  startMicros: bigint;
  endMicros: bigint;
}

/** One answer of the provider. `body` is verbatim: amounts are read only from these bytes. */
export interface FetchedPage {
  /** Path and query of the request, without secrets. */
  requestPath: string;
  status: number;
  body: Buffer;
  fetchedAtMicros: bigint;
  providerRequestId: string | null;
  /** null on the last page of a chunk. */
  nextCursor: string | null;
  buckets: BucketTimes[];
}

/** A requirement of a connection, and the remedy where it is missing. */
export interface ConnectorCheck {
  name: string;
  ok: boolean;
  detail: string;
}

/** A missing or impossible setting. */
export interface SettingsFault {
  /** E.g. `scope`. */
  field: string;
  message: string;
}

/**
 * Failures are DomainErrors. Temporary: provider_unavailable (outage, network, timeout; also a report that answers 404)
 * and provider_rate_limited (both may have retryAfterSeconds). Lasting until somebody acts: credentials_refused, whose
 * message names the permission and where to grant it, and provider_answer_unreadable. After provider_paging_changed the
 * chunk has to be fetched from its first page again.
 */
export interface BillingConnector {
  readonly provider: ConnectedProvider;
  readonly facts: ConnectorFacts;
  /**
   * The requests for a half-open window of UTC days (`YYYY-MM-DD`): every report, cut into chunks of at most one page
   * of the provider, costs first and the latest days first. Recent usage is requested by the hour.
   */
  plan(window: { fromDay: string; toDay: string }, nowMicros: bigint): ReportChunk[];
  /** The fault of the settings, if the provider needs any; the field is named from `settings` on. */
  settingsFault?(settings: ConnectionSettings): SettingsFault | undefined;
  /** The account, where the settings name it and the credentials do not. */
  accountOfSettings?(settings: ConnectionSettings): string | null;
  /** The account of the credentials; `accountId` null: the provider does not name it. */
  identify(access: ProviderAccess): Promise<{ accountId: string | null; name: string | null }>;
  /**
   * One check for each requirement. Throws only temporary failures, so that an outage is not reported as a missing
   * permission.
   */
  test(access: ProviderAccess): Promise<ConnectorCheck[]>;
  /** The charge category of the page that `cursor` requests, where its answer does not contain it. */
  askedFor?(cursor: string | null): ChargeCategory;
  /** One page of a chunk; `cursor` null: the first page. */
  fetchPage(access: ProviderAccess, chunk: ReportChunk, cursor: string | null): Promise<FetchedPage>;
}

/** Dependencies of a connector. */
export interface ConnectorOptions {
  /** The provider's address, from the configuration. */
  baseUrl: string;
  /** The present time, microseconds since 1970. */
  nowMicros(): bigint;
  /** Monotonic clock, milliseconds; keeps the gap between requests. */
  nowMs(): number;
  /** Replaces the provider's gap; shorter in tests. */
  requestGapMs?: number;
  deadlineMs?: number;
  pageBytesMax?: number;
}

/** One report of a provider: its width and the most buckets of one page. */
export interface ReportFacts {
  report: string;
  feed: Feed;
  /** Most buckets of one page by width; a report without `1h` has days only. */
  bucketsMax: { '1d': number; '1h'?: number };
}

const MICROS_PER_HOUR = MICROS_PER_DAY / 24n;
/** Days before today whose usage is requested by the hour; older usage is requested by the day. */
export const HOURLY_DAYS = 31n;

/**
 * Chunks of every report for the half-open window of UTC days, each at most one page: reports in the given order,
 * latest days first within each, so that the days that people look at first arrive first.
 */
export function planChunks(
  reports: readonly ReportFacts[],
  window: { fromDay: string; toDay: string },
  nowMicros: bigint,
): ReportChunk[] {
  const from = microsOfDay(window.fromDay);
  const to = microsOfDay(window.toDay);
  const hourlyFrom = startOfDay(nowMicros) - HOURLY_DAYS * MICROS_PER_DAY;
  return reports.flatMap((facts) => {
    const hours = facts.bucketsMax['1h'];
    if (hours === undefined) return cut(facts, '1d', facts.bucketsMax['1d'], from, to);
    const border = hourlyFrom < from ? from : hourlyFrom > to ? to : hourlyFrom;
    return [
      ...cut(facts, '1h', hours, border, to),
      ...cut(facts, '1d', facts.bucketsMax['1d'], from, border),
    ];
  });
}

function cut(
  { report, feed }: ReportFacts,
  bucketWidth: '1d' | '1h',
  bucketsMax: number,
  from: bigint,
  to: bigint,
): ReportChunk[] {
  const widthMicros = bucketWidth === '1d' ? MICROS_PER_DAY : MICROS_PER_HOUR;
  const spanMicros = BigInt(bucketsMax) * widthMicros;
  const chunks: ReportChunk[] = [];
  for (let endMicros = to; endMicros > from; endMicros -= spanMicros) {
    const startMicros = endMicros - spanMicros < from ? from : endMicros - spanMicros;
    chunks.push({ report, feed, bucketWidth, startMicros, endMicros });
  }
  return chunks;
}
