import { listSourceDifferences, type SourceDifference } from '../../db/billing/billCoverage.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  listRunAccounts,
  publishExplanations,
  type RunAccount,
  readAccountFindings,
} from '../../db/reconciliation/explanations.js';
import {
  type IdentifiedFinding,
  listDisputedDays,
  listFindingsOfAccount,
  writeFindings,
} from '../../db/reconciliation/findings.js';
import {
  type FinishedUnit,
  listFinishedUnits,
  listPublishedMismatches,
  publishGapRunDays,
} from '../../db/reconciliation/gapBuckets.js';
import { countPublishedBuckets } from '../../db/reconciliation/gapExplorer.js';
import {
  type GapRun,
  type GapRunResult,
  lockOpenGapRun,
  recordPublication,
} from '../../db/reconciliation/gapRuns.js';
import type { SuspectKey } from '../../domain/billing/providerKeys.js';
import { formatUuid } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { mergeMismatches } from '../../domain/reconciliation/audit/mergeMismatches.js';
import { carryFindings } from '../../domain/reconciliation/carryFindings.js';
import { explanationFromJson, type Finding } from '../../domain/reconciliation/engine/index.js';

import type { Publication } from '../../domain/reconciliation/publishedRun.js';
import { separateDisputed } from '../../domain/reconciliation/reconcileDays.js';
import { listSuspectKeys } from '../billing/providerKeys.js';
import { endRun } from '../runs/endRun.js';
import { digestOf, explainedWindowOf, loadRun, type RunWork, windowOf } from './gapRunWork.js';

/** Most differences and mismatches that a run's result lists; the counts are complete. */
const LISTED_MAX = 200;

/**
 * Publishes everything that a run found, in one transaction: the pointers to its days, the explanations of the series,
 * the findings. A run publishes once. An ended run publishes nothing, nor does a run that was asked to stop, which ends
 * here. Returns whether the run continues.
 */
export async function publishRun(work: RunWork): Promise<'published' | 'over'> {
  const { orgDb, runId } = work;
  const run = await loadRun(work);
  return orgDb.transaction(async (inside) => {
    const open = await lockOpenGapRun(inside, runId);
    if (!open) return 'over';
    if (open.publication) return 'published';
    if (open.isCancelRequested) {
      await endRun(inside, 'gap_run', runId, { status: 'cancelled' });
      return 'over';
    }
    const units = await listFinishedUnits(inside, runId);
    const accounts = await listRunAccounts(inside, runId);
    await publishGapRunDays(inside, runId);
    for (const account of accounts)
      if (account.status === 'done') await publishFindings(inside, run, account);
    await publishExplanations(inside, runId);
    const result = await resultOf(inside, run, units, accounts);
    await recordPublication(inside, runId, publicationOf(units, accounts), result);
    return 'published';
  });
}

function publicationOf(units: readonly FinishedUnit[], accounts: readonly RunAccount[]): Publication {
  const failed = units.filter((unit) => unit.status !== 'done').length;
  const unexplained = accounts.filter((account) => account.status !== 'done').length;
  if (failed === 0 && unexplained === 0) return { status: 'succeeded' };
  const days = `${failed} of ${units.length} provider-days could not be matched`;
  const series = `the differences of ${unexplained} of ${accounts.length} accounts could not be explained`;
  return {
    status: failed > 0 && failed === units.length ? 'failed' : 'partial',
    error: {
      code: 'units_failed',
      message: [...(failed > 0 ? [days] : []), ...(unexplained > 0 ? [series] : [])].join('; '),
    },
  };
}

/** Replaces the published findings of one account. */
async function publishFindings(inside: OrgDb, run: GapRun, account: RunAccount): Promise<void> {
  const published = await listFindingsOfAccount(inside, account, explainedWindowOf(run).fromDay);
  const found = explanationFromJson<Finding[]>(await readAccountFindings(inside, run.id, account.ordinal));
  const disputed = await listDisputedDays(inside, account, [...new Set(found.flatMap(daysOf))].sort());
  const separated = separateDisputed(found, disputed);
  const { parts, removed, gone } = carryFindings(published, separated);
  const taken = new Set(published.map(({ id }) => id));
  const findings = separated.map(
    ({ finding, heldBy }, at): IdentifiedFinding => ({
      id: parts[at]?.id ?? freshId(inside.orgId, finding, taken),
      decisionOf: parts[at]?.decisionOf ?? null,
      heldBy,
      finding,
    }),
  );
  await writeFindings(inside, { gapRunId: run.id }, { findings, removed, gone });
}

const daysOf = ({ days }: Finding): string[] => days.map(({ day }) => day);

/** An id that is the same in every run that finds the finding first. */
function freshId(orgId: string, finding: Finding, taken: Set<string>): string {
  const { provider, accountId, model, kind, variant, direction } = finding;
  const name = [orgId, provider, accountId, model, kind, variant, direction, finding.days[0]?.day];
  for (let attempt = 0; ; attempt += 1) {
    const id = formatUuid(digestOf(JSON.stringify([...name, attempt])).slice(0, 32));
    if (taken.has(id)) continue;
    taken.add(id);
    return id;
  }
}

async function resultOf(
  inside: OrgDb,
  run: GapRun,
  units: readonly FinishedUnit[],
  accounts: readonly RunAccount[],
): Promise<GapRunResult> {
  const window = windowOf(run);
  // Of all days of the window, including those that this run found unchanged.
  const mismatches = mergeMismatches(await listPublishedMismatches(inside, window));
  const differences = await listSourceDifferences(inside, { ...window, limit: LISTED_MAX });
  const suspects = await listSuspectKeys(inside, { ...window, limit: LISTED_MAX });
  const failed = units.filter((unit) => unit.status !== 'done');
  const providerDays = units.length + run.unchangedUnits;
  return {
    provider_days: providerDays,
    unchanged_days: run.unchangedUnits,
    ...(await countPublishedBuckets(inside, { ...window, hourly: false })),
    ...(providerDays === 0 ? { reason: 'no_billing_data' as const } : {}),
    rate_mismatches: mismatches.slice(0, LISTED_MAX),
    rate_mismatch_count: mismatches.length,
    source_differences: differences.map(presentDifference),
    suspect_keys: suspects.keys.map(presentSuspect),
    suspect_key_count: suspects.count,
    failed_units: failed.slice(0, LISTED_MAX).map((unit) => ({
      provider: unit.provider,
      day: unit.day,
      message: unit.errorMessage ?? 'not matched',
    })),
    failed_accounts: accounts
      .filter((account) => account.status !== 'done')
      .slice(0, LISTED_MAX)
      .map((account) => ({
        provider: account.provider,
        provider_account_id: account.accountId,
        message: account.errorMessage ?? 'not explained',
      })),
  };
}

function presentSuspect(key: SuspectKey): NonNullable<GapRunResult['suspect_keys']>[number] {
  return {
    provider: key.provider,
    provider_account_id: key.providerAccountId,
    provider_key_id: key.providerKeyId,
    reason: key.reason,
    first_day: key.firstDay,
    last_day: key.lastDay,
    billed_usd: key.billedPico === null ? null : decimalFromPico(key.billedPico),
  };
}

function presentDifference(difference: SourceDifference): GapRunResult['source_differences'][number] {
  return {
    provider: difference.provider,
    provider_account_id: difference.accountId,
    day: difference.day,
    span: difference.span,
    charge_category: difference.chargeCategory,
    counted_import_id: difference.countedSourceId,
    counted_kind: difference.countedKind,
    counted_usd: decimalFromPico(difference.countedPico),
    other_import_id: difference.otherSourceId,
    other_kind: difference.otherKind,
    other_usd: decimalFromPico(difference.otherPico),
  };
}
