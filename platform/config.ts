import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { z } from 'zod';
import type { RateSetting } from './limitSettings.js';
import type { PriceFeed } from './priceFeeds.js';
import { PROJECT_ROOT } from './projectRoot.js';
import { SETTING_NAMES, SETTINGS, type SettingName } from './settings.js';
import { isPostgresUrl, readRoleMap, readSender } from './settingValues.js';
import { StartError } from './startError.js';

/** Within DATA_DIR. */
const BLOB_FOLDER = 'blobs';

const environmentSchema = z.object(
  Object.fromEntries(SETTING_NAMES.map((name) => [name, SETTINGS[name].schema])) as {
    [N in SettingName]: (typeof SETTINGS)[N]['schema'];
  },
);

/** The settings as the processes use them: read once at start, frozen. */
export interface Config {
  readonly port: number;
  readonly host: string;
  /** Processes that serve the API. */
  readonly apiProcesses: number;
  /** `BASE_URL` without a trailing slash; undefined: localhost at the port. */
  readonly baseUrl: string | undefined;
  /** The service that commands over HTTP use, without a trailing slash. */
  readonly serviceUrl: string;
  /** Their key; undefined: none is set. */
  readonly serviceKey: string | undefined;
  /** Whether the API is reachable from this machine only. */
  readonly isLoopback: boolean;
  /** Absolute path. */
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  readonly databaseDirectUrl: string | undefined;
  readonly temporalAddress: string | undefined;
  readonly temporalNamespace: string;
  readonly temporalCliPath: string | undefined;
  readonly initOrgName: string;
  readonly initAdminKey: string | undefined;
  /** The secret key or keys as set; undefined: none is set, or a file holds them. */
  readonly secretKey: string | undefined;
  /** The file of the secret keys: read again when it changes. */
  readonly secretKeyFile: string | undefined;
  /** Load the demo unless it exists. */
  readonly demo: boolean;
  readonly ingestMaxBodyBytes: number;
  readonly metricsToken: string | undefined;
  /** undefined: the process chooses (info; warn on a terminal). */
  readonly logLevel: string | undefined;
  readonly rateLimits: boolean;
  /** Limits while `rateLimits` is on; docs/limits.md describes them. */
  readonly limits: LimitSettings;
  /** Addresses and networks whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[];
  readonly eventRetentionDays: number | undefined;
  readonly payloadRetentionDays: number;
  readonly auditRetentionDays: number;
  /** Absolute path. */
  readonly auditAnchorDir: string;
  /** Storage of uploaded files. */
  readonly blobs: FileBlobSettings | S3Settings;
  readonly invoices: InvoiceSettings;
  readonly openaiAdminBaseUrl: string;
  readonly anthropicAdminBaseUrl: string;
  readonly azureManagementBaseUrl: string;
  readonly azureLoginBaseUrl: string;
  readonly awsCostExplorerEndpoint: string;
  /** Origins whose pages may call the API from a browser. */
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly hstsMaxAgeSeconds: number;
  /** `host` or `host:port`, as a URL writes them. */
  readonly outboundAllowedHosts: readonly string[];
  /** Files with prices that are fetched daily. */
  readonly priceFeeds: readonly PriceFeed[];
  /** The mail server and the sender; undefined: no mails. */
  readonly mail: MailSettings | undefined;
  /** The identity provider; undefined: people sign in with keys and links. */
  readonly identity: IdentityProviderSettings | undefined;
  /** Folder for files that are created once per machine: `${XDG_CACHE_HOME:-~/.cache}/trueup`. */
  readonly cacheDir: string;
}

export interface MailSettings {
  readonly url: string;
  readonly from: { readonly name: string; readonly address: string };
}

export interface IdentityProviderSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Id or name; undefined: the first one. */
  readonly organization: string | undefined;
  readonly roleClaim: string;
  readonly roles: NonNullable<ReturnType<typeof readRoleMap>>;
}

export interface InvoiceSettings {
  /** Engines that read a page, in order of preference. */
  readonly engines: readonly ('text' | 'tesseract' | 'document_ai')[];
  /** `bundled`, or a path; undefined: on PATH, else bundled. */
  readonly tesseract: string | undefined;
  readonly documentAi:
    | {
        readonly processor: string;
        readonly endpoint: string | undefined;
        readonly transport: 'grpc' | 'rest';
        readonly bucket: string | undefined;
        /** Absolute path. */
        readonly credentials: string | undefined;
      }
    | undefined;
}

export interface FileBlobSettings {
  readonly store: 'file';
  /** Absolute path. */
  readonly folder: string;
}

export interface S3Settings {
  readonly store: 's3';
  /** undefined: AWS. */
  readonly endpoint: string | undefined;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface LimitSettings {
  readonly reads: RateSetting;
  readonly writes: RateSetting;
  readonly ingest: RateSetting;
  readonly ingestItems: RateSetting;
  readonly runs: RateSetting;
  readonly imports: RateSetting;
  readonly invoices: RateSetting;
  readonly publicRequests: RateSetting;
  readonly failedAuthentication: RateSetting;
  readonly openRunsMax: number;
  readonly openImportsMax: number;
  readonly openInvoicesMax: number;
  readonly openExportsMax: number;
}

export interface Environment {
  XDG_CACHE_HOME?: string | undefined;
  [name: string]: string | undefined;
}

/**
 * Parses the settings of `environment`. An empty value counts as absent.
 * @throws StartError with one sentence for each wrong setting, naming it and the remedy.
 */
export function parseConfig(environment: Environment, workingFolder = process.cwd()): Config {
  const given = collectSettings(environment);
  const parsed = environmentSchema.safeParse(given);
  if (!parsed.success) {
    const wrong = [...new Set(parsed.error.issues.map((issue) => String(issue.path[0]) as SettingName))];
    throw new StartError(
      wrong
        .map((name) => `${name} is ${shownValue(name, given[name])}: ${SETTINGS[name].remedy}.`)
        .join('\n'),
    );
  }
  const values = parsed.data;
  return Object.freeze({
    port: values.PORT,
    host: values.HOST,
    apiProcesses: values.API_PROCESSES,
    baseUrl: values.BASE_URL,
    serviceUrl: values.TRUEUP_URL,
    serviceKey: values.TRUEUP_API_KEY,
    isLoopback: isLoopbackHost(values.HOST),
    dataDir: resolve(workingFolder, values.DATA_DIR),
    databaseUrl: values.DATABASE_URL,
    databaseDirectUrl: values.DATABASE_DIRECT_URL ?? values.DATABASE_URL,
    temporalAddress: values.TEMPORAL_ADDRESS,
    temporalNamespace: values.TEMPORAL_NAMESPACE,
    temporalCliPath: values.TEMPORAL_CLI_PATH,
    initOrgName: values.INIT_ORG_NAME,
    initAdminKey: values.INIT_ADMIN_KEY,
    secretKey: environment.TRUEUP_SECRET_KEY ? values.TRUEUP_SECRET_KEY : undefined,
    secretKeyFile: environment.TRUEUP_SECRET_KEY
      ? undefined
      : pathOrNothing(workingFolder, environment.TRUEUP_SECRET_KEY_FILE),
    demo: values.DEMO,
    ingestMaxBodyBytes: values.INGEST_MAX_BODY_BYTES,
    metricsToken: values.METRICS_TOKEN,
    logLevel: values.LOG_LEVEL,
    rateLimits: values.RATE_LIMITS,
    limits: Object.freeze({
      reads: values.RATE_LIMIT_READS,
      writes: values.RATE_LIMIT_WRITES,
      ingest: values.RATE_LIMIT_INGEST,
      ingestItems: values.RATE_LIMIT_INGEST_ITEMS,
      runs: values.RATE_LIMIT_RUNS,
      imports: values.RATE_LIMIT_IMPORTS,
      invoices: values.RATE_LIMIT_INVOICES,
      publicRequests: values.RATE_LIMIT_PUBLIC,
      failedAuthentication: values.RATE_LIMIT_FAILED_AUTH,
      openRunsMax: values.OPEN_RUNS_MAX,
      openImportsMax: values.OPEN_IMPORTS_MAX,
      openInvoicesMax: values.OPEN_INVOICES_MAX,
      openExportsMax: values.OPEN_EXPORTS_MAX,
    }),
    trustedProxies: values.TRUSTED_PROXIES ?? [],
    eventRetentionDays: values.EVENT_RETENTION_DAYS,
    payloadRetentionDays: values.PAYLOAD_RETENTION_DAYS,
    auditRetentionDays: values.AUDIT_RETENTION_DAYS,
    auditAnchorDir: resolve(workingFolder, values.AUDIT_ANCHOR_DIR ?? join(values.DATA_DIR, 'audit-anchors')),
    blobs: readBlobSettings(values, resolve(workingFolder, values.DATA_DIR, BLOB_FOLDER)),
    invoices: readInvoiceSettings(values, workingFolder),
    openaiAdminBaseUrl: values.OPENAI_ADMIN_BASE_URL,
    anthropicAdminBaseUrl: values.ANTHROPIC_ADMIN_BASE_URL,
    azureManagementBaseUrl: values.AZURE_MANAGEMENT_BASE_URL,
    azureLoginBaseUrl: values.AZURE_LOGIN_BASE_URL,
    awsCostExplorerEndpoint: values.AWS_COST_EXPLORER_ENDPOINT,
    allowedHosts: Object.freeze(values.ALLOWED_HOSTS),
    corsOrigins: Object.freeze(values.CORS_ORIGINS),
    hstsMaxAgeSeconds: values.HSTS_MAX_AGE_SECONDS,
    outboundAllowedHosts: Object.freeze(values.OUTBOUND_ALLOWED_HOSTS),
    priceFeeds: Object.freeze(values.PRICE_FEEDS),
    mail: readMailSettings(values),
    identity: readIdentitySettings(values),
    cacheDir: join(environment.XDG_CACHE_HOME || join(homedir(), '.cache'), 'trueup'),
  });
}

/** @throws StartError with a sentence for each missing setting that S3 requires. */
function readBlobSettings(
  values: z.infer<typeof environmentSchema>,
  folder: string,
): FileBlobSettings | S3Settings {
  if (values.BLOB_STORE === 'file') return { store: 'file', folder };
  const { S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = values;
  if (!S3_BUCKET || !S3_ACCESS_KEY_ID || !S3_SECRET_ACCESS_KEY) {
    const needed = ['S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const;
    const missing = needed.filter((name) => values[name] === undefined);
    throw new StartError(
      missing.map((name) => `${name} is missing, and BLOB_STORE is s3: ${SETTINGS[name].remedy}.`).join('\n'),
    );
  }
  return Object.freeze({
    store: 's3',
    endpoint: values.S3_ENDPOINT,
    bucket: S3_BUCKET,
    region: values.S3_REGION,
    accessKeyId: S3_ACCESS_KEY_ID,
    secretAccessKey: S3_SECRET_ACCESS_KEY,
  });
}

/** @throws StartError where a provider is set and something that it needs is not. */
function readIdentitySettings(
  values: z.infer<typeof environmentSchema>,
): IdentityProviderSettings | undefined {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = values;
  if (issuer === undefined) return undefined;
  const roles = values.OIDC_ROLE_MAP === undefined ? undefined : readRoleMap(values.OIDC_ROLE_MAP);
  if (clientId === undefined || clientSecret === undefined || roles === undefined) {
    const needed = ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_ROLE_MAP'] as const;
    throw new StartError(
      needed
        .filter((name) => values[name] === undefined)
        .map((name) => `${name} is missing, and OIDC_ISSUER is set: ${SETTINGS[name].remedy}.`)
        .join('\n'),
    );
  }
  const { OIDC_ORGANIZATION: organization, OIDC_ROLE_CLAIM: roleClaim } = values;
  return Object.freeze({ issuer, clientId, clientSecret, organization, roleClaim, roles });
}

/** @throws StartError where a mail server is set and no sender. */
function readMailSettings({
  SMTP_URL,
  MAIL_FROM,
}: z.infer<typeof environmentSchema>): MailSettings | undefined {
  if (SMTP_URL === undefined) return undefined;
  const from = MAIL_FROM === undefined ? undefined : readSender(MAIL_FROM);
  if (from === undefined)
    throw new StartError(`MAIL_FROM is missing, and SMTP_URL is set: ${SETTINGS.MAIL_FROM.remedy}.`);
  return Object.freeze({ url: SMTP_URL, from });
}

/** @throws StartError where Document AI should read invoices and no processor is set. */
function readInvoiceSettings(
  values: z.infer<typeof environmentSchema>,
  workingFolder: string,
): InvoiceSettings {
  const engines = values.INVOICE_ENGINES;
  const processor = values.DOCUMENT_AI_PROCESSOR;
  const needsProcessor = engines.includes('document_ai');
  if (needsProcessor && processor === undefined)
    throw new StartError(
      `DOCUMENT_AI_PROCESSOR is missing, and INVOICE_ENGINES has document_ai: ${SETTINGS.DOCUMENT_AI_PROCESSOR.remedy}.`,
    );
  return Object.freeze({
    engines: Object.freeze(engines),
    tesseract: values.TESSERACT_PATH,
    documentAi:
      needsProcessor && processor !== undefined
        ? Object.freeze({
            processor,
            endpoint: values.DOCUMENT_AI_ENDPOINT,
            transport: values.DOCUMENT_AI_TRANSPORT,
            bucket: values.DOCUMENT_AI_BUCKET,
            credentials: pathOrNothing(workingFolder, values.GOOGLE_APPLICATION_CREDENTIALS),
          })
        : undefined,
  });
}

/** The settings of this process, from its environment and the project's `.env`; the environment wins. */
export function loadConfig(): Config {
  return parseConfig(processEnvironment(), PROJECT_ROOT);
}

/**
 * This process's environment over the project's `.env`, with `overrides` over both: the environment of a child process.
 */
export function processEnvironment(overrides: Environment = {}): Environment {
  const file = join(PROJECT_ROOT, '.env');
  return { ...(existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {}), ...process.env, ...overrides };
}

/** Every setting that differs from its default, with masked secrets: for the log at start. */
export function describeConfig(environment: Environment): Record<string, string> {
  const given = collectSettings(environment);
  const shown: Record<string, string> = {};
  for (const name of SETTING_NAMES)
    if (given[name] !== undefined) shown[name] = shownValue(name, given[name]);
  return shown;
}

function collectSettings(environment: Environment): Partial<Record<SettingName, string>> {
  const given: Partial<Record<SettingName, string>> = {};
  for (const name of SETTING_NAMES) {
    const value =
      environment[name] || ('secret' in SETTINGS[name] ? readSecretFile(name, environment) : undefined);
    if (value) given[name] = value;
  }
  return given;
}

function readSecretFile(name: SettingName, environment: Environment): string | undefined {
  const path = environment[`${name}_FILE`];
  if (!path) return undefined;
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    throw new StartError(
      `${name}_FILE names ${path}, which cannot be read: give the path of a readable file.`,
    );
  }
}

function pathOrNothing(workingFolder: string, path: string | undefined): string | undefined {
  return path ? resolve(workingFolder, path) : undefined;
}

function shownValue(name: SettingName, value: string | undefined): string {
  if (value === undefined) return 'missing';
  if (!('secret' in SETTINGS[name])) return `"${value}"`;
  if (!isPostgresUrl(value)) return '"***"';
  const url = new URL(value);
  if (url.password) url.password = '***';
  return `"${url.href}"`;
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
