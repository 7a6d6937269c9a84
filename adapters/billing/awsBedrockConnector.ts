import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { z } from 'zod';
import { CHARGE_CATEGORIES, type ChargeCategory } from '../../domain/billing/billedRow.js';
import { AWS_RECORD_TYPES } from '../../domain/billing/formats/awsCur.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf, MICROS_PER_DAY, microsOfDay, startOfDay } from '../../domain/period.js';
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
} from './connector.js';
import { readEnvelope } from './pageRows.js';
import { type ProviderAnswer, ProviderClient, type ProviderTerms, runChecks } from './providerClient.js';

/** The service's errors, which all have status 400, by the HTTP status of the same meaning. */
const STATUS_OF_ERROR: Readonly<Record<string, number | 'page'>> = {
  AccessDeniedException: 403,
  NotAuthorizedException: 403,
  OptInRequired: 403,
  ExpiredTokenException: 401,
  IncompleteSignatureException: 401,
  InvalidClientTokenId: 401,
  InvalidSignatureException: 401,
  MissingAuthenticationTokenException: 401,
  SignatureDoesNotMatch: 401,
  UnrecognizedClientException: 401,
  LimitExceededException: 429,
  ThrottlingException: 429,
  TooManyRequestsException: 429,
  DataUnavailableException: 503,
  InternalServerError: 500,
  ServiceUnavailableException: 503,
  InvalidNextTokenException: 'page',
  RequestChangedException: 'page',
};

const WORDS: ProviderTerms = {
  name: 'AWS',
  subject: 'the access key',
  remedy:
    'give its user or role the permissions ce:GetCostAndUsage and ce:GetDimensionValues (IAM), and open Cost Explorer once in the management account’s console',
  baseUrlSetting: 'AWS_COST_EXPLORER_ENDPOINT',
  statusOf: (_status, text) => STATUS_OF_ERROR[/"__type"\s*:\s*"(?:[^"#]*#)?(\w+)/.exec(text)?.[1] ?? ''],
};

/** Every page of an answer costs one cent, so a chunk is as long as a backfill. */
const DAYS_MAX = 93;
const REPORTS: readonly ReportFacts[] = [
  { report: 'cost_and_usage', feed: 'cost', bucketsMax: { '1d': DAYS_MAX } },
];
/** Cost Explorer covers the current month and the thirteen before it; this number of days never exceeds that. */
const HISTORY_DAYS = 395n;
export const AWS_REQUEST_GAP_MS = 500;

const FACTS: ConnectorFacts = {
  credentialNames: ['access_key_id', 'secret_access_key'],
  optionalCredentialNames: ['session_token'],
  // A month's bill is final some days after its end; answers mark this themselves (`Estimated`).
  provisionalDays: 36,
  revisableDays: 36,
  // AWS recalculates the figures up to three times a day.
  pollIntervalSeconds: 8 * 3_600,
  requestGapMs: AWS_REQUEST_GAP_MS,
};

/** Services that are requested even if the account has not used them recently. */
const OWN_SERVICES = ['Amazon Bedrock', 'Amazon Bedrock Service'];
/** Time for which a list of services is cached, microseconds: a new seller's model appears with the next list. */
const SERVICES_MICROS = 12n * 3_600_000_000n;
const SERVICES_KEPT_MAX = 200;
const SEARCHED_DAYS = 92n;

/**
 * Queries of a chunk, one after the other, since an answer does not show its record type and may have at most two
 * groups: usage of Bedrock by usage type and account, usage of sellers' models by product and usage type, then each
 * other category.
 */
const STEPS = ['usage', 'editions', ...CHARGE_CATEGORIES.filter((category) => category !== 'usage')] as const;
type Step = (typeof STEPS)[number];

const categoryOfStep = (step: Step): ChargeCategory => (step === 'editions' ? 'usage' : step);

/** Position of a page: its query, AWS's token, and the last day in the query's pages so far. */
interface Cursor {
  step: Step;
  toldDay: string;
  token: string | null;
}

/** AWS's own costs of Amazon Bedrock, by Cost Explorer (docs/connectors.md). */
export class AwsBedrockConnector implements BillingConnector {
  readonly provider = 'aws_bedrock' as const;
  readonly facts = FACTS;
  readonly #client: ProviderClient;
  readonly #nowMicros: () => bigint;
  readonly #services = new Map<string, { names: readonly string[]; untilMicros: bigint }>();

  constructor(options: ConnectorOptions) {
    this.#nowMicros = options.nowMicros;
    this.#client = new ProviderClient({
      requestGapMs: AWS_REQUEST_GAP_MS,
      ...options,
      words: WORDS,
      authorize: (access, { method, url, body, headers }) =>
        signAws(
          { method, url, body, headers },
          credentialsOf(access),
          { region: regionOf(url, access), service: 'ce' },
          options.nowMicros(),
        ),
    });
  }

  plan(window: { fromDay: string; toDay: string }, nowMicros: bigint): ReportChunk[] {
    const oldest = dayOf(startOfDay(nowMicros) - HISTORY_DAYS * MICROS_PER_DAY);
    const fromDay = window.fromDay < oldest ? oldest : window.fromDay;
    return fromDay < window.toDay ? planChunks(REPORTS, { ...window, fromDay }, nowMicros) : [];
  }

  /** The account, if the key shows only one account's costs; a management account with members shows several. */
  async identify(access: ProviderAccess): Promise<{ accountId: string | null; name: string | null }> {
    const accounts = await this.#dimension(access, 'LINKED_ACCOUNT');
    const [only, more] = accounts;
    return { accountId: more === undefined ? (only ?? null) : null, name: null };
  }

  test(access: ProviderAccess): Promise<ConnectorCheck[]> {
    const endMicros = startOfDay(this.#nowMicros());
    const startMicros = endMicros - MICROS_PER_DAY;
    const chunk: ReportChunk = {
      report: 'cost_and_usage',
      feed: 'cost',
      bucketWidth: '1d',
      startMicros,
      endMicros,
    };
    return runChecks([
      {
        name: 'accounts',
        run: async () => `the costs of ${(await this.#dimension(access, 'LINKED_ACCOUNT')).length} accounts`,
      },
      {
        name: 'costs',
        run: async () => {
          await this.fetchPage(access, chunk, null);
          return `the costs of ${dayOf(startMicros)} can be read`;
        },
      },
    ]);
  }

  askedFor(cursor: string | null): ChargeCategory {
    return categoryOfStep(cursorOf(cursor).step);
  }

  async fetchPage(access: ProviderAccess, chunk: ReportChunk, text: string | null): Promise<FetchedPage> {
    const cursor = cursorOf(text);
    const services = await this.#servicesOf(access);
    const answer = await this.#ask(access, 'GetCostAndUsage', {
      ...costQuery(cursor.step, chunk, services, access),
      ...(cursor.token === null ? {} : { NextPageToken: cursor.token }),
    });
    const { buckets, token } = readCosts(answer.body);
    if (token !== null && token === cursor.token)
      throw new DomainError(
        'provider_paging_changed',
        'AWS named the page that was asked for as the next one; the chunk is fetched from its beginning',
      );
    // A day whose groups continue on the next page is in both pages; every other query repeats the same days.
    const lastMicros = cursor.toldDay === '' ? -1n : microsOfDay(cursor.toldDay);
    const fresh = cursor.step === 'usage' ? buckets.filter((bucket) => bucket.startMicros > lastMicros) : [];
    const last = buckets.at(-1)?.startMicros ?? lastMicros;
    return {
      requestPath: `${answer.requestPath} GetCostAndUsage ${cursor.step}`,
      status: answer.status,
      body: answer.body,
      fetchedAtMicros: answer.fetchedAtMicros,
      providerRequestId: answer.headers.get('x-amzn-requestid'),
      nextCursor: nextCursorOf(cursor, token, last < 0n ? '' : dayOf(last), services),
      buckets: fresh,
    };
  }

  /** The names of Bedrock's services on this account's bills, including the sellers' services. */
  async #servicesOf(access: ProviderAccess): Promise<readonly string[]> {
    const key = createHash('sha256')
      .update(JSON.stringify([access.credentials.access_key_id, access.settings.scope?.accounts ?? []]))
      .digest('hex');
    const known = this.#services.get(key);
    if (known && known.untilMicros > this.#nowMicros()) return known.names;
    const found = await this.#dimension(access, 'SERVICE', 'Bedrock');
    const names = [
      ...new Set([...OWN_SERVICES, ...found.filter((name) => /\bBedrock\b/i.test(name))]),
    ].sort();
    if (this.#services.size >= SERVICES_KEPT_MAX) this.#services.clear();
    this.#services.set(key, { names, untilMicros: this.#nowMicros() + SERVICES_MICROS });
    return names;
  }

  async #dimension(access: ProviderAccess, dimension: string, search?: string): Promise<string[]> {
    const endMicros = startOfDay(this.#nowMicros()) + MICROS_PER_DAY;
    const answer = await this.#ask(access, 'GetDimensionValues', {
      TimePeriod: periodOf(endMicros - SEARCHED_DAYS * MICROS_PER_DAY, endMicros),
      Dimension: dimension,
      Context: 'COST_AND_USAGE',
      ...(search === undefined ? {} : { SearchString: search }),
    });
    return readDimensionValues(answer.body);
  }

  #ask(access: ProviderAccess, action: string, body: object): Promise<ProviderAnswer> {
    return this.#client.ask(access, {
      path: '/',
      query: {},
      report: action,
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/x-amz-json-1.1',
        'x-amz-target': `AWSInsightsIndexService.${action}`,
      },
      hasCursor: 'NextPageToken' in body,
    });
  }
}

/** Cost Explorer has one address, whose region every signature names; a configured address may replace it. */
function regionOf(url: URL, { settings }: ProviderAccess): string {
  const ofHost = /^ce\.([a-z]{2}(?:-[a-z]+)+-\d)\./.exec(url.hostname)?.[1];
  return ofHost ?? settings.region ?? 'us-east-1';
}

const CURSOR = /^([a-z]+)\|(\d{4}-\d\d-\d\d)?\|(.*)$/s;

function cursorOf(text: string | null): Cursor {
  if (text === null) return { step: STEPS[0], toldDay: '', token: null };
  const [, name, toldDay = '', token = ''] = CURSOR.exec(text) ?? [];
  const step = STEPS.find((known) => known === name);
  if (!step) throw new RangeError('the cursor is none of this connector');
  return { step, toldDay, token: token === '' ? null : token };
}

/** The query's next page, else the first page of the next query; null after the last. */
function nextCursorOf(
  { step }: Cursor,
  token: string | null,
  lastDay: string,
  services: readonly string[],
): string | null {
  if (token !== null) return `${step}|${lastDay}|${token}`;
  const next = STEPS.slice(STEPS.indexOf(step) + 1).find(
    (known) => known !== 'editions' || services.some((name) => !OWN_SERVICES.includes(name)),
  );
  return next === undefined ? null : `${next}||`;
}

/** One query of GetCostAndUsage: a category's record types, at most two groups. */
function costQuery(
  step: Step,
  chunk: ReportChunk,
  services: readonly string[],
  access: ProviderAccess,
): object {
  const own = services.filter((name) => OWN_SERVICES.includes(name));
  const sellers = services.filter((name) => !OWN_SERVICES.includes(name));
  const groups =
    step === 'editions'
      ? ['SERVICE', 'USAGE_TYPE']
      : step === 'usage'
        ? ['USAGE_TYPE', 'LINKED_ACCOUNT']
        : ['SERVICE', 'LINKED_ACCOUNT'];
  const accounts = access.settings.scope?.accounts ?? [];
  const filters = [
    among('SERVICE', step === 'usage' ? own : step === 'editions' ? sellers : services),
    ofCategory(categoryOfStep(step)),
    ...(accounts.length > 0 ? [among('LINKED_ACCOUNT', accounts)] : []),
  ];
  return {
    TimePeriod: periodOf(chunk.startMicros, chunk.endMicros),
    Granularity: 'DAILY',
    Metrics: ['UnblendedCost', 'NetUnblendedCost', 'UsageQuantity'],
    GroupBy: groups.map((Key) => ({ Type: 'DIMENSION', Key })),
    Filter: { And: filters },
  };
}

function among(Key: string, Values: readonly string[]): object {
  return { Dimensions: { Key, Values } };
}

/** Adjustments are all record types of no other category, so that a new record type of AWS is not left out. */
function ofCategory(category: ChargeCategory): object {
  if (category !== 'adjustment') return among('RECORD_TYPE', AWS_RECORD_TYPES[category]);
  const others = CHARGE_CATEGORIES.filter((other) => other !== category);
  return {
    Not: among(
      'RECORD_TYPE',
      others.flatMap((other) => AWS_RECORD_TYPES[other]),
    ),
  };
}

function periodOf(startMicros: bigint, endMicros: bigint): { Start: string; End: string } {
  return { Start: dayOf(startMicros), End: dayOf(endMicros) };
}

/** Throws credentials_refused where a part is missing or has characters that no key has. */
function credentialsOf({ credentials }: ProviderAccess): AwsCredentials {
  const { access_key_id: id = '', secret_access_key: secret = '', session_token: token } = credentials;
  const parts: [string, string, RegExp][] = [
    ['access_key_id', id, /^[A-Z0-9]{16,128}$/],
    ['secret_access_key', secret, /^[\x21-\x7e]{16,512}$/],
    ['session_token', token ?? 'A'.repeat(16), /^[\x21-\x7e]{16,4096}$/],
  ];
  for (const [name, value, pattern] of parts) {
    if (pattern.test(value)) continue;
    const fault = value === '' ? 'is missing' : 'is not one of AWS’s';
    throw new DomainError('credentials_refused', `the credential ${name} ${fault}; ${WORDS.remedy}`);
  }
  return {
    accessKeyId: id,
    secretAccessKey: secret,
    ...(token === undefined ? {} : { sessionToken: token }),
  };
}

const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);
const token = z.string().min(1).max(8_192).nullish();

const costs = z.object({
  ResultsByTime: z.array(z.object({ TimePeriod: z.object({ Start: day, End: day }) })).max(400),
  NextPageToken: token,
});

const dimensions = z.object({
  DimensionValues: z.array(z.object({ Value: z.string().max(1_024) })).max(10_000),
  NextPageToken: token,
});

/** The days and the next page of an answer of GetCostAndUsage. Error provider_answer_unreadable. */
export function readCosts(body: Buffer): { buckets: BucketTimes[]; token: string | null } {
  const page = readEnvelope(costs, body, 'AWS');
  const buckets = page.ResultsByTime.map(({ TimePeriod }) => ({
    startMicros: microsOfDay(TimePeriod.Start),
    endMicros: microsOfDay(TimePeriod.End),
  }));
  return { buckets, token: page.NextPageToken ?? null };
}

/** The values of an answer of GetDimensionValues. Error provider_answer_unreadable. */
export function readDimensionValues(body: Buffer): string[] {
  return readEnvelope(dimensions, body, 'AWS').DimensionValues.map(({ Value }) => Value);
}

/** Keys that sign a request: AWS's long-term keys, or temporary ones with their token. */
export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

export interface RequestToSign {
  method: string;
  url: URL;
  /** Lower-case names; all of them are signed, with `host` and the time. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

/**
 * The authentication headers of AWS Signature Version 4: `authorization`, `x-amz-date` and, with temporary credentials,
 * `x-amz-security-token`.
 */
export async function signAws(
  { method, url, headers, body }: RequestToSign,
  credentials: AwsCredentials,
  of: { region: string; service: string },
  nowMicros: bigint,
): Promise<Record<string, string>> {
  // Loaded on demand, only by processes that fetch from AWS.
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const signer = new SignatureV4({ ...of, credentials, sha256: Sha256, applyChecksum: false });
  const signed = await signer.sign(
    {
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: { ...headers, host: url.host },
      body,
    },
    {
      signingDate: new Date(Number(nowMicros / 1_000n)),
      // The signer otherwise omits some headers, such as user-agent.
      signableHeaders: new Set(Object.keys(headers)),
    },
  );
  return Object.fromEntries(Object.entries(signed.headers).filter(([name]) => PROOF_HEADERS.has(name)));
}

const PROOF_HEADERS = new Set(['authorization', 'x-amz-date', 'x-amz-security-token']);

/** SHA-256, or HMAC-SHA-256 with a secret, in the signer's interface. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash =
      secret === undefined
        ? createHash('sha256')
        : createHmac('sha256', secret as string | NodeJS.ArrayBufferView);
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}
