import type { OrgDb } from '../../db/orgDb.js';
import { findAlert, recordAcknowledgement, type StoredAlert } from '../../db/policies/alerts.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';

function alertNotFound(): DomainError {
  return new DomainError('not_found', 'there is no alert with this id');
}

/** The uuid in an alert's public id. Error not_found. */
export function uuidOfAlert(id: string): string {
  const uuid = findUuid('alr', id);
  if (uuid === undefined) throw alertNotFound();
  return uuid;
}

/** An alert, or the one that stands for it where two events turned out to be one call. Error not_found. */
export async function getAlert(orgDb: OrgDb, id: string): Promise<StoredAlert> {
  const alert = await findAlert(orgDb, id);
  if (!alert) throw alertNotFound();
  return alert;
}

/** Acknowledges an alert; a repeat changes nothing, and the first one stays. Error not_found. */
export async function acknowledgeAlert(
  orgDb: OrgDb,
  id: string,
  author: RequestAuthor,
): Promise<StoredAlert> {
  return orgDb.transaction(async (inside) => {
    for (;;) {
      const alert = await getAlert(inside, id);
      if (alert.status !== 'open') return alert;
      const acknowledged = await recordAcknowledgement(inside, alert.id, author.caller.keyId);
      // Another request was first, or another alert has come to stand for this one: look again.
      if (!acknowledged) continue;
      const subject = { type: 'alert', id: publicId('alr', acknowledged.id) };
      await recordAction(inside, author, 'alert.acknowledged', subject);
      return acknowledged;
    }
  });
}
