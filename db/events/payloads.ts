import { PAYLOAD_BYTES_MAX } from '../../domain/events/event.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb } from '../orgDb.js';
import { jsonLines, jsonLinesSql, plainArray, textArray } from '../pgArray.js';
import type { StorableEvent } from './eventColumns.js';

/** Adds what later parts of locked events carry to the stored payloads; a sum over the limit changes nothing. */
export async function completePayloads(orgDb: OrgDb, events: readonly StorableEvent[]): Promise<void> {
  const carrying = events.filter(({ call: { payload } }) => payload !== null);
  if (carrying.length === 0) return;
  await orgDb.run(
    `insert into event_payloads as p (org_id, timestamp, event_id, payload)
     select $1::uuid, i.* from unnest($2::timestamptz[], $3::uuid[], ${jsonLinesSql('$4')}) as i (at, event_id, payload)
     on conflict (org_id, timestamp, event_id) do update set payload = p.payload || excluded.payload
     where jsonb_typeof(p.payload) = 'object' and jsonb_typeof(excluded.payload) = 'object'
       and not p.payload @> excluded.payload
       and octet_length((p.payload || excluded.payload)::text) <= ${PAYLOAD_BYTES_MAX}`,
    [
      orgDb.orgId,
      textArray(carrying.map(({ call }) => isoFromMicros(call.startMicros))),
      plainArray(carrying.map(({ id }) => id)),
      jsonLines(carrying.map(({ call }) => call.payload)),
    ],
  );
}
