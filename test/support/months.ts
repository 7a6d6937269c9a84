/**
 * Months that may be far back: calls and bills by the API, a run over their days, the displayed results, and plain
 * cents.
 */

import { expect } from 'vitest';
import { GAP_RUNS } from '../../db/reconciliation/gapRuns.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { insertRun } from '../../db/runs/runTable.js';
import { newUuid, publicId } from '../../domain/ids.js';
import type { Provider } from '../../domain/providers.js';
import type { TestApi, TestOrganization } from './api.js';
import { importBill, pollToEnd } from './bills.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

/** Millionths of a cent of a dollar. */
export const UNITS_PER_DOLLAR = 100_000_000n;

export interface Call {
  atMs: number;
  tokens: number;
}

/** Calls of one model, each a second long. */
export async function sendCalls(
  api: TestApi,
  org: TestOrganization,
  of: { provider: Provider; model: string; account?: string },
  calls: readonly Call[],
): Promise<void> {
  const events = calls.map(({ atMs, tokens }, at) => ({
    provider: of.provider,
    model: of.model,
    ...(of.account === undefined ? {} : { provider_account_id: of.account }),
    request_id: `call-${at}`,
    timestamp: new Date(atMs).toISOString(),
    end_at: new Date(atMs + 1_000).toISOString(),
    input_tokens: tokens,
    output_tokens: 0,
  }));
  const { status, body } = await api.post('/api/v1/ingest/events', { events }, org.ingestKey);
  expect([status, body.accepted, body.rejected ?? []]).toEqual([202, events.length, []]);
}

/** Imports a bill that is understood whole. */
export async function imported(
  api: TestApi,
  org: TestOrganization,
  text: string,
  fields: Record<string, string>,
): Promise<Json> {
  const done = await importBill(api, text, fields, org.adminKey);
  expect(done, JSON.stringify(done.error)).toMatchObject({ status: 'succeeded', unparsed: [], left_out: [] });
  return done;
}

/** A run over days that are too far back for a run by period. */
export async function runOver(
  api: TestApi,
  org: TestOrganization,
  fromDay: string,
  toDay: string,
): Promise<Json> {
  const id = newUuid(BigInt(Date.now()) * 1_000n);
  const micros = (day: string) => BigInt(Date.parse(`${day}T00:00:00Z`)) * 1_000n;
  await org.orgDb.transaction(async (inside) => {
    await insertRun(inside, GAP_RUNS, {
      id,
      period: '90d',
      provider: null,
      windowStartMicros: micros(fromDay),
      windowEndMicros: micros(toDay),
    });
    await insertOutboxMessage(inside, 'gap_run.start', id);
  });
  const run = await pollToEnd(
    api,
    `/api/v1/reconciliation/gap-explorer/runs/${publicId('run', id)}`,
    180_000,
    org.adminKey,
  );
  expect(run.status, JSON.stringify(run.error)).toBe('succeeded');
  return run;
}

/** An answer under /reconciliation. */
export async function read(api: TestApi, org: TestOrganization, path: string): Promise<Json> {
  const { status, body } = await api.get(`/api/v1/reconciliation/${path}`, org.adminKey);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

/** Every compared day of a month. */
export async function daysOf(
  api: TestApi,
  org: TestOrganization,
  month: string,
  lastDay: string,
): Promise<Json[]> {
  const body = await read(api, org, `matches?from=${month}-01&to=${lastDay}&limit=1000`);
  expect(body.has_more).toBe(false);
  return body.matches.sort((a: Json, b: Json) => (a.usage_start < b.usage_start ? -1 : 1));
}

export const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

/** Millionths of a cent, rounded to cents: `12.34`. */
export function cents(units: bigint): string {
  const sign = units < 0n ? -1n : 1n;
  const whole = (units * sign + 500_000n) / 1_000_000n;
  return `${sign < 0n && whole > 0n ? '-' : ''}${whole / 100n}.${String(whole % 100n).padStart(2, '0')}`;
}

/** An amount of an answer, rounded to cents by its decimals. */
export function centsOf(dollars: number): string {
  const [whole = '0', fraction = ''] = Math.abs(dollars).toFixed(9).split('.');
  const units = BigInt(whole) * UNITS_PER_DOLLAR + (BigInt(fraction) + 5n) / 10n;
  return cents(dollars < 0 ? -units : units);
}
