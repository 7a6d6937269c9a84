import type { OrgDb } from '../../db/orgDb.js';
import { listSavingsDue } from '../../db/policies/savingsDue.js';
import {
  type NewSavingsRun,
  noteRulesChanged,
  openRunOf,
  SAVINGS_RUNS,
  type SavingsPeriod,
} from '../../db/policies/savingsRuns.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid } from '../../domain/ids.js';
import { MICROS_PER_DAY } from '../../domain/period.js';
import type { SavingsCause } from '../../domain/policies/savingsCauses.js';
import { queueRun, type RunOpening } from '../runs/openRun.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';

/** The days before now that are modeled unless a period is named. */
const SAVINGS_DAYS = 30;
/** Looks for a run that ends between finding none and finding one open. */
const ATTEMPTS = 5;
const RETRY_AFTER_SECONDS = 2;

/** The period that is modeled unless one is named: the 30 days before now. */
export function standardPeriod(nowMicros: bigint): SavingsPeriod {
  return {
    isStandard: true,
    windowStartMicros: nowMicros - BigInt(SAVINGS_DAYS) * MICROS_PER_DAY,
    windowEndMicros: nowMicros,
  };
}

/**
 * Has the savings modeled anew because the rules change. Call it in the transaction of the change, behind it: a run is
 * opened, or follows the one that is open, and reads the rules as this transaction leaves them. Errors:
 * service_unavailable when runs begin and end faster than one can be opened.
 */
export async function remodelSavings(inside: OrgDb, nowMicros: bigint): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (await noteRulesChanged(inside)) return;
    if (await queueSavingsRun(inside, nowMicros, 'rule_change')) return;
  }
  throw new DomainError(
    'service_unavailable',
    'savings runs begin and end faster than one can be opened; try again',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

/** A run over a period that somebody asks for. */
export function savingsOpening(period: SavingsPeriod, requestedBy: string): RunOpening<NewSavingsRun> {
  return { wanted: { ...period, cause: 'request', requestedBy }, open: openRunOf(period) };
}

/** A standard run, stored with the message that starts it; false while one is open. */
export async function queueSavingsRun(
  orgDb: OrgDb,
  nowMicros: bigint,
  cause: Exclude<SavingsCause, 'request'>,
): Promise<boolean> {
  const wanted = { id: newUuid(nowMicros), ...standardPeriod(nowMicros), cause, requestedBy: null };
  return (await queueRun(orgDb, SAVINGS_RUNS, wanted)) !== undefined;
}

/** Runs of the instance that are open at once, beyond which none is opened that nobody asked for. */
const OPEN_MAX = 20;

/**
 * Opens a savings run for each organization whose result has grown old. Two processes that do it at the same time open one
 * all the same. Returns how many it opened.
 */
export async function openDueSavings(deps: UseCaseDeps, nowMicros: bigint): Promise<number> {
  let opened = 0;
  for (const orgId of await listSavingsDue(deps.database, OPEN_MAX))
    if (await queueSavingsRun(orgDbOf(deps, orgId), nowMicros, 'schedule')) opened += 1;
  return opened;
}
