import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ApiServerOptions, createApiServer } from '../../bin/wiring/apiServer.js';
import { insertKey } from '../../db/access/keys.js';
import { insertWorkspace } from '../../db/access/workspaces.js';
import { ChangeFeed } from '../../db/changeFeed.js';
import type { Database } from '../../db/client.js';
import { findDemoOrganization, insertOrganization } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import type { Role, Scope } from '../../domain/access/keyRules.js';
import { createLogger } from '../../platform/logger.js';
import { drawKey } from '../../usecases/access/keyChanges.js';
import type { DemoControl } from '../../usecases/installation/demoRuns.js';
import { removeDemoOrganization } from '../../usecases/installation/organization.js';
import { testBlobs, testExtractor } from './blobs.js';
import { testConnectors, testSecretKeys } from './connectors.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { movesAtOnce } from './movesAtOnce.js';
import { testOutbound } from './outbound.js';

export interface TestOrganization {
  orgId: string;
  orgDb: OrgDb;
  adminKey: string;
  ingestKey: string;
}

/** An answer with its parsed JSON, which each test reads as the shape that it asserts. */
export interface TestAnswer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests assert
  body: any;
}

export interface TestApi extends TestOrganization {
  baseUrl: string;
  database: TestDatabase;
  /** Adds another organization with separate keys. */
  addOrganization(name?: string): Promise<TestOrganization>;
  addKey(orgId: string, role: Role, options?: TestKeyOptions): Promise<string>;
  /** Adds a workspace with this project; returns its uuid. */
  addWorkspace(orgId: string, projectId: string): Promise<string>;
  /** GET with a key; the parsed JSON. */
  get(path: string, key?: string): Promise<TestAnswer>;
  /** POST of a JSON body with a key. */
  post(path: string, body: unknown, key?: string): Promise<TestAnswer>;
  close(): Promise<void>;
}

/** Restrictions of a key compared with its role. */
export interface TestKeyOptions {
  scopes?: readonly Scope[];
  /** The uuid of a workspace, as `addWorkspace` returns it. */
  workspaceId?: string;
  /** Milliseconds until it expires; negative: it has expired. */
  expiresInMs?: number;
}

/** A workspace of the organization, stored; returns its uuid. */
export async function createTestWorkspace(
  database: Database,
  orgId: string,
  projectId: string,
): Promise<string> {
  const id = randomUUID();
  await insertWorkspace(new OrgDb(database, orgId), { id, name: projectId, projectId, createdBy: 'test' });
  return id;
}

/** A key of the organization, stored; returns its full text. */
export async function createTestKey(
  database: Database,
  orgId: string,
  role: Role,
  options: TestKeyOptions = {},
): Promise<string> {
  const { text, ...digest } = drawKey();
  await insertKey(new OrgDb(database, orgId), {
    ...digest,
    name: role,
    role,
    scopes: options.scopes ?? null,
    workspaceId: options.workspaceId ?? null,
    expiresAtMicros:
      options.expiresInMs === undefined ? null : BigInt(Date.now() + options.expiresInMs) * 1_000n,
    createdBy: 'test',
  });
  return text;
}

/** An organization with an admin key and an ingest key. */
export async function createTestOrganization(database: Database, name = 'Test'): Promise<TestOrganization> {
  const orgId = randomUUID();
  await insertOrganization(database, { id: orgId, name });
  return {
    orgId,
    orgDb: new OrgDb(database, orgId),
    adminKey: await createTestKey(database, orgId, 'admin'),
    ingestKey: await createTestKey(database, orgId, 'ingest'),
  };
}

/** The API over HTTP on a free port, on a separate database, with one organization. Responses are checked. */
export async function startTestApi(
  options: {
    database?: TestDatabase;
    ingestMaxBodyBytes?: number;
    tellsChanges?: boolean;
    baseUrl?: string;
  } & Partial<
    Pick<
      ApiServerOptions,
      | 'connectors'
      | 'blobs'
      | 'renderInvoicePage'
      | 'moveClaim'
      | 'outbound'
      | 'deliverMail'
      | 'priceFeeds'
      | 'identity'
      | 'demo'
      | 'secretKeys'
      | 'logger'
      | 'allowedHosts'
      | 'corsOrigins'
      | 'endpoints'
      | 'hstsMaxAgeSeconds'
      | 'limits'
      | 'limitsNowMs'
      | 'limitsStoreMs'
      | 'storageStatus'
      | 'requestsMax'
      | 'httpLimits'
      | 'keyCacheMs'
      | 'reportWaitMs'
      | 'temporalStatus'
      | 'kickDispatcher'
      | 'trustedProxies'
    >
  > = {},
): Promise<TestApi> {
  const database = options.database ?? (await createTestDatabase());
  const changes = new ChangeFeed({ directUrl: database.url, onLost: () => undefined });
  if (options.tellsChanges !== false) await changes.start();
  const api = await createApiServer({
    ...options,
    database: database.database,
    changes,
    logger: options.logger ?? createLogger({ name: 'api', level: process.env.TEST_LOG_LEVEL ?? 'silent' }),
    connectors: options.connectors ?? testConnectors(),
    blobs: options.blobs ?? testBlobs(),
    renderInvoicePage: options.renderInvoicePage ?? testExtractor().renderPage,
    moveClaim: options.moveClaim ?? movesAtOnce(database.database),
    outbound: options.outbound ?? testOutbound(),
    secretKeys: options.secretKeys ?? testSecretKeys(),
    demo: options.demo ?? demoInTests(database.database),
    checkResponses: true,
    baseUrl: () => options.baseUrl ?? 'http://trueup.test',
    loopback: true,
    metricsToken: undefined,
    ingestMaxBodyBytes: options.ingestMaxBodyBytes ?? 16_777_216,
    eventRetentionDays: undefined,
    temporalStatus: options.temporalStatus ?? (async () => 'degraded'),
    kickDispatcher: options.kickDispatcher ?? (() => undefined),
  });
  const baseUrl = await listen(api.server);
  const organization = await createTestOrganization(database.database);
  const call = async (path: string, init: RequestInit, key = organization.adminKey) => {
    const response = await fetch(baseUrl + path, {
      ...init,
      headers: { authorization: `Bearer ${key}`, ...init.headers },
    });
    const text = await response.text();
    const isJson = /json$/.test((response.headers.get('content-type') ?? '').split(';')[0] ?? '');
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text !== '' ? JSON.parse(text) : text,
    };
  };
  return {
    ...organization,
    baseUrl,
    database,
    addOrganization: (name) => createTestOrganization(database.database, name),
    addKey: (orgId, role, options) => createTestKey(database.database, orgId, role, options),
    addWorkspace: (orgId, projectId) => createTestWorkspace(database.database, orgId, projectId),
    get: (path, key) => call(path, { method: 'GET' }, key),
    post: (path, body, key) =>
      call(
        path,
        { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } },
        key,
      ),
    close: async () => {
      await api.close();
      await changes.close();
      if (!options.database) await database.close();
    },
  };
}

/** Loads nothing, and removes the demo in this process. */
function demoInTests(database: Database): DemoControl {
  return {
    load: () => undefined,
    remove: async () => {
      const demo = await findDemoOrganization(database);
      if (demo) await removeDemoOrganization(database, demo.id);
    },
  };
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    );
  });
}
