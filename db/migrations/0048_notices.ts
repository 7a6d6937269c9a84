import type { Migration } from './migration.js';

const MESSAGES_BEFORE = `'alert.created', 'claim.created', 'claim.reminder', 'claim.status_changed', 'dispute.opened', 'dispute.resolved', 'gap_run.completed', 'webhook.test', 'invoice.processed', 'invoice.failed', 'report.generated'`;

/** Formats of webhook endpoints for people, e-mail among them, and the daily digest. */
export const notices: Migration = {
  name: '0048_notices',
  up: `
alter table webhook_endpoints
  alter column url drop not null,
  add column format text not null default 'standard' check (format in ('standard', 'slack', 'teams', 'email')),
  add column digest text not null default 'none' check (digest in ('none', 'daily')),
  -- the address of an e-mail
  add column recipient text check (length(recipient) between 3 and 254),
  -- SHA-256 of the token in its mails that ends them
  add column unsubscribe_hash bytea,
  -- of the schedule of reports whose delivery it is; such an endpoint has the delivery's id and gets nothing else
  add column report_cadence text check (report_cadence in ('weekly', 'monthly')),
  add check ((format = 'email') = (recipient is not null)),
  add check ((format = 'email') = (url is null)),
  add check (report_cadence is null or format = 'email');
create index webhook_endpoints_unsubscribe on webhook_endpoints (unsubscribe_hash) where unsubscribe_hash is not null;
alter table webhook_endpoints drop constraint webhook_endpoints_disabled_reason_check;
alter table webhook_endpoints add constraint webhook_endpoints_disabled_reason_check check (disabled_reason in ('requested', 'gone', 'unsubscribed'));

alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${MESSAGES_BEFORE}, 'digest.daily'));
-- A digest has a line for each notice.
alter table webhook_messages drop constraint webhook_messages_body_check;
alter table webhook_messages add constraint webhook_messages_body_check check (length(body) <= 131072);

alter table webhook_deliveries drop constraint webhook_deliveries_status_check;
alter table webhook_deliveries add constraint webhook_deliveries_status_check check (status in ('pending', 'delivered', 'failed', 'cancelled', 'gathered'));
-- the delivery of the digest that the message is in
alter table webhook_deliveries add column digest_delivery_id uuid;
`,
  down: `
set local role app_system;
delete from webhook_attempts a using webhook_deliveries d, webhook_endpoints e
where a.org_id = d.org_id and a.delivery_id = d.id and d.org_id = e.org_id and d.endpoint_id = e.id and (e.format <> 'standard' or e.digest <> 'none');
delete from webhook_deliveries d using webhook_endpoints e
where d.org_id = e.org_id and d.endpoint_id = e.id and (e.format <> 'standard' or e.digest <> 'none');
delete from webhook_messages where type = 'digest.daily';
delete from webhook_endpoints where format <> 'standard';
update webhook_endpoints set disabled_reason = 'requested' where disabled_reason = 'unsubscribed';
update webhook_deliveries set status = 'cancelled' where status = 'gathered';
reset role;
alter table webhook_deliveries drop column digest_delivery_id;
alter table webhook_deliveries drop constraint webhook_deliveries_status_check;
alter table webhook_deliveries add constraint webhook_deliveries_status_check check (status in ('pending', 'delivered', 'failed', 'cancelled'));
alter table webhook_messages drop constraint webhook_messages_type_check;
alter table webhook_messages add constraint webhook_messages_type_check check (type in (${MESSAGES_BEFORE}));
alter table webhook_messages drop constraint webhook_messages_body_check;
alter table webhook_messages add constraint webhook_messages_body_check check (length(body) <= 16384);
alter table webhook_endpoints drop constraint webhook_endpoints_disabled_reason_check;
alter table webhook_endpoints add constraint webhook_endpoints_disabled_reason_check check (disabled_reason in ('requested', 'gone'));
drop index webhook_endpoints_unsubscribe;
alter table webhook_endpoints
  drop column report_cadence, drop column unsubscribe_hash, drop column recipient, drop column digest, drop column format,
  alter column url set not null;
`,
};
