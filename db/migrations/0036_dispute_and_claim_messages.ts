import type { Migration } from './migration.js';

const TYPES_BEFORE = `'alert.created', 'claim.created', 'claim.status_changed', 'dispute.opened', 'gap_run.completed', 'webhook.test'`;
const ADDED = `'claim.reminder', 'dispute.resolved'`;

/** Webhook messages of reminders and of resolved disputes. */
export const disputeAndClaimMessages: Migration = {
  name: '0036_dispute_and_claim_messages',
  up: `
alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${TYPES_BEFORE}, ${ADDED}));
`,
  down: `
set local role app_system;
delete from webhook_attempts a using webhook_deliveries d, webhook_messages m
where a.org_id = d.org_id and a.delivery_id = d.id and d.org_id = m.org_id and d.message_id = m.id and m.type in (${ADDED});
delete from webhook_deliveries d using webhook_messages m
where d.org_id = m.org_id and d.message_id = m.id and m.type in (${ADDED});
delete from webhook_messages where type in (${ADDED});
reset role;
alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${TYPES_BEFORE}));
`,
};
