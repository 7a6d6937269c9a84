/** Connects the demo's bills, and reads the product's answers about them. */
import { picoFromDecimal } from '../../domain/money.js';
import type { TestApi } from './api.js';
import { pollToEnd } from './bills.js';
import { until } from './engine.js';
import { CONNECTIONS } from './fetchedBills.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const LIMIT_MS = 180_000;
const DAY_MILLIS = 86_400_000;
const EXPLORER = '/api/v1/reconciliation/gap-explorer';

/** Connects a provider, and waits for its backfill and for the gap run that follows by itself. */
export async function connectAndCompare(
  api: TestApi,
  connection: object,
): Promise<{ sync: Json; run: Json }> {
  const { status, body } = await api.post(CONNECTIONS, connection);
  if (status !== 201) throw new Error(`connecting answered ${status}: ${JSON.stringify(body)}`);
  await pollToEnd(api, body.sync.status_url, LIMIT_MS);
  // The following run is stored on a sync after its end, once no older run may have missed its changes.
  const sync = await until(
    'a gap run after the sync',
    async () => (await api.get(body.sync.status_url)).body as Json,
    ({ result }) => result.gap_run_id !== null,
    LIMIT_MS,
  );
  const run = await pollToEnd(api, `${EXPLORER}/runs/${sync.result.gap_run_id}`, LIMIT_MS);
  return { sync, run };
}

/** Buckets of the gap explorer's 90 days. */
export async function listGaps(api: TestApi): Promise<Json[]> {
  return (await api.get(`${EXPLORER}?period=90d`)).body.gaps;
}

export const dayOf = (gap: Json): string => gap.bucket.slice(0, 10);

/** Those that are not matched at HIGH, or at UNVERIFIED while their day is open: by day, model, status and grade. */
export function oddOf(gaps: readonly Json[]): unknown[] {
  return gaps
    .filter(
      (gap) => gap.match_status !== 'matched' || gap.confidence !== (gap.provisional ? 'UNVERIFIED' : 'HIGH'),
    )
    .map((gap) => [dayOf(gap), gap.model, gap.match_status, gap.confidence]);
}

/**
 * The first day of the months that are open on `today`, both `YYYY-MM-DD`, where a provider closes a month's bill so many
 * days after its end.
 */
export function firstOpenDay(daysAfterMonth: number, today: string): string {
  const monthEnded = Date.parse(`${today}T00:00:00Z`) - daysAfterMonth * DAY_MILLIS;
  return `${new Date(monthEnded).toISOString().slice(0, 7)}-01`;
}

/** The fields of an answer that the expected one has. */
export const fieldsAsIn = (expected: object | undefined, answer: Json): Json =>
  Object.fromEntries(Object.keys(expected ?? {}).map((name) => [name, answer[name]]));

/** An order for lists that have none. */
export const byText = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

/** Dollars as a number or a text → pico-dollars. */
export const exact = (usd: number | string): bigint => picoFromDecimal(String(usd)) ?? -1n;

/** An amount to the cent. */
export function cents(amount: number | string): string {
  const pico = exact(amount);
  const sign = pico < 0n ? -1n : 1n;
  const whole = (sign * pico + 5_000_000_000n) / 10_000_000_000n;
  return `${sign < 0n && whole > 0n ? '-' : ''}${whole / 100n}.${String(whole % 100n).padStart(2, '0')}`;
}
