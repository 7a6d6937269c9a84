import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { LIMIT_SETTINGS } from './limitSettings.js';
import { PRICE_FEEDS_SETTING } from './priceFeeds.js';
import { parseSecretKeys } from './secretKeys.js';
import { HSTS_MAX_AGE_SECONDS } from './serverLimits.js';
import {
  isEncryptedAddress,
  isHostAndPort,
  isHostOfUrl,
  isPostgresUrl,
  isSmtpUrl,
  isWebAddress,
  isWebOrigin,
  listOf,
  readRoleMap,
  readSender,
  withoutSlash,
} from './settingValues.js';

/** One setting: its parser, the message when it is wrong, and its row in the documented table. */
interface Setting<S extends z.ZodType = z.ZodType> {
  schema: S;
  /** The default in the table and in .env.example. */
  shownDefault: string;
  meaning: string;
  /** Completes "NAME is …: " with the remedy. */
  remedy: string;
  /** Masked when printed, and also read from the file that `NAME_FILE` names. */
  secret?: true;
}

const setting = <S extends z.ZodType>(value: Setting<S>): Setting<S> => value;

const MEBIBYTE = 1_048_576;
const RETENTION_DAYS_MIN = 400;
const RETENTION_DAYS_MAX = 36_500;
/** A year, which PCI DSS 4.0 requires for audit logs (10.5.1). */
const AUDIT_RETENTION_DAYS_MIN = 365;
const INGEST_BODY_BYTES_MIN = 65_536;
const INGEST_BODY_BYTES_MAX = 256 * MEBIBYTE;
const HSTS_SECONDS_MAX = 63_072_000;

const HOST = /^(?=.{1,253}$)(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9])?\.?)+$|^[0-9A-Fa-f:.]{2,45}$/;
const ADMIN_KEY = /^tu_live_[0-9A-Za-z]{10}_[0-9A-Za-z]{49}$/;
const S3_BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/;
const NAMESPACE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;
const DOCUMENT_AI_PROCESSOR =
  /^projects\/[^/\s]+\/locations\/[a-z0-9-]+\/processors\/[^/\s]+(?:\/processorVersions\/[^/\s]+)?$/;
const GOOGLE_BUCKET = /^[a-z0-9][a-z0-9._-]{1,220}(?:\/[A-Za-z0-9._-]+)*\/?$/;

/** They divide 64 connections to Postgres, and each needs some. */
const API_PROCESSES_MAX = 16;
/** Storing calls costs Postgres as much time as the API: more processes than this wait for one Postgres. */
const USEFUL_API_PROCESSES = 8;

/** The API processes of a machine with so many cores, unless set: one core is left for Postgres. */
export function defaultApiProcesses(cores: number): number {
  return Math.min(Math.max(cores - 1, 1), USEFUL_API_PROCESSES);
}

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max);
const postgresUrl = z.string().refine(isPostgresUrl);

/** All settings of the service, by environment variable. docs/configuration.md has the same table. */
export const SETTINGS = {
  PORT: setting({
    schema: wholeNumber(0, 65_535).default(3000),
    shownDefault: '3000',
    meaning: 'Port of the API; 0 takes a free one.',
    remedy: 'give a whole number from 0 to 65535, for example PORT=3000',
  }),
  API_PROCESSES: setting({
    schema: wholeNumber(1, API_PROCESSES_MAX).default(defaultApiProcesses(availableParallelism())),
    shownDefault: 'cores − 1, from 1 to 8',
    meaning: 'Processes that serve the API on its port.',
    remedy: `give a whole number from 1 to ${API_PROCESSES_MAX}, for example API_PROCESSES=4`,
  }),
  HOST: setting({
    schema: z.string().regex(HOST).default('127.0.0.1'),
    shownDefault: '127.0.0.1',
    meaning: 'Address that the API listens on. 0.0.0.0 opens it to the network.',
    remedy: 'give an address or a host name of this machine, for example HOST=127.0.0.1',
  }),
  BASE_URL: setting({
    schema: z.string().refine(isWebAddress).transform(withoutSlash).optional(),
    shownDefault: 'http://localhost:PORT',
    meaning: 'Address of this installation as people reach it, for addresses in documents and answers.',
    remedy:
      'give an http or https address without user, query or fragment, for example https://costs.example.com',
  }),
  TRUEUP_URL: setting({
    schema: z.string().refine(isWebAddress).transform(withoutSlash).default('http://localhost:3000'),
    shownDefault: 'http://localhost:3000',
    meaning: 'Running service that the commands mcp and import history use.',
    remedy:
      'give the http or https address of the service without user, query or fragment, for example http://localhost:3000',
  }),
  TRUEUP_API_KEY: setting({
    schema: z
      .string()
      .regex(/^\S{8,256}$/)
      .optional(),
    shownDefault: '(none)',
    meaning: 'Key of that service for these commands.',
    remedy: 'give a key as `./trueup keys create` prints it (tu_live_…)',
    secret: true,
  }),
  DATA_DIR: setting({
    schema: z.string().default('./.data'),
    shownDefault: './.data',
    meaning: 'Folder of the embedded servers, the admin key and the logs.',
    remedy: 'give the path of a folder, for example DATA_DIR=./.data',
  }),
  DATABASE_URL: setting({
    schema: postgresUrl.optional(),
    shownDefault: '(embedded Postgres)',
    meaning: 'Postgres 15 or newer to use instead of the embedded one.',
    remedy: 'give postgres://user:password@host:5432/database',
    secret: true,
  }),
  DATABASE_DIRECT_URL: setting({
    schema: postgresUrl.optional(),
    shownDefault: '(DATABASE_URL)',
    meaning:
      'The same database without a transaction pooler between, best with the login of its owner: for migrations, partitions, advisory locks and the news of changed keys.',
    remedy: 'give postgres://user:password@host:5432/database',
    secret: true,
  }),
  TEMPORAL_ADDRESS: setting({
    schema: z.string().refine(isHostAndPort).optional(),
    shownDefault: '(embedded Temporal)',
    meaning: 'Temporal server to use instead of the embedded one.',
    remedy: 'give host:port, for example TEMPORAL_ADDRESS=127.0.0.1:7233',
  }),
  TEMPORAL_NAMESPACE: setting({
    schema: z.string().regex(NAMESPACE).default('trueup'),
    shownDefault: 'trueup',
    meaning: 'Temporal namespace; created when it is missing and the server allows it.',
    remedy: 'give letters, digits, dots and dashes, for example TEMPORAL_NAMESPACE=trueup',
  }),
  TEMPORAL_CLI_PATH: setting({
    schema: z.string().optional(),
    shownDefault: '(PATH, cache, download, build)',
    meaning: 'The `temporal` program (1.5 or newer) that serves as embedded Temporal.',
    remedy: 'give the path of the temporal program',
  }),
  INIT_ORG_NAME: setting({
    schema: z.string().trim().min(1).max(256).default('My organization'),
    shownDefault: 'My organization',
    meaning: 'Name of the organization that the first start creates.',
    remedy: 'give a name of 1 to 256 characters',
  }),
  INIT_ADMIN_KEY: setting({
    schema: z.string().regex(ADMIN_KEY).optional(),
    shownDefault: '(made at the first start)',
    meaning: 'Admin key that the first start creates, in the key format.',
    remedy: 'give a key as `./trueup keys create` prints it (tu_live_…), or leave it out',
    secret: true,
  }),
  TRUEUP_SECRET_KEY: setting({
    schema: z
      .string()
      .refine((text) => parseSecretKeys(text) !== undefined)
      .optional(),
    shownDefault: '(embedded Postgres: made at the first start)',
    meaning:
      'Key that seals the providers’ credentials; required with DATABASE_URL. Several, with commas between: the first seals, the others open what they sealed before.',
    remedy: 'give 32 bytes in base64, as `openssl rand -base64 32` prints them',
    secret: true,
  }),
  DEMO: setting({
    schema: z
      .string()
      .toLowerCase()
      .pipe(z.stringbool({ truthy: ['1', 'true', 'on'], falsy: ['0', 'false', 'off'] }))
      .default(false),
    shownDefault: '0',
    meaning: '1: npm start loads the demo, an organization of its own, where there is none.',
    remedy: 'give 1 or 0',
  }),
  INGEST_MAX_BODY_BYTES: setting({
    schema: wholeNumber(INGEST_BODY_BYTES_MIN, INGEST_BODY_BYTES_MAX).default(16 * MEBIBYTE),
    shownDefault: '16777216',
    meaning: 'Largest body that ingest takes, on the wire and after inflation.',
    remedy: `give bytes from ${INGEST_BODY_BYTES_MIN} to ${INGEST_BODY_BYTES_MAX}, for example INGEST_MAX_BODY_BYTES=16777216`,
  }),
  METRICS_TOKEN: setting({
    schema: z.string().min(16).max(512).regex(/^\S+$/).optional(),
    shownDefault: '(none)',
    meaning: 'Bearer token that /metrics asks for; without one /metrics is open on loopback only.',
    remedy: 'give 16 to 512 characters without spaces',
    secret: true,
  }),
  LOG_LEVEL: setting({
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).optional(),
    shownDefault: 'info (warn on a terminal)',
    meaning: 'What is logged: fatal, error, warn, info, debug, trace or silent.',
    remedy: 'give one of fatal, error, warn, info, debug, trace, silent',
  }),
  ...LIMIT_SETTINGS,
  EVENT_RETENTION_DAYS: setting({
    schema: wholeNumber(RETENTION_DAYS_MIN, RETENTION_DAYS_MAX).optional(),
    shownDefault: '(events are kept)',
    meaning: 'Days that events are kept; older ones are refused at ingest, and removed once a day.',
    remedy: `give whole days from ${RETENTION_DAYS_MIN} to ${RETENTION_DAYS_MAX}, or leave it out to keep everything`,
  }),
  PAYLOAD_RETENTION_DAYS: setting({
    schema: wholeNumber(1, RETENTION_DAYS_MAX).default(90),
    shownDefault: '90',
    meaning:
      'Days that the content of a call is kept (payload, tool input and output), counted from the call.',
    remedy: `give whole days from 1 to ${RETENTION_DAYS_MAX}, for example PAYLOAD_RETENTION_DAYS=90`,
  }),
  AUDIT_RETENTION_DAYS: setting({
    schema: wholeNumber(AUDIT_RETENTION_DAYS_MIN, RETENTION_DAYS_MAX).default(730),
    shownDefault: '730',
    meaning: 'Days that rows of the audit log are kept; a signed checkpoint replaces older ones.',
    remedy: `give whole days from ${AUDIT_RETENTION_DAYS_MIN} to ${RETENTION_DAYS_MAX}, for example AUDIT_RETENTION_DAYS=730`,
  }),
  AUDIT_ANCHOR_DIR: setting({
    schema: z.string().optional(),
    shownDefault: '(DATA_DIR/audit-anchors)',
    meaning: 'Folder in which the worker anchors the audit log outside the database; best on another disk.',
    remedy: 'give the path of a folder, for example AUDIT_ANCHOR_DIR=/mnt/anchors',
  }),
  BLOB_STORE: setting({
    schema: z.enum(['file', 's3']).default('file'),
    shownDefault: 'file',
    meaning: 'Where uploaded files are kept: file (DATA_DIR/blobs) or s3.',
    remedy: 'give file or s3',
  }),
  S3_ENDPOINT: setting({
    schema: z.string().refine(isWebAddress).transform(withoutSlash).optional(),
    shownDefault: '(AWS, in S3_REGION)',
    meaning: 'Address of the S3-compatible server, where it is not AWS.',
    remedy:
      'give an http or https address without user, query or fragment, for example https://minio.example.com',
  }),
  S3_BUCKET: setting({
    schema: z.string().regex(S3_BUCKET).optional(),
    shownDefault: '(none)',
    meaning: 'Bucket of the uploaded files; required with BLOB_STORE=s3.',
    remedy: 'give the name of a bucket that exists, for example S3_BUCKET=trueup-files',
  }),
  S3_REGION: setting({
    schema: z
      .string()
      .regex(/^[a-z0-9-]{1,64}$/)
      .default('us-east-1'),
    shownDefault: 'us-east-1',
    meaning: 'Region of the bucket.',
    remedy: 'give the name of a region, for example S3_REGION=eu-central-1',
  }),
  S3_ACCESS_KEY_ID: setting({
    schema: z
      .string()
      .regex(/^\S{3,128}$/)
      .optional(),
    shownDefault: '(none)',
    meaning: 'Id of the access key to the bucket; required with BLOB_STORE=s3.',
    remedy: 'give the id of an access key: 3 to 128 characters without spaces',
  }),
  S3_SECRET_ACCESS_KEY: setting({
    schema: z
      .string()
      .regex(/^\S{8,256}$/)
      .optional(),
    shownDefault: '(none)',
    meaning: 'Secret of the access key to the bucket; required with BLOB_STORE=s3.',
    remedy: 'give the secret of the access key: 8 to 256 characters without spaces',
    secret: true,
  }),
  INVOICE_ENGINES: setting({
    schema: z
      .string()
      .transform(listOf)
      .pipe(z.array(z.enum(['text', 'tesseract', 'document_ai'])).min(1))
      .default(['text', 'tesseract']),
    shownDefault: 'text,tesseract',
    meaning:
      "What reads invoices, each page by the first that can: text (the PDF's own), tesseract (on this machine), document_ai (Google's service).",
    remedy:
      'give text, tesseract, document_ai with commas between, for example INVOICE_ENGINES=text,tesseract',
  }),
  TESSERACT_PATH: setting({
    schema: z.string().optional(),
    shownDefault: '(PATH, bundled)',
    meaning:
      'The `tesseract` program (4.1 or newer) that reads scans, or `bundled` for the one in the package.',
    remedy: 'give the path of the tesseract program, or bundled',
  }),
  DOCUMENT_AI_PROCESSOR: setting({
    schema: z.string().regex(DOCUMENT_AI_PROCESSOR).optional(),
    shownDefault: '(none)',
    meaning: 'Full name of the Document AI processor; required with document_ai in INVOICE_ENGINES.',
    remedy: 'give projects/PROJECT/locations/LOCATION/processors/ID, as Google names the processor',
  }),
  DOCUMENT_AI_ENDPOINT: setting({
    schema: z.string().refine(isEncryptedAddress).transform(withoutSlash).optional(),
    shownDefault: '(of the location of the processor)',
    meaning: 'Address of Document AI, where it is not the public one.',
    remedy: 'give an https address, for example https://eu-documentai.googleapis.com',
  }),
  DOCUMENT_AI_TRANSPORT: setting({
    schema: z.enum(['grpc', 'rest']).default('grpc'),
    shownDefault: 'grpc',
    meaning: 'How Document AI is reached: grpc, or rest where a proxy lets no gRPC through.',
    remedy: 'give grpc or rest',
  }),
  DOCUMENT_AI_BUCKET: setting({
    schema: z.string().regex(GOOGLE_BUCKET).optional(),
    shownDefault: '(none)',
    meaning:
      'Bucket of Google Cloud Storage through which invoices of more than 15 pages go to Document AI, perhaps with a folder; without one they are sent in parts.',
    remedy: 'give the name of a bucket, for example DOCUMENT_AI_BUCKET=trueup-invoices/drop',
  }),
  GOOGLE_APPLICATION_CREDENTIALS: setting({
    schema: z.string().optional(),
    shownDefault: '(identity of the machine at Google)',
    meaning: 'Path of the key file of a Google service account that may use the processor and the bucket.',
    remedy: 'give the path of a JSON key file',
  }),
  OPENAI_ADMIN_BASE_URL: setting({
    schema: z.string().refine(isWebAddress).default('https://api.openai.com'),
    shownDefault: 'https://api.openai.com',
    meaning: "Where OpenAI's cost and usage reports are asked for, without /v1.",
    remedy:
      'give an http or https address without user, query or fragment, for example https://api.openai.com',
  }),
  ANTHROPIC_ADMIN_BASE_URL: setting({
    schema: z.string().refine(isWebAddress).default('https://api.anthropic.com'),
    shownDefault: 'https://api.anthropic.com',
    meaning: "Where Anthropic's cost and usage reports are asked for, without /v1.",
    remedy:
      'give an http or https address without user, query or fragment, for example https://api.anthropic.com',
  }),
  AZURE_MANAGEMENT_BASE_URL: setting({
    schema: z.string().refine(isWebAddress).default('https://management.azure.com'),
    shownDefault: 'https://management.azure.com',
    meaning: "Where Azure's costs are asked for: its resource manager.",
    remedy:
      'give an http or https address without user, query or fragment, for example https://management.azure.com',
  }),
  AZURE_LOGIN_BASE_URL: setting({
    schema: z.string().refine(isWebAddress).default('https://login.microsoftonline.com'),
    shownDefault: 'https://login.microsoftonline.com',
    meaning: 'Where an application is given a token for Azure.',
    remedy:
      'give an http or https address without user, query or fragment, for example https://login.microsoftonline.com',
  }),
  AWS_COST_EXPLORER_ENDPOINT: setting({
    schema: z.string().refine(isWebAddress).default('https://ce.us-east-1.amazonaws.com'),
    shownDefault: 'https://ce.us-east-1.amazonaws.com',
    meaning: "Where AWS's costs are asked for: Cost Explorer.",
    remedy:
      'give an http or https address without user, query or fragment, for example https://ce.us-east-1.amazonaws.com',
  }),
  ALLOWED_HOSTS: setting({
    schema: z
      .string()
      .transform(listOf)
      .pipe(z.array(z.string().regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?$/)))
      .default([]),
    shownDefault: '(none)',
    meaning:
      'Host names besides localhost and that of BASE_URL under which requests are answered, with commas between; a request with another Host header is refused (421), IP addresses and /healthz aside.',
    remedy: 'give host names without a port, for example ALLOWED_HOSTS=costs.example.com,trueup',
  }),
  CORS_ORIGINS: setting({
    schema: z
      .string()
      .transform(listOf)
      .pipe(z.array(z.string().refine(isWebOrigin)))
      .default([]),
    shownDefault: '(none)',
    meaning: 'Origins whose pages may call the API from a browser, with commas between.',
    remedy: 'give origins such as https://costs.example.com, with commas between and without a path',
  }),
  HSTS_MAX_AGE_SECONDS: setting({
    schema: wholeNumber(0, HSTS_SECONDS_MAX).default(HSTS_MAX_AGE_SECONDS),
    shownDefault: '31536000',
    meaning:
      'How long browsers insist on TLS after an answer over TLS (X-Forwarded-Proto: https); 0 makes them forget it.',
    remedy: `give seconds from 0 to ${HSTS_SECONDS_MAX}, for example HSTS_MAX_AGE_SECONDS=31536000`,
  }),
  OUTBOUND_ALLOWED_HOSTS: setting({
    schema: z
      .string()
      .transform(listOf)
      .pipe(z.array(z.string().refine(isHostOfUrl)))
      .default([]),
    shownDefault: '(none)',
    meaning:
      'Hosts inside your network that addresses set by users may lead to, as host or host:port with commas between; all other addresses must be public, at port 80 or 443.',
    remedy:
      'give hosts in lower case with commas between, for example OUTBOUND_ALLOWED_HOSTS=hooks.example.com,10.0.0.5:8443',
  }),
  PRICE_FEEDS: setting(PRICE_FEEDS_SETTING),
  SMTP_URL: setting({
    schema: z.string().refine(isSmtpUrl).optional(),
    shownDefault: '(no e-mail)',
    meaning:
      'Mail server of notices and reports: smtp:// (STARTTLS; required where there is a password) or smtps://.',
    remedy: 'give smtp://user:password@host:587 or smtps://user:password@host:465',
    secret: true,
  }),
  MAIL_FROM: setting({
    schema: z
      .string()
      .refine((value) => readSender(value) !== undefined)
      .optional(),
    shownDefault: '(none)',
    meaning: 'Sender of mails, an address or a name with one; required with SMTP_URL.',
    remedy: 'give an address, for example MAIL_FROM="Trueup <trueup@example.com>"',
  }),
  OIDC_ISSUER: setting({
    schema: z.string().refine(isEncryptedAddress).optional(),
    shownDefault: '(none)',
    meaning:
      'OpenID provider at which people sign in to the dashboard; its clients need the redirect address BASE_URL/api/v1/session/oidc/callback.',
    remedy: 'give an https address without user, query or fragment, for example https://id.example.com',
  }),
  OIDC_CLIENT_ID: setting({
    schema: z.string().optional(),
    shownDefault: '(none)',
    meaning: 'Id of this installation as a client of the OpenID provider; required with OIDC_ISSUER.',
    remedy: 'give the id of the client',
  }),
  OIDC_CLIENT_SECRET: setting({
    schema: z.string().optional(),
    shownDefault: '(none)',
    meaning: 'Secret of that client; required with OIDC_ISSUER.',
    remedy: 'give the secret of the client',
    secret: true,
  }),
  OIDC_ORGANIZATION: setting({
    schema: z.string().optional(),
    shownDefault: '(the first)',
    meaning: 'Organization, by id or name, to which people of the OpenID provider sign in.',
    remedy: 'give the id or the name of an organization',
  }),
  OIDC_ROLE_CLAIM: setting({
    schema: z.string().default('groups'),
    shownDefault: 'groups',
    meaning: "Claim with a person's groups, a list or one text.",
    remedy: 'give the name of a claim, for example OIDC_ROLE_CLAIM=groups',
  }),
  OIDC_ROLE_MAP: setting({
    schema: z
      .string()
      .refine((value) => readRoleMap(value) !== undefined)
      .optional(),
    shownDefault: '(none)',
    meaning:
      'Role of the members of each group, as group=role with commas between; of several roles the strongest counts, and nobody else gets in. Required with OIDC_ISSUER.',
    remedy:
      'give groups with the role admin, member or auditor, for example OIDC_ROLE_MAP=finance=admin,staff=auditor',
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];
