import { MICROS_PER_DAY } from '../../period.js';
import type { AlertStatus, Notice } from './alert.js';

/** Calls that are looked at: those of the last day, so that what was mended is soon seen no more. */
export const LOOK_BACK_MICROS = MICROS_PER_DAY;
/** Whoever has acknowledged the notice has so long to mend what it tells, before it is told again. */
export const TOLD_AGAIN_AFTER_MICROS = 7n * MICROS_PER_DAY;

/** Two scopes of one service that tell the same calls. */
export interface DoubleScopes {
  /** OTel `service.name`; '' for calls that name none. */
  serviceName: string;
  scopes: readonly string[];
  calls: number;
  /** Exact dollars. */
  costUsd: string;
}

/** The newest notice of the same service and scopes. */
export interface FormerNotice {
  id: string;
  status: AlertStatus;
  acknowledgedAtMicros: bigint | null;
}

/** Whether it is to be told: for the first time, or since it goes on long after somebody has said that it was seen to. */
export function isWorthNotice(former: FormerNotice | undefined, nowMicros: bigint): boolean {
  if (!former) return true;
  return (
    former.acknowledgedAtMicros !== null && nowMicros - former.acknowledgedAtMicros >= TOLD_AGAIN_AFTER_MICROS
  );
}

/**
 * The notice of it. `pairKey` stands for service and scopes; with the notice before it names the episode, so that two
 * processes that find the same at once tell it once.
 */
export function doubleInstrumentation(
  found: DoubleScopes,
  pairKey: string,
  former: FormerNotice | undefined,
): Notice {
  const { serviceName, scopes, calls, costUsd } = found;
  const who = serviceName === '' ? 'A service without a name' : `Service ${serviceName}`;
  return {
    code: 'double_instrumentation',
    key: `${pairKey}:${former?.id ?? 'first'}`,
    subject: { type: 'service', id: serviceName },
    severity: 'medium',
    message: `${who} is instrumented twice: ${scopes.join(' and ')} both tell its calls, ${calls} of the last day for $${costUsd}. Name the scope that counts in the setting counted_scopes, or remove one of them.`,
    details: { service: serviceName, scopes, calls, cost_usd: costUsd },
    provider: null,
  };
}
