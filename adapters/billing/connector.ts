/**
 * How a provider's bill is fetched: one interface, a connector for each provider. A connector asks and hands on the
 * answer as it came; rows are read from the stored bytes by the reader of saved files, so that a page that was
 * fetched and one that was saved by hand are read by the same code.
 */

import type { ChargeCategory, Feed } from '../../domain/billing/billedRow.js';
import type { ConnectionSettings } from '../../domain/billing/connections.js';
import { MICROS_PER_DAY, microsOfDay, startOfDay } from '../../domain/period.js';

export type { ConnectionSettings } from '../../domain/billing/connections.js';

/** The providers whose bills can be fetched. */
export const CONNECTED_PROVIDERS = ['openai', 'anthropic', 'azure_openai', 'aws_bedrock'] as const;
export type ConnectedProvider = (typeof CONNECTED_PROVIDERS)[number];

/** What is known of a provider's reports as data: when they settle and how often to ask. */
export interface ConnectorFacts {
  /** The names that `credentials` must have, e.g. `admin_key`. */
  credentialNames: readonly string[];
  /** Names that `credentials` may have besides, e.g. `session_token`. */
  optionalCredentialNames?: readonly string[];
  /** A day fetched within so many days of its beginning is provisional. */
  provisionalDays: number;
  /** Days back that the provider may still restate: asked for again once a day. */
  revisableDays: number;
  /** Between two scheduled syncs. */
  pollIntervalSeconds: number;
  /** Between two requests of one connection while a backfill runs. */
  requestGapMs: number;
}

/** One request series: a report over a half-open span that one page of the provider can hold. */
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

/** One answer of the provider. `body` is verbatim: amounts are read from these bytes and from nothing else. */
export interface FetchedPage {
  /** Path and query as asked, without any secret. */
  requestPath: string;
  status: number;
  body: Buffer;
  fetchedAtMicros: bigint;
  providerRequestId: string | null;
  /** Null on the last page of a chunk. */
  nextCursor: string | null;
  buckets: BucketTimes[];
}

/** One thing that a connection needs, and what to do where it is missing. */
export interface ConnectorCheck {
  name: string;
  ok: boolean;
  detail: string;
}

/** A setting that is missing or cannot be. */
export interface SettingsFault {
  /** E.g. `scope`. */
  field: string;
  message: string;
}

/**
 * Failures are DomainErrors. Passing: provider_unavailable (outage, network, time over; also a report that answers
 * 404) and provider_rate_limited (both may say retryAfterSeconds). Lasting until somebody acts: credentials_refused,
 * whose sentence names the permission and where to grant it, and provider_answer_unreadable. provider_paging_changed
 * means that the chunk has to be fetched from its first page again.
 */
export interface BillingConnector {
  readonly provider: ConnectedProvider;
  readonly facts: ConnectorFacts;
  /**
   * What to ask for a half-open window of UTC days (`YYYY-MM-DD`): every report, cut into chunks of at most one page
   * of the provider, costs first and the latest days first. Usage is asked by the hour where it is recent.
   */
  plan(window: { fromDay: string; toDay: string }, nowMicros: bigint): ReportChunk[];
  /** What is wrong with settings, where the provider needs some; the field is named from `settings` on. */
  settingsFault?(settings: ConnectionSettings): SettingsFault | undefined;
  /** The account, where the settings say it and the credentials do not. */
  accountOfSettings?(settings: ConnectionSettings): string | null;
  /** The account that the credentials belong to; `accountId` null where the provider does not name it. */
  identify(access: ProviderAccess): Promise<{ accountId: string | null; name: string | null }>;
  /** One check for each thing that is needed. Throws only what is passing, so that "not now" is not read as "no". */
  test(access: ProviderAccess): Promise<ConnectorCheck[]>;
  /** What the page that `cursor` asks for is of, where its answer does not say it. */
  askedFor?(cursor: string | null): ChargeCategory;
  /** One page of a chunk; `cursor` null asks for the first. */
  fetchPage(access: ProviderAccess, chunk: ReportChunk, cursor: string | null): Promise<FetchedPage>;
}

/** What a connector needs of the process. */
export interface ConnectorOptions {
  /** Where the provider is asked, from the configuration. */
  baseUrl: string;
  /** The time now, microseconds since 1970. */
  nowMicros(): bigint;
  /** Milliseconds of a clock that never goes back; keeps the gap between requests. */
  nowMs(): number;
  /** Another gap than the provider's own; shorter in tests. */
  requestGapMs?: number;
  deadlineMs?: number;
  pageBytesMax?: number;
}

/** One report of a provider: its width and how many buckets one page holds at most. */
export interface ReportFacts {
  report: string;
  feed: Feed;
  /** Buckets of one page by width; a report without `1h` has days only. */
  bucketsMax: { '1d': number; '1h'?: number };
}

const MICROS_PER_HOUR = MICROS_PER_DAY / 24n;
/** Usage of the days that began so many days before today is asked by the hour, of older ones by the day. */
export const HOURLY_DAYS = 31n;

/**
 * Chunks of every report for the half-open window of UTC days, each at most one page: reports in the order given, in
 * each the latest days first, so that what is looked at first is there first.
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
