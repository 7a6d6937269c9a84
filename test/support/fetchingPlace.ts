import type { BillingConnectors } from '../../adapters/billing/connectors.js';
import { listBilledTotals } from '../../db/billing/billingRows.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findUuid } from '../../domain/ids.js';
import { microsFromDate } from '../../domain/period.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import { createLogger } from '../../platform/logger.js';
import type { SyncPace } from '../../usecases/billing/fetchChunk.js';
import { startAnthropicBilling } from '../fakes/billing/anthropicBilling.js';
import { startOpenAiBilling } from '../fakes/billing/openAiBilling.js';
import type { BillingFake } from '../fakes/billing/reportServer.js';
import { startTestApi, type TestApi, type TestOrganization } from './api.js';
import { pollToEnd } from './bills.js';
import { testConnectors } from './connectors.js';
import { startTestEngine, type TestEngine, until } from './engine.js';
import {
  ADMIN_KEYS,
  aConnection,
  anthropicTruth,
  BACKFILL_DAYS,
  CONNECTIONS,
  DAY_SECONDS,
  daysAgo,
  expectedDays,
  FAST,
  type FetchedProvider,
  openaiResult,
  openaiTruth,
  PARTS,
  todaySeconds,
} from './fetchedBills.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const LIMIT_MS = 180_000;
const RESTATED_MICRO_USD = 5_000_000;

export interface FetchingPlace {
  api: TestApi;
  engine: TestEngine;
  openai: BillingFake;
  anthropic: BillingFake;
  connectors: BillingConnectors;
  /** Log lines of the worker's side. */
  workerLines: string[];
  /** Lets days go by, for the providers and the worker. */
  skipDays(days: number): void;
  /** OpenAI reports a past day with five dollars more from now on: `restatedDays`. */
  restate(daysBefore: number): void;
  /** Connects a provider of an organization; throws where that is refused. */
  connect(provider: FetchedProvider, more?: object, org?: TestOrganization): Promise<Json>;
  /** Waits for the end of a sync or an import. */
  ended(run: { status_url: string }, org?: TestOrganization): Promise<Json>;
  /** Waits until Temporal has finished a sync, whatever happened to its connection. */
  workflowEnded(run: { id: string }): Promise<unknown>;
  /** Requests a sync and waits for its end. */
  syncAgain(connection: { id: string }): Promise<Json>;
  changeConnection(id: string, body: object): Promise<Response>;
  endConnection(id: string): Promise<Response>;
  /** Rows of a table, of whomever. */
  count(table: string, where?: string): Promise<number>;
  close(): Promise<void>;
}

/** Counted dollars of one provider by day: pico-dollars. */
export async function countedDays(orgDb: OrgDb, provider: FetchedProvider): Promise<Record<string, bigint>> {
  const window = { provider, fromDay: '2000-01-01', toDay: '2100-01-01' };
  const days: Record<string, bigint> = {};
  for (const { day, amountPico } of await listBilledTotals(orgDb, window))
    days[day] = (days[day] ?? 0n) + amountPico;
  return days;
}

/** Dollars of an OpenAI connection's days after one of them was restated. */
export function restatedDays(daysBefore: number): Record<string, bigint> {
  const expected = expectedDays('openai', daysAgo(BACKFILL_DAYS));
  const day = daysAgo(daysBefore);
  expected[day] = (expected[day] ?? 0n) + BigInt(RESTATED_MICRO_USD) * 1_000_000n;
  return expected;
}

/** Both loopback providers, the API and Temporal connected to them, on a separate database. */
export async function startFetchingPlace(
  options: {
    syncPace?: SyncPace;
    keys?: readonly string[];
    sweep?: { queuedSeconds: number; silentSeconds: number };
    /** Days before today that its connections ask for; null: as many as the product's. Default: BACKFILL_DAYS. */
    backfillDays?: number | null;
  } = {},
): Promise<FetchingPlace> {
  const more = options.keys ?? [];
  // The providers' clock stands still, so that today's data are equal on every page.
  const started = Math.floor(Date.now() / 1_000);
  let skippedSeconds = 0;
  const nowSeconds = () => started + skippedSeconds;
  const nowMicros = () => microsFromDate(new Date()) + BigInt(skippedSeconds) * 1_000_000n;
  const lines: string[] = [];
  const openai = await startOpenAiBilling({
    truth: openaiTruth('org-loop'),
    adminKey: [ADMIN_KEYS.openai, ...more],
    nowSeconds,
  });
  const anthropic = await startAnthropicBilling({
    truth: anthropicTruth('0d5c1f0e-anthropic'),
    adminKey: [ADMIN_KEYS.anthropic, ...more],
    nowSeconds,
  });
  const connectors = testConnectors({ openai: openai.origin, anthropic: anthropic.origin }, nowMicros);
  const api = await startTestApi({ connectors });
  const { backfillDays = BACKFILL_DAYS } = options;
  if (backfillDays !== null) await shortenBackfills(api, daysAgo(backfillDays));
  const engine = await startTestEngine(api.database.database, {
    connectors,
    syncPace: options.syncPace ?? FAST,
    nowMicros,
    logger: createLogger({
      name: 'worker',
      level: 'trace',
      destination: { write: (line) => lines.push(line) },
    }),
    ...(options.sweep ? { sweep: options.sweep } : {}),
  });
  return {
    api,
    engine,
    openai,
    anthropic,
    connectors,
    workerLines: lines,
    skipDays: (days) => {
      skippedSeconds += days * DAY_SECONDS;
    },
    restate: (daysBefore) => restate(openai, daysBefore),
    ...connecting(api),
    workflowEnded: (run) => workflowEnded(engine, api.orgId, run),
    close: async () => {
      await engine.close();
      await api.close();
      await openai.close();
      await anthropic.close();
    },
  };
}

/** Makes connections of this database begin on this day, because a backfill takes as long as it has parts. */
async function shortenBackfills(api: TestApi, fromDay: string): Promise<void> {
  await api.database.superuser.query(`
    create function shorten_backfill() returns trigger language plpgsql as $$
      begin new.backfill_from := '${fromDay}'; return new; end $$;
    create trigger shorten_backfill before insert on billing_connections
      for each row execute function shorten_backfill();`);
}

function restate(openai: BillingFake, daysBefore: number): void {
  const startSeconds = todaySeconds() - daysBefore * DAY_SECONDS;
  openai.restate('costs', {
    startSeconds,
    endSeconds: startSeconds + DAY_SECONDS,
    results: PARTS.openai.map((part) =>
      openaiResult('org-loop', startSeconds, part, part === 'proj_a' ? RESTATED_MICRO_USD : 0),
    ),
  });
}

function workflowEnded(engine: TestEngine, orgId: string, run: { id: string }): Promise<unknown> {
  const workflowId = runWorkflowId('billing_sync', { orgId, id: findUuid('run', run.id) ?? '' });
  return until(
    `the end of ${workflowId}`,
    () => engine.orchestrator.describe(workflowId),
    (state) => state === 'closed',
  );
}

/** Requests of tests to an API with connections. */
function connecting(api: TestApi) {
  const request = (method: string, id: string, body?: object) =>
    fetch(`${api.baseUrl}${CONNECTIONS}/${id}`, {
      method,
      headers: {
        authorization: `Bearer ${api.adminKey}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  const ended: FetchingPlace['ended'] = (run, org = api) =>
    pollToEnd(api, run.status_url, LIMIT_MS, org.adminKey);
  return {
    ended,
    connect: async (provider, more = {}, org = api) => {
      const { status, body } = await api.post(CONNECTIONS, aConnection(provider, more), org.adminKey);
      if (status !== 201)
        throw new Error(`connecting ${provider} answered ${status}: ${JSON.stringify(body)}`);
      return body;
    },
    syncAgain: async (connection) => {
      const { status, body } = await api.post(`${CONNECTIONS}/${connection.id}/sync`, {});
      if (status !== 202) throw new Error(`asking for a sync answered ${status}: ${JSON.stringify(body)}`);
      return ended(body);
    },
    changeConnection: (id, body) => request('PATCH', id, body),
    endConnection: (id) => request('DELETE', id),
    count: async (table, where = 'true') => {
      const sql = `select count(*)::int as n from ${table} where ${where}`;
      return (await api.database.superuser.query(sql)).rows[0].n;
    },
  } satisfies Partial<FetchingPlace>;
}
