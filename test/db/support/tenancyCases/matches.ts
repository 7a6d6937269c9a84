import { listComparedModels, listFocusCharges, listFocusDays } from '../../../../db/billing/focusCharges.js';
import {
  listBilledKeyDays,
  listCoverage,
  listObservedKeyDays,
} from '../../../../db/reconciliation/coverage.js';
import * as matches from '../../../../db/reconciliation/gapExplorer.js';
import { dayOf, listDays, shiftDay } from '../../../../domain/period.js';
import { DEFAULT_WEIGHTS } from '../../../../domain/reconciliation/weights/weightSet.js';
import { streamFocusRecords } from '../../../../usecases/billing/focusExport.js';
import { readCoverage } from '../../../../usecases/reconciliation/coverage.js';
import { readProviderDay } from '../../../../usecases/reconciliation/providerDay.js';
import { exploreGaps, readMatches, readMonthSummary } from '../../../../usecases/reconciliation/readRuns.js';
import { reconcileBills } from '../../../../usecases/reconciliation/reconcileBills.js';
import type { Owned } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const ALL: matches.MatchFilter = {
  fromDay: '2020-01-01',
  toDay: '2100-01-01',
  provider: undefined,
  accountId: undefined,
  grade: undefined,
  matchStatus: undefined,
};

/** Days that a finding of the owner has part in. */
const foundDays = ({ marker }: Owned): matches.MatchDay[] =>
  ['m-1', 'm-2'].map((model) => ({ provider: 'openai', accountId: marker, model, day: '2026-03-10' }));

/** A day and a week on either side of it. */
const nearDays = (day: string): string[] => listDays(shiftDay(day, -7), shiftDay(day, 8));

/** Functions that read published comparisons. */
export const MATCH_CASES: Record<string, TenancyCase> = {
  listMatches: (db) => matches.listMatches(db, ALL, { limit: 100, offset: 0, after: undefined }),
  readMatches: (db) => readMatches(db, ALL, { limit: 100, offset: 0, after: undefined }),
  exploreGaps: (db) =>
    exploreGaps(
      db,
      { fromDay: ALL.fromDay, toDay: ALL.toDay, provider: null, hourly: false },
      { flaggedOnly: false, unmatchedOnly: false },
      { limit: 100, offset: 0, after: undefined },
    ),
  readMonthSummary: (db) => readMonthSummary(db, '2100-01-01'),
  sumMatches: (db) => matches.sumMatches(db, ALL),
  listCoverage: (db) => listCoverage(db, 'model', ALL),
  listBilledKeyDays: (db) => listBilledKeyDays(db, ALL),
  listObservedKeyDays: (db) => listObservedKeyDays(db, ALL),
  readProviderDay: (db, { provider, day }) =>
    readProviderDay(db, { provider, day }, { nowMicros: 0n, observedSince: new Map(), withHours: false }),
  reconcileBills: (db, { provider, day, prices }) =>
    reconcileBills(
      db,
      { provider, fromDay: day, toDay: day, nowMicros: 0n },
      { agreed: prices, list: prices.list },
      DEFAULT_WEIGHTS,
    ),
  readCoverage: (db) => readCoverage(db, 'day', ALL),
  listFocusDays: (db) => listFocusDays(db, ALL),
  listFocusCharges: (db, { provider, day }) => listFocusCharges(db, { provider, day }),
  listComparedModels: async (db, { provider, day }) => {
    const models = [];
    // The bill's own days and, of the connection, those before today: some have been compared as they are.
    for (const at of [...nearDays(day), ...nearDays(dayOf(BigInt(Date.now()) * 1_000n))])
      models.push(...(await listComparedModels(db, { provider, day: at })));
    return models;
  },
  streamFocusRecords: async (db, { day, prices }) => {
    const days = [];
    const agreed = { agreed: prices, list: prices.list };
    for await (const records of streamFocusRecords(db, `${day.slice(0, 7)}-01`, agreed)) days.push(records);
    return days;
  },
  listMatchFindings: (db, of) => matches.listMatchFindings(db, foundDays(of)),
  listMatchDisputes: (db, of) => matches.listMatchDisputes(db, foundDays(of)),
};
