import {
  type ComparedModelDay,
  listComparedModels,
  listFocusCharges,
  listFocusDays,
} from '../../db/billing/focusCharges.js';
import type { OrgDb } from '../../db/orgDb.js';
import { listMatchDisputes, listMatchFindings } from '../../db/reconciliation/gapExplorer.js';
import type { ComparedDay, FocusRecord } from '../../domain/billing/focus/focusCharge.js';
import { focusRecordsOf } from '../../domain/billing/focus/focusDay.js';
import { nextMonth } from '../../domain/billing/periods.js';
import { absPico } from '../../domain/money.js';
import type { Provider } from '../../domain/providers.js';
import type { ChargePrices } from '../../domain/reconciliation/matching/charges.js';
import { readBilledDay } from '../reconciliation/billAudit.js';

/**
 * The rows of a FOCUS export of the month that begins on `firstDay`, by provider and day. Each provider's day is read
 * in one short transaction, so that a slow reader delays nothing. Memory holds one day.
 */
export async function* streamFocusRecords(
  orgDb: OrgDb,
  firstDay: string,
  prices: ChargePrices,
): AsyncGenerator<FocusRecord[]> {
  const window = { fromDay: firstDay, toDay: nextMonth(firstDay) };
  for (const { provider, day } of await listFocusDays(orgDb, window))
    yield await orgDb.transaction((inside) => readDay(inside, provider, day, prices), 'repeatable read');
}

async function readDay(
  inside: OrgDb,
  provider: Provider,
  day: string,
  prices: ChargePrices,
): Promise<FocusRecord[]> {
  const charges = await listFocusCharges(inside, { provider, day });
  const { charges: judged } = await readBilledDay(inside, provider, day, prices);
  const models = await listComparedModels(inside, { provider, day });
  return focusRecordsOf({
    provider,
    day,
    charges,
    judged,
    compared: await withDecisions(inside, provider, day, models),
    prices,
  });
}

/** Adds the findings of each model's day and their disputes. */
async function withDecisions(
  inside: OrgDb,
  provider: Provider,
  day: string,
  models: readonly ComparedModelDay[],
): Promise<ComparedDay[]> {
  const days = models.map(({ accountId, model }) => ({ provider, accountId, model, day }));
  const findings = await listMatchFindings(inside, days);
  const disputes = await listMatchDisputes(inside, days);
  return models.map((model, at) => {
    const [largest] = [...(findings[at] ?? [])].sort((a, b) =>
      Number(absPico(b.impactPico) - absPico(a.impactPico) > 0n ? 1 : -1),
    );
    return {
      ...model,
      finding: largest ? { id: largest.findingId, kind: largest.kind } : null,
      disputeId: disputes[at] ?? null,
    };
  });
}
