/** Characters; longer strings of the details are cut. */
const DETAIL_CHARS_MAX = 256;
/** Longer lists of the details keep this many items and the count of the rest. */
const DETAIL_ITEMS_MAX = 20;
const DETAIL_NAMES_MAX = 32;
/** UTF-16 units; the column holds three bytes for each. */
const DETAILS_CHARS_MAX = 5_000;
/** These maxima equal those of the columns. */
const ACTOR_CHARS_MAX = 128;
const SUBJECT_CHARS_MAX = 256;
const REQUEST_CHARS_MAX = 128;

interface AuditRecord {
  orgId: string;
  seq: number;
  atMicros: bigint;
  action: string;
  actor: AuditActor;
  subject: AuditSubject | null;
  /** The details exactly as stored, since the hash covers each character. */
  details: string;
  requestId: string | null;
}

/** The previous hash of the first row of every chain. */
export const FIRST_PREV_HASH = '0'.repeat(64);

/** The fields of an entry to store, cut to the lengths of the columns and to text that Postgres can hold. */
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
 * The text that is hashed: JSON in this key order without spaces. Details are a JSON string, so they cannot
 * imitate a field.
 */
export function auditText(record: AuditRecord): string {
  return `{"seq":${record.seq},"at":${record.atMicros}${restOfAuditText(record)}`;
}

/** The hashed text after `seq` and `at`, which the database assigns when it adds the row. */
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

/** Names are in alphabetical order; undefined values are left out. */
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

/**
 * Cuts a text to `charsMax` UTF-16 units, never inside a surrogate pair, and removes U+0000, which Postgres does
 * not store.
 */
function cut(text: string, charsMax: number): string {
  const storable = text.replaceAll('\u0000', '\ufffd').toWellFormed();
  if (storable.length <= charsMax) return storable;
  return `${storable.slice(0, charsMax - 1).toWellFormed()}…`;
}

/**
 * The audit log's actions with a sentence each, as in docs/audit-log.md. They are never renamed, since rows last
 * for years.
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
  'price_proposal.applied': 'A proposed price was applied: it became an override.',
  'price_proposal.dismissed': 'A proposed price was dismissed.',
  'own_price.created': 'A contract rate or an override was entered.',
  'own_price.ended': 'A contract rate or an override was ended.',
  'provider_key.changed': 'Entries of the organization’s keys at providers were made or changed.',
  'billing_import.created': 'A file of a bill was uploaded.',
  'invoice.uploaded': 'An invoice was uploaded.',
  'invoice.line_corrected': 'A line of an invoice was corrected.',
  'invoice.confirmed': 'The reading of an invoice was confirmed: the document itself is wrong.',
  'invoice.retried': 'An invoice was read again.',
  'invoice.deleted': 'An invoice was deleted.',
  'branding.changed': 'The logo, colour, name or footer of reports was changed.',
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
  'webhook.disabled':
    'A webhook endpoint was disabled because its receiver answered 410, or the recipient of its mails ended them.',
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
  'report.requested': 'A management report was asked for.',
  'report_schedule.put': 'A schedule of reports was made or changed.',
  'report_schedule.removed': 'A schedule of reports was ended.',
  'export.started': 'An export of calls was begun.',
  'payload.read': 'Prompts and answers of calls were read.',
  'session.created': 'Somebody signed in with a key, a one-time link or an identity provider.',
  'session.refused': 'A person signed in at the identity provider, and none of their groups has a role.',
  'session.ended': 'A session was ended, by signing out or by somebody else.',
  'session.ended_all': 'All sessions of a key, a link or a person were ended.',
  'session.link_created': 'A one-time sign-in link was made.',
  'demo.requested': 'The demo company was asked for.',
  'demo.removed': 'The demo company was removed.',
  'auth.failed': 'A request came with a key of the organization that was refused.',
  'secret.rotated': 'Stored credentials were sealed anew under another secret key.',
  'database.restored': 'A backup was restored; what was done after it was taken is lost.',
  'calls.repaired': 'Calls that an earlier version counted more than once were reduced to one event each.',
  'retention.ran': 'Calls that are older than calls are kept were removed.',
  'audit_log.checkpointed': 'Old rows of this log were replaced by a signed checkpoint.',
} as const;

export type AuditAction = keyof typeof AUDIT_ACTIONS;

/**
 * An actor is an API key, the session of a one-time link, a person whom an identity provider knows, a command on the
 * server, or the service itself (`system`).
 */
export const ACTOR_KINDS = ['key', 'link', 'person', 'command', 'system'] as const;

export interface AuditActor {
  kind: (typeof ACTOR_KINDS)[number];
  /** The id of the key or link, a person's `sub` and e-mail, or the name of the command or of the service's job. */
  id: string;
}

/** The object of an action: `type` in snake_case, `id` as the API writes it. */
export interface AuditSubject {
  type: string;
  id: string;
}

/** Small values that describe the circumstances of an action, without secrets and prompt text. */
export type AuditDetails = {
  readonly [name: string]: string | number | boolean | null | readonly string[] | undefined;
};

/** An action to log, before it has a place in the chain. */
export interface AuditEntry {
  action: AuditAction;
  actor: AuditActor;
  subject: AuditSubject | null;
  details: AuditDetails;
  requestId: string | null;
}

/** The entry for a key that a command creates by itself: at the first start or in the demo. */
export function keyMadeBy(command: string, key: { id: string; name: string; role: string }): AuditEntry {
  return {
    action: 'key.created',
    actor: { kind: 'command', id: command },
    subject: { type: 'key', id: key.id },
    details: { name: key.name, role: key.role },
    requestId: null,
  };
}

/** A row of the log with its two hashes, in hex. */
export interface ChainedRecord extends AuditRecord {
  prevHash: string;
  hash: string;
}

/** A place in a chain: the hash of row `seq` covers that row and all rows before it. */
export interface ChainPoint {
  seq: number;
  hash: string;
}

/** The evidence that later rows existed: the stored head of the chain, or an anchor outside the database. */
type Witness = 'head' | 'anchor';

/** A way in which a chain differs from the one that was written. */
export type ChainFault =
  /** The row's hash does not match its content. */
  | { kind: 'row_edited'; seq: number }
  /** The row's previous hash is not the hash of the row before it: one of the two was rewritten. */
  | { kind: 'row_not_following'; seq: number }
  | { kind: 'rows_missing'; fromSeq: number; toSeq: number }
  /** Rows at the end of the chain are missing. */
  | { kind: 'tail_missing'; fromSeq: number; toSeq: number; witness: Witness }
  /** The stored head names another row or hash than the last row of the chain. */
  | { kind: 'head_differs'; seq: number; headSeq: number }
  /** An anchor contains another hash of row `seq`: the chain was rewritten after `agreedSeq`. */
  | { kind: 'rebuilt'; seq: number; agreedSeq: number };

/** Only the first faults are kept; the others are counted. */
const FAULTS_KEPT_MAX = 100;

interface ChainWalkOptions {
  /** sha256 over the bytes of a hash (hex) and a text, as hex. */
  digest(prevHash: string, text: string): string;
  /** The checkpoint at which the check starts; absent: the start of the chain. */
  start?: ChainPoint | undefined;
  /** Hashes by row, from the anchors. A row has several if anchors contradict each other. */
  anchors?: ReadonlyMap<number, readonly string[]>;
}

/** Checks a chain row by row and collects its faults. Holds no rows. */
export class ChainWalk {
  readonly #options: ChainWalkOptions;
  readonly #start: ChainPoint;
  #last: ChainPoint;
  #agreedSeq: number;
  #rows = 0;
  #anchored = 0;
  #faultCount = 0;
  readonly #faults: ChainFault[] = [];

  constructor(options: ChainWalkOptions) {
    this.#options = options;
    this.#start = options.start ?? { seq: 0, hash: FIRST_PREV_HASH };
    this.#last = this.#start;
    this.#agreedSeq = this.#start.seq;
    if (this.#start.seq > 0) this.#compareAnchors(this.#start);
  }

  /** Checks the next row. After a fault it continues from the stored hash, so that it finds later faults too. */
  next(record: ChainedRecord): void {
    this.#rows += 1;
    const { seq, hash } = record;
    if (seq > this.#last.seq + 1)
      this.#add({ kind: 'rows_missing', fromSeq: this.#last.seq + 1, toSeq: seq - 1 });
    const isEdited = this.#options.digest(record.prevHash, auditText(record)) !== hash;
    if (isEdited) this.#add({ kind: 'row_edited', seq });
    else if (seq === this.#last.seq + 1 && record.prevHash !== this.#last.hash)
      this.#add({ kind: 'row_not_following', seq });
    this.#last = { seq, hash };
    this.#compareAnchors(this.#last);
  }

  #compareAnchors(point: ChainPoint): void {
    const seen = this.#options.anchors?.get(point.seq);
    if (!seen) return;
    this.#anchored += 1;
    if (seen.every((hash) => hash === point.hash)) this.#agreedSeq = point.seq;
    else this.#add({ kind: 'rebuilt', seq: point.seq, agreedSeq: this.#agreedSeq });
  }

  /** Compares the end of the chain with the stored head and the newest anchor. */
  end(head: ChainPoint | undefined): ChainResult {
    const { seq, hash } = this.#last;
    const newestAnchor = Math.max(0, ...(this.#options.anchors?.keys() ?? []));
    if (head && head.seq > seq)
      this.#add({ kind: 'tail_missing', fromSeq: seq + 1, toSeq: head.seq, witness: 'head' });
    else if (seq > 0 && (head?.seq !== seq || head.hash !== hash))
      this.#add({ kind: 'head_differs', seq, headSeq: head?.seq ?? 0 });
    if (newestAnchor > seq)
      this.#add({ kind: 'tail_missing', fromSeq: seq + 1, toSeq: newestAnchor, witness: 'anchor' });
    return {
      rows: this.#rows,
      startSeq: this.#start.seq,
      lastSeq: seq,
      anchorsCompared: this.#anchored,
      agreedSeq: this.#agreedSeq,
      faults: this.#faults,
      faultCount: this.#faultCount,
    };
  }

  #add(fault: ChainFault): void {
    this.#faultCount += 1;
    if (this.#faults.length < FAULTS_KEPT_MAX) this.#faults.push(fault);
  }
}

export interface ChainResult {
  rows: number;
  /** The row of the checkpoint at which the check started; 0: the start of the chain. */
  startSeq: number;
  lastSeq: number;
  /** Number of rows that were compared with an anchor. */
  anchorsCompared: number;
  /** The last row at which all anchors agree: it and all rows before it are unchanged. */
  agreedSeq: number;
  faults: readonly ChainFault[];
  faultCount: number;
}

/**
 * An anchor records the end of a chain outside the database. `restored` invalidates the older anchors of later
 * rows.
 */
const ANCHOR_KINDS = ['head', 'restored'] as const;

export interface AuditAnchor {
  kind: (typeof ANCHOR_KINDS)[number];
  orgId: string;
  /** 0: a restored database has no row of the organization. */
  seq: number;
  hash: string;
  atMicros: bigint;
}

/** A signature and the id of its key, both in hex. */
export interface Signature {
  keyId: string;
  signature: string;
}

/** `unknown_key`: no available key has the signature's key id. */
export type SignatureVerdict = 'good' | 'forged' | 'unknown_key';

/** The purpose from which the signing key of anchors is derived; each purpose has its own key. */
export const ANCHOR_PURPOSE = 'audit log anchor';

/** The name of an anchor's field in a line of an anchor file or of the service's log. */
const LINE_KEY = 'audit_anchor';

export function anchorText(anchor: AuditAnchor): string {
  return JSON.stringify([anchor.kind, anchor.orgId, anchor.seq, anchor.hash, String(anchor.atMicros)]);
}

export function anchorLine(anchor: AuditAnchor, signed: Signature): Record<string, object> {
  return {
    [LINE_KEY]: {
      kind: anchor.kind,
      org_id: anchor.orgId,
      seq: anchor.seq,
      hash: anchor.hash,
      at: Number(anchor.atMicros),
      key_id: signed.keyId,
      signature: signed.signature,
    },
  };
}

/** Reads the anchor of a line. Undefined: the line has no anchor; `unreadable`: it is cut off or changed. */
export function parseAnchorLine(
  line: string,
): { anchor: AuditAnchor; signed: Signature } | undefined | 'unreadable' {
  if (!line.includes(`"${LINE_KEY}"`)) return undefined;
  const found = parseObject(line)?.[LINE_KEY] as Record<string, unknown> | undefined;
  const { kind, org_id: orgId, seq, hash, at, key_id: keyId, signature } = found ?? {};
  const known = ANCHOR_KINDS.find((one) => one === kind);
  if (
    known === undefined ||
    typeof orgId !== 'string' ||
    !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(orgId) ||
    typeof seq !== 'number' ||
    !Number.isSafeInteger(seq) ||
    seq < 0 ||
    typeof hash !== 'string' ||
    typeof at !== 'number' ||
    !Number.isSafeInteger(at) ||
    typeof keyId !== 'string' ||
    typeof signature !== 'string'
  )
    return 'unreadable';
  return {
    anchor: { kind: known, orgId, seq, hash, atMicros: BigInt(at) },
    signed: { keyId, signature },
  };
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Rows of an organization that a restore lost: after `seq`, up to `lostToSeq`. */
interface RestoreOfChain {
  atMicros: bigint;
  seq: number;
  lostToSeq: number;
}

export interface SettledAnchors {
  /** The valid hashes by row. */
  hashes: Map<number, string[]>;
  newestAtMicros: bigint | undefined;
  restores: RestoreOfChain[];
}

/**
 * Applies anchors by time: a restore invalidates older anchors of later rows, and those of its own row with
 * another hash.
 */
export function settleAnchors(anchors: readonly AuditAnchor[]): SettledAnchors {
  const hashes = new Map<number, string[]>();
  const restores: RestoreOfChain[] = [];
  const inOrder = [...anchors].sort((a, b) => Number(a.atMicros - b.atMicros));
  for (const { kind, seq, hash, atMicros } of inOrder) {
    if (kind === 'restored') {
      const lost = [...hashes].flatMap(([known, seen]) =>
        known > seq || (known === seq && seen.some((one) => one !== hash)) ? [known] : [],
      );
      for (const known of lost) hashes.delete(known);
      if (lost.length > 0) restores.push({ atMicros, seq, lostToSeq: Math.max(...lost) });
    }
    const known = hashes.get(seq) ?? [];
    if (seq > 0 && !known.includes(hash)) hashes.set(seq, [...known, hash]);
  }
  return { hashes, newestAtMicros: inOrder.at(-1)?.atMicros, restores };
}

/** Replaces the rows of an organization up to `seq` after retention deleted them. */
export interface AuditCheckpoint {
  orgId: string;
  seq: number;
  /** Time of row `seq`. */
  atMicros: bigint;
  /** Hash of row `seq`, hex. */
  hash: string;
  madeAtMicros: bigint;
}

/** The purpose from which the signing key of checkpoints is derived; each purpose has its own key. */
export const CHECKPOINT_PURPOSE = 'audit log checkpoint';

export function checkpointText(checkpoint: AuditCheckpoint): string {
  const { orgId, seq, atMicros, hash, madeAtMicros } = checkpoint;
  return JSON.stringify(['checkpoint', orgId, seq, String(atMicros), hash, String(madeAtMicros)]);
}
