import { MICROS_PER_DAY, startOfDay } from '../period.js';

/** The steps of a retention run, in this order. A failed step does not prevent the others. */
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
  'reports',
  'blobs',
  'sessions',
] as const;
export type RetentionStep = (typeof RETENTION_STEPS)[number];

/** Days after which each kind of data is deleted. */
export interface RetentionLimits {
  /** undefined: calls are never deleted. */
  eventDays: number | undefined;
  payloadDays: number;
  auditDays: number;
}

/** Calls before this time are older than `days`. It is the start of a UTC day, so that retention deletes whole days. */
export function retentionLimit(nowMicros: bigint, days: number): bigint {
  return startOfDay(nowMicros) - BigInt(days) * MICROS_PER_DAY;
}

export interface Removed {
  rows: number;
  /** Partitions that were dropped as a whole; `rows` does not count all of their rows. */
  partitions: readonly string[];
}
