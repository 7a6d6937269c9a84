import { pino } from 'pino';
import { listObservedSources } from '../../../../db/events/observedCalls.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as explanationRuns from '../../../../db/reconciliation/explanations.js';
import * as explanations from '../../../../db/reconciliation/explanations.js';
import * as publishedFindings from '../../../../db/reconciliation/findings.js';
import type { GapRunResult } from '../../../../db/reconciliation/gapRuns.js';
import * as publishedGapRuns from '../../../../db/reconciliation/gapRuns.js';
import * as matchInputs from '../../../../db/reconciliation/matchInputs.js';
import {
  listHoursOfBoth,
  listInvoiceTies,
  listUploadedTies,
  listUsesOfBoth,
} from '../../../../db/reconciliation/matchInputs.js';
import { dayOf } from '../../../../domain/period.js';
import type { Biller, Provider } from '../../../../domain/providers.js';
import type { Prices } from '../../../../usecases/pricing/priceBookHolder.js';
import {
  explainRunAccount,
  failAccount,
  planExplanations,
} from '../../../../usecases/reconciliation/explainRun.js';
import {
  draftRunClaims,
  findRunCredits,
  loadRun,
  type RunWork,
} from '../../../../usecases/reconciliation/gapRunWork.js';
import { clockOf, planRun } from '../../../../usecases/reconciliation/planRun.js';
import { failUnit, matchUnit } from '../../../../usecases/reconciliation/providerDay.js';
import { publishRun } from '../../../../usecases/reconciliation/publishRun.js';
import { testInvoicePages } from '../../../support/blobs.js';
import type { Owned } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const ALL = { provider: null, fromDay: '2020-01-01', toDay: '2100-01-01' };
const FIRST_DAY = '2020-01-01';

const accountOf = ({ provider, marker }: Owned) => ({ provider, accountId: marker });
const seriesOf = (of: Owned) => ({ ...accountOf(of), model: of.marker });

/** An account and a series that the open run explains. */
async function planned(db: OrgDb, of: Owned): Promise<number> {
  const account = { ...accountOf(of), context: '{}', contextMark: of.marker, suspectsMark: of.marker };
  return explanationRuns.insertExplanationPlan(db, of.openRunId, [account], [seriesOf(of)]);
}

async function explained(db: OrgDb, of: Owned): Promise<void> {
  await planned(db, of);
  const explanation = JSON.stringify({ of: of.marker });
  await explanations.recordSeriesExplanations(db, of.openRunId, accountOf(of), [
    { model: of.marker, explanation },
  ]);
}

/** The series of the published run as if nothing of it were published yet. */
async function unpublished(db: OrgDb, { runId }: Owned): Promise<explanationRuns.SeriesName[]> {
  await db.run('delete from gap_published where org_id = $1', [db.orgId]);
  return explanationRuns.listChangedSeries(db, runId);
}

/** A finding of the owner's published run, on one day. */
async function found(db: OrgDb, of: Owned): Promise<void> {
  await db.run(
    `insert into findings (org_id, id, run_id, provider, provider_account_id, model, kind, variant, direction, blame, claimable,
       first_day, last_day, billed_usd, expected_usd, impact_usd, recoverable_usd, grade, probability, match_probability, visibility,
       provisional, critical, missing_gates, lines, waterfall, cause, reason, advice, weight_set)
     values ($1, $2, $2, $3, $4, $4, 'unexplained', '', 'overcharge', 'none', false, $5, $5, 1, 0, 1, 0, 'LOW', 0.5, 0.5, 'V0',
       false, false, '[]', '[]', '[]', $4, $4, '[]', 'x') on conflict do nothing`,
    [db.orgId, of.runId, of.provider, of.marker, of.day],
  );
  await db.run(
    `insert into finding_days (org_id, finding_id, day, billed_usd, expected_usd, impact_usd, rate_usd, volume_usd, own_pricing_usd, probability)
     values ($1, $2, $3, 1, 0, 1, 1, 0, 0, 0.5) on conflict do nothing`,
    [db.orgId, of.runId, of.day],
  );
}

/** The same finding as one of the owner's invoice. */
export async function invoiceFinding(db: OrgDb, of: Owned): Promise<void> {
  await found(db, of);
  await db.run(
    'update findings set run_id = null, invoice_id = $2, invoice_run_id = $3 where org_id = $1 and id = $4',
    [db.orgId, of.invoiceId, of.invoiceRunId, of.runId],
  );
}

/** A copy of a month's bill besides the counting one. */
async function copiedMonth(db: OrgDb, of: Owned): Promise<void> {
  await db.run(
    `insert into billing_days (org_id, source_id, provider, source_rank, source_fetched_at, provider_account_id, day, feed, report,
       charge_category, row_count, amount_usd)
     select org_id, id, provider, rank, now(), $3, day::date, 'cost', '', 'usage', 1, 1
     from (select org_id, id, provider, row_number() over (order by id) as rank from billing_sources where org_id = $1 and provider = $2 limit 2) s,
       generate_series('2020-02-01'::date, '2020-02-29'::date, interval '1 day') as day`,
    [db.orgId, of.provider, 'copied'],
  );
}

/** An hour of a usage report, as many tokens as the marker is long. */
async function reportedHour(db: OrgDb, of: Owned): Promise<void> {
  await db.run(
    `with source as (select org_id, id, provider from billing_sources where org_id = $1 and provider = $2 order by id limit 1),
       days as (insert into billing_days (org_id, source_id, provider, source_rank, source_fetched_at, provider_account_id, day, feed, report,
           charge_category, row_count, amount_usd)
         select org_id, id, provider, 99, now(), $3, '2099-01-01', 'usage', 'hourly', 'usage', 1, 0 from source)
     insert into billing_rows (org_id, source_id, row_no, feed, report, provider, provider_account_id, day, period_start, period_end,
       charge_category, line_item, observable, model, token_class, quantity, quantity_unit)
     select org_id, id, 900000, 'usage', 'hourly', provider, $3, '2099-01-01', '2099-01-01', '2099-01-01T01:00:00Z', 'usage', $3, true, $3, 'input',
       length($3), 'tokens' from source`,
    [db.orgId, of.provider, of.marker],
  );
}

/** Functions that read the inputs of runs, and store their explanations. */
/** A step of the open run; the process has nothing but the database and prices. */
const workOf = (db: OrgDb, { openRunId, prices }: Owned): RunWork => ({
  deps: {
    database: db.database,
    prices: { freshOf: async () => prices } as unknown as Prices,
    nowMicros: () => BigInt(Date.now()) * 1_000n,
    logger: pino({ level: 'silent' }),
  },
  ...{ orgDb: db, runId: openRunId, checkpoint: () => undefined },
});
const NO_PAGES = { locateRecords: async function* () {}, askedFor: () => undefined };

export const EXPLANATION_CASES: Record<string, TenancyCase> = {
  loadRun: (db, of) => loadRun(workOf(db, of)),
  planRun: (db, of) => planRun(workOf(db, of)),
  matchUnit: (db, of) => matchUnit(workOf(db, of), 0),
  failUnit: (db, { openRunId }) => failUnit(db, openRunId, 0, 'x'),
  planExplanations: (db, of) => planExplanations(workOf(db, of)),
  explainRunAccount: async (db, of) => {
    await planned(db, of);
    await explainRunAccount(workOf(db, of), 0);
  },
  failAccount: async (db, of) => {
    await planned(db, of);
    await failAccount(db, of.openRunId, 0, 'x');
  },
  publishRun: (db, of) => publishRun(workOf(db, of)),
  draftRunClaims: (db, of) => {
    const work = workOf(db, of);
    return draftRunClaims(work, { ...work.deps, pages: NO_PAGES, ...testInvoicePages() });
  },
  findRunCredits: (db, of) => findRunCredits(workOf(db, of)),
  clockOf: async (db, of) => {
    const { prices } = of;
    await reportedHour(db, of);
    const clock = clockOf(db, of.provider as Provider, prices);
    return [await clock.hours('2100-01-01'), await clock.uses('2100-01-01')];
  },
  listCountedDays: (db) => matchInputs.listCountedDays(db, ALL),
  listObservedRevisions: (db) => matchInputs.listObservedRevisions(db, ALL),
  listKeyDigests: async (db, { openRunId }) => {
    await db.run('update provider_keys set provider_account_id = $2 where org_id = $1', [
      db.orgId,
      openRunId,
    ]);
    return matchInputs.listKeyDigests(db);
  },
  findFirstEventDay: (db) => matchInputs.findFirstEventDay(db),
  listPublishedDays: (db) => matchInputs.listPublishedDays(db, ALL),
  listObservedSources: (db, { live }) =>
    listObservedSources(db, { provider: live.billedBy as Biller, day: dayOf(live.endMicros) }),
  listHoursOfBoth: async (db, of) => {
    await reportedHour(db, of);
    return listHoursOfBoth(db, { provider: of.provider, toDay: '2100-01-01' });
  },
  listUsesOfBoth: (db, of) => listUsesOfBoth(db, { provider: of.provider, toDay: '2100-01-01' }),
  listUploadedTies: (db) => listUploadedTies(db, ALL),
  listInvoiceTies: async (db, of) => {
    await copiedMonth(db, of);
    return listInvoiceTies(db, ALL);
  },
  recordPublication: (db, { openRunId }) =>
    publishedGapRuns.recordPublication(db, openRunId, { status: 'succeeded' }, {
      total: 1,
    } as GapRunResult),
  keepPublishedRunOpen: async (db, { openRunId }) => {
    await db.run(
      `update gap_runs set published_at = now(), published_status = 'succeeded' where org_id = $1`,
      [db.orgId],
    );
    return db.transaction((inside) => publishedGapRuns.keepPublishedRunOpen(inside, openRunId));
  },
  settleGapRunEnd: async (db, { openRunId, marker }) => {
    await db.run(
      `update gap_runs set published_at = now(), published_status = 'partial', error_code = 'units_failed', error_message = $2
       where org_id = $1`,
      [db.orgId, marker],
    );
    return db.transaction((inside) =>
      publishedGapRuns.settleGapRunEnd(inside, openRunId, { status: 'cancelled' }),
    );
  },
  takeExplainingTurn: (db, { openRunId }) => explanationRuns.takeExplainingTurn(db, openRunId),
  lockOpenGapRun: (db, { openRunId }) =>
    db.transaction((inside) => publishedGapRuns.lockOpenGapRun(inside, openRunId)),
  listChangedSeries: unpublished,
  listExplainedAccounts: (db) => explanationRuns.listExplainedAccounts(db, null),
  listSeriesOfAccount: async (db, of) => {
    await found(db, of);
    return explanationRuns.listSeriesOfAccount(db, accountOf(of), FIRST_DAY);
  },
  insertExplanationPlan: planned,
  listRunAccounts: async (db, of) => {
    await planned(db, of);
    return explanationRuns.listRunAccounts(db, of.openRunId);
  },
  listPendingSeries: async (db, of) => {
    await planned(db, of);
    return explanations.listPendingSeries(db, of.openRunId, accountOf(of));
  },
  recordSeriesExplanations: explained,
  listAccountExplanations: async (db, of) => {
    await explained(db, of);
    return explanations.listAccountExplanations(db, of.openRunId, accountOf(of));
  },
  recordAccountFindings: async (db, of) => {
    await planned(db, of);
    await explanations.recordAccountFindings(db, of.openRunId, 0, '["x"]');
  },
  failRunAccount: async (db, of) => {
    await planned(db, of);
    await explanations.failRunAccount(db, of.openRunId, 0, 'x');
  },
  readAccountFindings: async (db, of) => {
    await planned(db, of);
    await explanations.recordAccountFindings(db, of.openRunId, 0, JSON.stringify([of.marker]));
    return explanations.readAccountFindings(db, of.openRunId, 0);
  },
  publishExplanations: async (db, of) => {
    await explained(db, of);
    await explanations.recordAccountFindings(db, of.openRunId, 0, '[]');
    await explanations.publishExplanations(db, of.openRunId);
  },
  clearEndedExplanations: async (db, of) => {
    await db.run(
      'insert into gap_run_series (org_id, run_id, provider, provider_account_id, model) values ($1, $2, $3, $4, $4)',
      [db.orgId, of.runId, of.provider, of.marker],
    );
    await explanations.clearEndedExplanations(db);
    return db.rows('select * from explained_accounts where org_id = $1', [db.orgId]);
  },
  streamSeriesEvidence: async (db, of) => {
    const [series] = await unpublished(db, of);
    const days: unknown[] = [];
    if (series)
      for await (const day of explanations.streamSeriesEvidence(db, of.runId, series, FIRST_DAY))
        days.push(day);
    return days;
  },
  listFindingsOfAccount: async (db, of) => {
    await found(db, of);
    return publishedFindings.listFindingsOfAccount(db, accountOf(of), FIRST_DAY);
  },
  listFindingsOfInvoice: async (db, of) => {
    await invoiceFinding(db, of);
    return publishedFindings.listFindingsOfInvoice(db, of.invoiceId);
  },
  writeFindings: async (db, of) => {
    await found(db, of);
    await publishedFindings.writeFindings(
      db,
      { gapRunId: of.runId },
      {
        findings: [],
        removed: [of.runId],
        gone: [],
      },
    );
    await found(db, of);
  },
};
