import { EVENT_COLUMNS } from '../../domain/events/event.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { PAYLOAD_JOIN } from './storedEvents.js';

/** Rows of one partition of an export. */
export const EXPORT_PARTITION_ROWS = 500;

/** Where the columns that the keyset needs stand in an exported row. */
export const EXPORT_ID_INDEX = EVENT_COLUMNS.indexOf('id');
export const EXPORT_TIMESTAMP_INDEX = EVENT_COLUMNS.indexOf('timestamp');

const LIST_COLUMNS: ReadonlySet<string> = new Set(['price_gaps', 'usage_missing', 'usage_flags']);

/** `project` names the parameter of the handle's project. Times alone are read in the index's order (docs/decisions/0042). */
const EXPORT_BASE = (includePayload: boolean, after: boolean, project: string | undefined) => `
select ${EVENT_COLUMNS.map((name) => (LIST_COLUMNS.has(name) ? `array_to_json(e.${name})` : `e.${name}`)).join(', ')}
  ${includePayload ? `, p.payload, p.tool_input, p.tool_output, p.service` : ''}
from (select * from events e where e.org_id = $1 and e.timestamp >= $2::timestamptz and e.timestamp < $3::timestamptz and e.ingested_at <= $4::timestamptz
  and e.superseded_by is null ${project === undefined ? '' : `and e.project_id = ${project}`}
  ${after ? 'and e.timestamp >= $5::timestamptz and (e.timestamp, e.id) > ($5::timestamptz, $6::uuid)' : ''}
  order by e.timestamp fetch first ${EXPORT_PARTITION_ROWS} rows with ties) e ${includePayload ? PAYLOAD_JOIN : ''}
order by e.timestamp, e.id
limit ${EXPORT_PARTITION_ROWS}`;

/**
 * The events of a window in partitions of 500 rows, oldest first, as texts in the order of EVENT_COLUMNS (then the
 * payload columns). Each partition is its own short transaction; events ingested after `snapshotMicros` stay out, so
 * the tail cannot move while a slow client reads.
 */
export async function* streamEventTexts(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint; snapshotMicros: bigint },
  includePayload: boolean,
): AsyncGenerator<(string | null)[][]> {
  const base: SqlValue[] = [
    orgDb.orgId,
    isoFromMicros(window.fromMicros),
    isoFromMicros(window.toMicros),
    isoFromMicros(window.snapshotMicros),
  ];
  const { projectId } = orgDb;
  const ofProject = projectId === undefined ? [] : [projectId];
  const variant = includePayload ? 'payload' : 'plain';
  const read = (after: (string | null)[] | undefined) => {
    const place =
      after === undefined ? [] : [after[EXPORT_TIMESTAMP_INDEX] ?? null, after[EXPORT_ID_INDEX] ?? null];
    const values = [...base, ...place, ...ofProject];
    const project = projectId === undefined ? undefined : `$${values.length}`;
    const statement = EXPORT_BASE(includePayload, after !== undefined, project);
    // Prepared, Postgres would plan for a project of average size: it sorts all that is left of the window for each page.
    const name =
      project === undefined ? `export_${after === undefined ? 'first' : 'next'}_${variant}` : undefined;
    return orgDb.textRows(statement, values, name);
  };
  let rows = await read(undefined);
  while (rows.length > 0) {
    const last = rows.length === EXPORT_PARTITION_ROWS ? rows[rows.length - 1] : undefined;
    // The next partition is read while this one is written out.
    const next = last ? read(last) : Promise.resolve([]);
    next.catch(() => undefined);
    yield rows;
    rows = await next;
  }
}
