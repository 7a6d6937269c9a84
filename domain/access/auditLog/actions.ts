/**
 * What the audit log tells, a sentence each. Grows with each subject; none is ever renamed, since rows of it may exist
 * for years. docs/audit-log.md lists the same.
 */
export const AUDIT_ACTIONS = {
  'key.created': 'A key was made.',
  'key.changed': 'A key was given another name, expiry or scopes.',
  'key.rotated': 'A key got a new secret; the old one holds for its grace period.',
  'key.revoked': 'A key was revoked.',
  'workspace.created': 'A workspace was made.',
  'workspace.changed': 'A workspace was given another name.',
  'workspace.archived': 'A workspace was archived.',
  'settings.changed': 'Settings of the organization were changed.',
  'connection.created': 'A provider’s bills were connected.',
  'connection.changed': 'A connection was renamed, paused, narrowed or given other credentials.',
  'connection.ended': 'A connection was ended and its credentials erased.',
  'connection.tested': 'The credentials of a connection were tried.',
  'connection.sync_started': 'A sync of a connection was asked for.',
  'own_price.created': 'A contract rate or an override was entered.',
  'own_price.ended': 'A contract rate or an override was ended.',
  'provider_key.changed': 'Entries of the organization’s keys at providers were made or changed.',
  'billing_import.created': 'A file of a bill was uploaded.',
  'gap_run.started': 'A comparison of bills and calls was asked for.',
  'gap_run.cancelled': 'A comparison of bills and calls was stopped.',
  'repricing.started': 'A pricing anew of stored calls was asked for.',
  'repricing.cancelled': 'A pricing anew of stored calls was stopped.',
  'period.closed': 'A month was closed.',
  'policy.put': 'A policy was made, changed, switched on or off.',
  'policy.previewed': 'A policy was tried on recent calls.',
  'alert.acknowledged': 'An alert was acknowledged.',
  'webhook.created': 'A webhook endpoint was made.',
  'webhook.changed':
    'A webhook endpoint was given another address, other events or another description, or switched on or off.',
  'webhook.removed': 'A webhook endpoint was removed and its secret erased.',
  'webhook.secret_rotated':
    'A webhook endpoint got a new secret; the old one signs too for its grace period.',
  'webhook.tested': 'A test message was sent to a webhook endpoint.',
  'webhook.redelivered': 'A message was sent to a webhook endpoint again.',
  'webhook.disabled': 'A webhook endpoint was disabled because its receiver answered 410.',
  'enforcement_rule.created': 'An enforcement rule was made.',
  'enforcement_rule.changed': 'An enforcement rule was changed, switched on or off.',
  'enforcement_rule.removed': 'An enforcement rule was removed.',
  'savings_run.started': 'A modeling of what the enforcement rules would save was asked for.',
  'finding.confirmed': 'A finding was confirmed and a dispute opened over it.',
  'finding.dismissed': 'A finding was dismissed.',
  'dispute.resolved': 'A dispute was resolved without a claim.',
  'claim.created': 'A claim was drafted over disputes.',
  'claim.merged': 'Drafts of claims were merged into one.',
  'claim.discarded': 'The draft of a claim was discarded; its disputes stay open.',
  'claim.submitted': 'A claim was sent to the provider.',
  'claim.status_changed': 'What a provider did about a claim was recorded.',
  'claim.ticket_drafted': 'The text of a support ticket was drafted for an escalated claim.',
  'claim.credit_rejected': 'A proposed credit for a claim was rejected.',
  'claim.snoozed': 'Reminders of a claim were put off.',
  'export.started': 'An export of calls was begun.',
  'payload.read': 'Prompts and answers of calls were read.',
  'auth.failed': 'A request came with a key of the organization that was refused.',
  'secret.rotated': 'Stored credentials were sealed anew under another secret key.',
  'database.restored': 'A backup was restored; what was done after it was taken is lost.',
  'calls.repaired': 'Calls that an earlier version counted more than once were reduced to one event each.',
  'retention.ran': 'Calls that are older than calls are kept were removed.',
  'audit_log.checkpointed': 'Old rows of this log were replaced by a signed checkpoint.',
} as const;

export type AuditAction = keyof typeof AUDIT_ACTIONS;

/** Who may stand behind a row: a key of the API, a command on the server, or the service of itself. */
export const ACTOR_KINDS = ['key', 'command', 'system'] as const;

export interface AuditActor {
  kind: (typeof ACTOR_KINDS)[number];
  /** The key's id, the command's name, or the duty's name. */
  id: string;
}

/** What an action was done to: `type` in snake_case, `id` as the API writes it. */
export interface AuditSubject {
  type: string;
  id: string;
}

/** Small values that tell a row's circumstances: no secrets and no text of prompts. */
export type AuditDetails = {
  readonly [name: string]: string | number | boolean | null | readonly string[] | undefined;
};

/** One thing that was done, before it has its place in the chain. */
export interface AuditEntry {
  action: AuditAction;
  actor: AuditActor;
  subject: AuditSubject | null;
  details: AuditDetails;
  requestId: string | null;
}

/** What the log says of a key that a command makes without being asked for one: the first start's, and the demo's. */
export function keyMadeBy(command: string, key: { id: string; name: string; role: string }): AuditEntry {
  return {
    action: 'key.created',
    actor: { kind: 'command', id: command },
    subject: { type: 'key', id: key.id },
    details: { name: key.name, role: key.role },
    requestId: null,
  };
}
