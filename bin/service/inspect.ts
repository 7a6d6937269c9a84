import pg from 'pg';
import { SERVER_STATE, STORAGE_PROBE } from '../../db/health.js';
import { isStorageFull } from '../../db/pgErrors.js';
import type { Config } from '../../platform/config.js';
import { isTemporalServing } from '../../platform/embedded/temporalHealth.js';
import {
  embeddedDatabaseUrl,
  type PartState,
  type RuntimeState,
  readRunningState,
} from '../../platform/runtimeFile.js';
import { findFreeBytes, judgeStorage } from '../wiring/storageStatus.js';

const PROBE_LIMIT_MS = 2_000;

/** The visible state of a service, with the state that its start reports. */
export interface Inspection {
  /** undefined: no `npm start` runs on this data directory. */
  running: RuntimeState | undefined;
  parts: RuntimeState['parts'];
}

/**
 * Queries every part: Postgres by a statement, Temporal and the API by their health, the worker through its supervisor.
 */
export async function inspectService(config: Config): Promise<Inspection> {
  const running = readRunningState(config.dataDir);
  const known = running?.parts;
  const [postgres, temporal, api] = await Promise.all([
    inspectPostgres(config, known?.postgres),
    inspectTemporal(config, known?.temporal),
    inspectApi(config, known?.api),
  ]);
  const worker = known?.worker ?? { status: 'down' as const, detail: 'no npm start runs on this DATA_DIR' };
  return { running, parts: { postgres, temporal, api, worker } };
}

async function inspectPostgres(config: Config, known: PartState | undefined): Promise<PartState> {
  const embedded = config.databaseUrl === undefined;
  const url =
    config.databaseUrl ??
    (known?.address && known.embedded ? embeddedDatabaseUrl(config.dataDir, known.address) : undefined);
  if (url === undefined) return known ?? { status: 'down', embedded };
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: PROBE_LIMIT_MS });
  const base = { ...known, embedded, address: new URL(url).host };
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string; now_ms: string }>(SERVER_STATE);
    const [row] = rows;
    if (!row) return { ...base, status: 'degraded', detail: 'no answer to a query' };
    const seen = { ...base, version: row.version, clockSkewMs: Number(row.now_ms) - Date.now() };
    const { reason } = judgeStorage({
      isFull: await isDatabaseFull(client),
      freeBytes: findFreeBytes(() => known?.directory),
    });
    return reason === undefined ? { ...seen, status: 'up' } : { ...seen, status: 'degraded', detail: reason };
  } catch (error) {
    if (isStorageFull(error))
      return { ...base, status: 'degraded', detail: judgeStorage({ isFull: true }).reason as string };
    return { ...base, status: 'down', detail: known?.detail ?? (error as Error).message };
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Determined as the API does for /readyz. */
async function isDatabaseFull(client: pg.Client): Promise<boolean> {
  try {
    await client.query('begin');
    await client.query(STORAGE_PROBE.memory);
    await client.query(STORAGE_PROBE.write);
    await client.query('rollback');
    return false;
  } catch (error) {
    if (isStorageFull(error)) return true;
    throw error;
  }
}

async function inspectTemporal(config: Config, known: PartState | undefined): Promise<PartState> {
  const address = config.temporalAddress ?? known?.address;
  const embedded = config.temporalAddress === undefined;
  if (address === undefined) return { status: 'down', embedded };
  if (await isTemporalServing(address, PROBE_LIMIT_MS)) return { ...known, embedded, address, status: 'up' };
  const status = known?.status === 'building' || known?.status === 'starting' ? known.status : 'down';
  return { ...known, embedded, address, status };
}

async function inspectApi(config: Config, known: PartState | undefined): Promise<PartState> {
  const address = known?.address ?? `http://${config.host}:${config.port}`;
  try {
    const response = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(PROBE_LIMIT_MS) });
    const { storage, reasons } = (await response.json()) as { storage?: string; reasons?: string[] };
    if (response.ok && storage !== 'full') return { ...known, address, status: 'up' };
    const detail = [`readyz answers ${response.status}`, ...(reasons ?? [])].join(': ');
    return { ...known, address, status: 'degraded', detail };
  } catch {
    return { ...known, address, status: known?.status === 'starting' ? 'starting' : 'down' };
  }
}
