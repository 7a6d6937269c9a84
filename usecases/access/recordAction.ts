import { recordAudit } from '../../db/access/auditLog.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { AuditAction, AuditActor, AuditDetails, AuditSubject } from '../../domain/access/auditLog.js';

/** The author of a request's action. */
export interface RequestAuthor {
  caller: { keyId: string; actor?: AuditActor };
  requestId: string;
}

/** The actor of a caller: its key, unless it signed in without one. */
export function actorOf({ keyId, actor }: RequestAuthor['caller']): AuditActor {
  return actor ?? { kind: 'key', id: keyId };
}

/** The author of a change that commands can make too. */
export function authorOf({ caller, requestId }: RequestAuthor): { actor: AuditActor; requestId: string } {
  return { actor: actorOf(caller), requestId };
}

/**
 * Adds an action to its organization's audit log: for a change as the last statement of its transaction, for a read
 * before anything is sent.
 */
export function recordAction(
  inside: OrgDb,
  request: RequestAuthor,
  action: AuditAction,
  subject: AuditSubject | null,
  details: AuditDetails = {},
): Promise<void> {
  return recordAudit(inside.leaveProject('the log is the whole organization’s'), {
    ...authorOf(request),
    action,
    subject,
    details,
  });
}
