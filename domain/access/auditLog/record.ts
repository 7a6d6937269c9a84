import type { AuditActor, AuditDetails, AuditEntry, AuditSubject } from './actions.js';

/** Longest string of the details, characters; longer ones are cut. */
const DETAIL_CHARS_MAX = 256;
/** Longest list of the details; of longer ones the first are told. */
const DETAIL_ITEMS_MAX = 20;
const DETAIL_NAMES_MAX = 32;
/** Longest details as text; the column takes three bytes for each. */
const DETAILS_CHARS_MAX = 5_000;
/** As the columns have it. */
const ACTOR_CHARS_MAX = 128;
const SUBJECT_CHARS_MAX = 256;
const REQUEST_CHARS_MAX = 128;

/** What a row's hash is over, but for the hash of the row before. */
export interface AuditRecord {
  orgId: string;
  seq: number;
  atMicros: bigint;
  action: string;
  actor: AuditActor;
  subject: AuditSubject | null;
  /** The details as they are stored, character by character. */
  details: string;
  requestId: string | null;
}

/** The hash that stands before the first row of every chain. */
export const FIRST_PREV_HASH = '0'.repeat(64);

/** An entry as it is stored: texts that Postgres can hold, no longer than the columns. */
export function auditFields(entry: AuditEntry): Omit<AuditRecord, 'orgId' | 'seq' | 'atMicros'> {
  const { action, actor, subject, requestId } = entry;
  return {
    action,
    actor: { kind: actor.kind, id: cut(actor.id, ACTOR_CHARS_MAX) },
    subject: subject && { type: subject.type, id: cut(subject.id, SUBJECT_CHARS_MAX) },
    details: detailsText(entry.details),
    requestId: requestId === null ? null : cut(requestId, REQUEST_CHARS_MAX),
  };
}

/**
 * The text that a row's hash is over, together with the hash of the row before: JSON with its keys in this order and no
 * space. The details stand in it as a string, so that no text in them can pass for a field.
 */
export function auditText(record: AuditRecord): string {
  return `{"seq":${record.seq},"at":${record.atMicros}${restOfAuditText(record)}`;
}

/** What follows the number and the time, which the database gives when it adds the row. */
export function restOfAuditText(record: Omit<AuditRecord, 'seq' | 'atMicros'>): string {
  const rest = {
    org_id: record.orgId,
    action: record.action,
    actor_kind: record.actor.kind,
    actor_id: record.actor.id,
    subject_type: record.subject?.type ?? null,
    subject_id: record.subject?.id ?? null,
    details: record.details,
    request_id: record.requestId,
  };
  return `,${JSON.stringify(rest).slice(1)}`;
}

/** Names in alphabetical order; what is undefined is left out. */
function detailsText(details: AuditDetails): string {
  const names = Object.keys(details)
    .filter((name) => details[name] !== undefined)
    .sort()
    .slice(0, DETAIL_NAMES_MAX);
  const text = JSON.stringify(Object.fromEntries(names.map((name) => [name, smallValue(details[name])])));
  return text.length <= DETAILS_CHARS_MAX ? text : JSON.stringify({ too_long_to_keep: names.join(' ') });
}

function smallValue(value: AuditDetails[string]): unknown {
  if (typeof value === 'string') return cut(value, DETAIL_CHARS_MAX);
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (!Array.isArray(value)) return value;
  const shown = value.slice(0, DETAIL_ITEMS_MAX).map((item: string) => cut(item, DETAIL_CHARS_MAX));
  return value.length > shown.length ? [...shown, `and ${value.length - shown.length} more`] : shown;
}

/** At most so many UTF-16 units, without halves of characters and without U+0000, which Postgres does not store. */
function cut(text: string, charsMax: number): string {
  const storable = text.replaceAll('\u0000', '\ufffd').toWellFormed();
  if (storable.length <= charsMax) return storable;
  return `${storable.slice(0, charsMax - 1).toWellFormed()}…`;
}
