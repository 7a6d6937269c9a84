import { MICROS_PER_DAY, startOfDay } from '../period.js';

/** What a run of the retention does, in this order. One that fails keeps none of the others from running. */
export const RETENTION_STEPS = [
  'payloads',
  'events',
  'idempotency_keys',
  'audit_log',
  'rate_limits',
  'alerts',
  'webhook_messages',
  'savings_runs',
  'gap_runs',
  'blobs',
] as const;
export type RetentionStep = (typeof RETENTION_STEPS)[number];

/** For how many days what is kept. */
export interface RetentionLimits {
  /** undefined: calls are kept for good. */
  eventDays: number | undefined;
  payloadDays: number;
  auditDays: number;
}

/** Calls whose time is before this are older than so many days: the beginning of a UTC day, so that a day goes as a whole. */
export function retentionLimit(nowMicros: bigint, days: number): bigint {
  return startOfDay(nowMicros) - BigInt(days) * MICROS_PER_DAY;
}

export interface Removed {
  rows: number;
  /** Partitions that went as a whole, with more rows than are counted in `rows`. */
  partitions: readonly string[];
}
