import type { MessageType } from '../../domain/webhooks/message.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

/** A message as it is to be sent. */
export interface NewMessage {
  /** uuid; receivers tell repeats by it. */
  id: string;
  type: MessageType;
  /** `messageBody` of domain/webhooks. */
  body: string;
}

/**
 * Leaves messages for every active endpoint that wants their type, with the outbox message that wakes its workflow.
 * Call it in the transaction of what they tell of. A message that nobody wants is not kept, and one that was left before
 * is not left again: a call that was removed for its age and is sent once more has the same alert.
 */
export async function publishMessages(orgDb: OrgDb, messages: readonly NewMessage[]): Promise<void> {
  if (messages.length === 0) return;
  await orgDb.run(
    `with told as (select * from unnest($2::uuid[], $3::text[], $4::text[]) as m (id, type, body)),
       wanted as (
         select e.id as endpoint_id, told.id as message_id from webhook_endpoints e join told
           on e.event_types = '{}' or told.type = any(e.event_types)
         where e.org_id = $1 and e.status = 'active' and e.removed_at is null),
       kept as (
         insert into webhook_messages (org_id, id, type, body)
         select $1::uuid, id, type, body from told where id in (select message_id from wanted)
         on conflict do nothing
         returning id),
       left_for as (
         insert into webhook_deliveries (org_id, id, endpoint_id, message_id)
         select $1::uuid, gen_random_uuid(), endpoint_id, message_id from wanted where message_id in (select id from kept)
         returning endpoint_id)
     insert into outbox (org_id, kind, subject_id) select distinct $1::uuid, 'webhook.deliver', endpoint_id from left_for`,
    [
      orgDb.orgId,
      plainArray(messages.map(({ id }) => id)),
      textArray(messages.map(({ type }) => type)),
      textArray(messages.map(({ body }) => body)),
    ],
  );
}
