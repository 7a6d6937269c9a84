import { readCoverage } from '../../../../db/coverage.js';
import { listCoverage } from '../../../../db/queries/coverage.js';
import { listBilledKeyDays, listObservedKeyDays } from '../../../../db/queries/keyCoverage.js';
import * as matches from '../../../../db/queries/matches.js';
import type { TenancyCase } from './tenancyCase.js';

const ALL: matches.MatchFilter = {
  fromDay: '2020-01-01',
  toDay: '2100-01-01',
  provider: undefined,
  accountId: undefined,
  grade: undefined,
  matchStatus: undefined,
};

/** What is read of published comparisons. */
export const MATCH_CASES: Record<string, TenancyCase> = {
  listMatches: (db) => matches.listMatches(db, ALL, { limit: 100, offset: 0, after: undefined }),
  sumMatches: (db) => matches.sumMatches(db, ALL),
  listCoverage: (db) => listCoverage(db, 'model', ALL),
  listBilledKeyDays: (db) => listBilledKeyDays(db, ALL),
  listObservedKeyDays: (db) => listObservedKeyDays(db, ALL),
  readCoverage: (db) => readCoverage(db, 'day', ALL),
  listMatchFindings: async (db) =>
    matches.listMatchFindings(
      db,
      await db.rows<{ provider: string; accountId: string; model: string; day: string }>(
        `select provider, provider_account_id as "accountId", model, day from findings f
         join finding_days d on d.org_id = $1 and d.finding_id = f.id where f.org_id = $1`,
        [db.orgId],
      ),
    ),
};
