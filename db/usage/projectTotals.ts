import { isoFromMicros } from '../../domain/period.js';
import type { SqlValue, SystemDb } from '../orgDb.js';
import { add, LATE, mergeSeen, OWN_TIME, SEEN } from './foldSql.js';
import { MEASURE_NAMES, MEASURES, usageLogSql } from './usageLog.js';

/** The totals of an organization's projects, by the labels and the day (docs/decisions/0006). */

const LABELS = `project_id, (timestamp at time zone 'UTC')::date, provider, model, coalesce(team_id, ''), coalesce(feature, '')`;
const CELL = 'org_id, project_id, day, provider, model, team_id, feature';

const FOLD_CELLS = `
insert into project_cells (${CELL}, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen)
select $1, ${LABELS}, ${MEASURES}, ${SEEN}
from (${OWN_TIME} and project_id is not null) log
group by 2, 3, 4, 5, 6, 7
on conflict (${CELL}) do update set ${add('project_cells', MEASURE_NAMES)}, ${mergeSeen('project_cells')}`;

const LATE_CELL = `${CELL}, booked_on, session_id, user_id`;

const FOLD_LATE = `
insert into project_adjustments (${LATE_CELL}, ${MEASURE_NAMES.join(', ')}, first_seen, last_seen)
select $1, ${LABELS}, booked_on, session_id, coalesce(user_id, ''), ${MEASURES}, ${SEEN}
from (${LATE} and project_id is not null) log
group by 2, 3, 4, 5, 6, 7, 8, 9, 10
on conflict (${LATE_CELL}) do update set ${add('project_adjustments', MEASURE_NAMES)}, ${mergeSeen('project_adjustments')}`;

// Of the events one look into the index of projects; of the copies those of the range, which are few.
const HAS_PROJECTS = `
select exists (select from events where org_id = $1 and project_id is not null)
  or exists (select from (${usageLogSql('$2', '$3')}) log where project_id is not null) as has_projects`;

/** Whether any call of the organization, or of a range of transactions, names a project. */
export async function hasProjects(system: SystemDb, range: readonly SqlValue[]): Promise<boolean> {
  const [row] = await system.rows<{ has_projects: boolean }>(HAS_PROJECTS, range, 'fold_has_projects');
  return row?.has_projects ?? false;
}

/** Folds a range of transactions, [organization, from, below], into the totals of projects. */
export async function foldProjects(
  system: SystemDb,
  range: readonly SqlValue[],
  closedUntil: bigint | null,
): Promise<void> {
  if (!(await hasProjects(system, range))) return;
  const booked = [...range, closedUntil === null ? null : isoFromMicros(closedUntil)];
  await system.run(FOLD_CELLS, booked, 'fold_projects');
  if (closedUntil !== null) await system.run(FOLD_LATE, booked, 'fold_late_projects');
}
