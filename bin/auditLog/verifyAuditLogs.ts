import { cpSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { findAuditHead, listAuditHeads, recordAudit } from '../../db/access/auditLog.js';
import type { Database } from '../../db/client.js';
import { listOrganizations } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import {
  ANCHOR_PURPOSE,
  type AuditAnchor,
  anchorLine,
  anchorText,
  CHECKPOINT_PURPOSE,
  type ChainFault,
  type ChainPoint,
  FIRST_PREV_HASH,
  parseAnchorLine,
  type SettledAnchors,
  settleAnchors,
} from '../../domain/access/auditLog.js';
import { publicId } from '../../domain/ids.js';
import { isoFromMicros, microsFromDate } from '../../domain/period.js';
import type { Config } from '../../platform/config.js';
import { MonthlyLines, readLines } from '../../platform/monthlyLines.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { StartError } from '../../platform/startError.js';
import { type AuditVerification, verifyAuditLog } from '../../usecases/access/auditChain.js';

/** The content of the available anchors. */
export interface AnchorsAtHand {
  place: string;
  byOrganization: ReadonlyMap<string, SettledAnchors>;
  count: number;
  /** Lines without a valid signature of our keys. */
  forged: number;
  /** Ids of keys that are not available and signed some lines, with their number: those lines are still compared. */
  unknownKeys: ReadonlyMap<string, number>;
  /** Organizations whose newest anchor is signed by such a key: no verifiable signature covers their chain. */
  unvouched: number;
  unreadable: number;
}

/**
 * Reads anchors from a folder of anchor files or from one file, which may be a log of the service.
 * @throws StartError when an explicitly named path does not exist.
 */
export async function readAnchors(
  path: string,
  isAskedFor: boolean,
  keys: SecretKeys | undefined,
): Promise<AnchorsAtHand> {
  if (isAskedFor && !existsSync(path))
    throw new StartError(`There is no ${path}: give a file or a folder of anchors with --anchors.`);
  const isFile = existsSync(path) && statSync(path).isFile();
  const anchors = new Map<string, AuditAnchor[]>();
  const unknownKeys = new Map<string, number>();
  const newest = new Map<string, { atMicros: bigint; isSigned: boolean }>();
  let [count, forged, unreadable] = [0, 0, 0];
  for await (const line of readLines(isFile ? [path] : new MonthlyLines(path).listFiles())) {
    const found = parseAnchorLine(line);
    if (found === undefined) continue;
    if (found === 'unreadable') {
      unreadable += 1;
      continue;
    }
    const { anchor, signed } = found;
    const verdict = keys?.checkSignature(ANCHOR_PURPOSE, anchorText(anchor), signed) ?? 'unknown_key';
    if (verdict === 'forged') {
      forged += 1;
      continue;
    }
    if (verdict === 'unknown_key') {
      unknownKeys.set(signed.keyId, (unknownKeys.get(signed.keyId) ?? 0) + 1);
      // Anybody could have written it: a legitimate loss of rows is only accepted when it is signed.
      if (anchor.kind === 'restored') continue;
    }
    count += 1;
    if ((newest.get(anchor.orgId)?.atMicros ?? 0n) <= anchor.atMicros)
      newest.set(anchor.orgId, { atMicros: anchor.atMicros, isSigned: verdict === 'good' });
    const known = anchors.get(anchor.orgId);
    if (known) known.push(anchor);
    else anchors.set(anchor.orgId, [anchor]);
  }
  const byOrganization = new Map([...anchors].map(([orgId, found]) => [orgId, settleAnchors(found)]));
  const unvouched = [...newest.values()].filter(({ isSigned }) => !isSigned).length;
  return { place: path, byOrganization, count, forged, unknownKeys, unvouched, unreadable };
}

/** One organization's log with the result of its check. */
export interface VerifiedOrganization {
  id: string;
  name: string;
  /** Whether it is the demo, for which no anchors are written. */
  isDemo: boolean;
  verification: AuditVerification;
  anchors: SettledAnchors | undefined;
}

export interface AuditLogsVerified {
  organizations: VerifiedOrganization[];
  /** Organizations with a row that the service would never write, and the reason. */
  unreadable: { id: string; name: string; reason: string }[];
  /** Anchored organizations that the database lacks. */
  missing: { id: string; anchors: SettledAnchors }[];
  anchors: AnchorsAtHand;
}

/** Checks the log of one organization, or of all. */
export async function verifyAuditLogs(
  database: Database,
  options: { orgId: string | undefined; anchors: AnchorsAtHand; keys: SecretKeys | undefined },
): Promise<AuditLogsVerified> {
  const { orgId, anchors, keys } = options;
  const known = await listOrganizations(database);
  const organizations: VerifiedOrganization[] = [];
  const unreadable: AuditLogsVerified['unreadable'] = [];
  for (const { id, name, isDemo } of known.filter(
    (organization) => orgId === undefined || organization.id === orgId,
  )) {
    const own = anchors.byOrganization.get(id);
    const verification = await verifyAuditLog(new OrgDb(database, id), {
      ...(own ? { anchors: own.hashes } : {}),
      checkSignature: (text, signed) =>
        keys?.checkSignature(CHECKPOINT_PURPOSE, text, signed) ?? 'unknown_key',
    }).catch((error: unknown) => {
      // The row was not written by the service. The other organizations are still checked.
      if (error instanceof RangeError) return error;
      throw error;
    });
    if (verification instanceof RangeError) {
      unreadable.push({ id, name, reason: verification.message });
      continue;
    }
    organizations.push({ id, name, isDemo, verification, anchors: own });
  }
  const ids = new Set(known.map(({ id }) => id));
  const missing = [...anchors.byOrganization]
    .filter(([id, { hashes }]) => !ids.has(id) && (orgId === undefined || id === orgId) && hashes.size > 0)
    .map(([id, found]) => ({ id, anchors: found }));
  return { organizations, unreadable, missing, anchors };
}

/**
 * Result of a check: findings are tampering or loss; notes are parts that could not be checked, or explained
 * differences.
 */
export interface AuditLogReport {
  lines: string[];
  findings: number;
  /** Whether some part could not be checked. */
  isPartial: boolean;
}

/** Anchors are written every hour: rows that have none after this time are reported. */
const ANCHOR_PATIENCE_MICROS = 2n * 3_600_000_000n;
/** Most findings that are printed of one organization. */
const SHOWN_MAX = 20;

const rows = (from: number, to: number) => (from === to ? `row ${from}` : `rows ${from} to ${to}`);

function faultSentence(fault: ChainFault): string {
  switch (fault.kind) {
    case 'row_edited':
      return `row ${fault.seq} was edited: its hash is not that of what stands in it.`;
    case 'row_not_following':
      return `row ${fault.seq} does not follow from row ${fault.seq - 1}: one of the two was rewritten.`;
    case 'rows_missing':
      return `${rows(fault.fromSeq, fault.toSeq)} missing: deleted from the middle of the chain.`;
    case 'tail_missing':
      return fault.witness === 'anchor'
        ? `${rows(fault.fromSeq, fault.toSeq)} missing: deleted from the end of the chain; an anchor has seen row ${fault.toSeq}.`
        : `${rows(fault.fromSeq, fault.toSeq)} missing: deleted from the end of the chain, whose head still names row ${fault.toSeq}.`;
    case 'head_differs':
      return fault.headSeq === fault.seq
        ? `the head names another hash of row ${fault.seq} than the row has: one of the two was changed.`
        : `the chain ends with row ${fault.seq} and its head names row ${fault.headSeq}: one of the two was changed.`;
    case 'rebuilt':
      return `the chain was rewritten: row ${fault.seq} differs from the one that its anchor recorded; the change lies in rows ${fault.agreedSeq + 1} to ${fault.seq}.`;
  }
}

/** The sentences about everything that was checked. */
export function reportAuditLogs(verified: AuditLogsVerified, nowMicros: bigint): AuditLogReport {
  const report: AuditLogReport = { lines: [], findings: 0, isPartial: false };
  for (const organization of verified.organizations) reportOne(report, organization, nowMicros);
  for (const { id, name, reason } of verified.unreadable)
    find(
      report,
      `${publicId('org', id)} (${name}): a row cannot be read (${reason}): it was edited, and the chain cannot be followed past it.`,
    );
  for (const { id, anchors } of verified.missing)
    find(
      report,
      `${publicId('org', id)}: the organization is gone with all of its rows; an anchor has seen row ${newestSeq(anchors)}.`,
    );
  reportAnchors(report, verified.anchors);
  report.lines.push(
    report.findings > 0
      ? `${report.findings} ${report.findings === 1 ? 'finding' : 'findings'}: the audit log is not as it was written.`
      : report.isPartial
        ? 'Nothing was found, but not everything could be checked.'
        : 'The audit log is as it was written.',
  );
  return report;
}

function find(report: AuditLogReport, sentence: string): void {
  report.findings += 1;
  report.lines.push(`FOUND  ${sentence}`);
}

function note(report: AuditLogReport, sentence: string): void {
  report.isPartial = true;
  report.lines.push(`NOTE   ${sentence}`);
}

function newestSeq({ hashes }: SettledAnchors): number {
  return Math.max(0, ...hashes.keys());
}

function reportOne(report: AuditLogReport, organization: VerifiedOrganization, nowMicros: bigint): void {
  const { id, name, verification, anchors } = organization;
  const who = `${publicId('org', id)} (${name})`;
  const { faults, faultCount, checkpoint, leftoverSeq } = verification;
  const before = report.findings;
  for (const fault of faults.slice(0, SHOWN_MAX)) find(report, `${who}: ${faultSentence(fault)}`);
  if (faultCount > SHOWN_MAX) {
    report.findings += faultCount - SHOWN_MAX;
    report.lines.push(`       ${who}: and ${faultCount - SHOWN_MAX} more.`);
  }
  if (checkpoint?.verdict === 'forged')
    find(
      report,
      `${who}: the checkpoint at row ${checkpoint.checkpoint.seq} was not signed by this service: the rows before it may have been removed by another party.`,
    );
  if (checkpoint?.verdict === 'unknown_key')
    note(
      report,
      `${who}: the signature of the checkpoint at row ${checkpoint.checkpoint.seq} could not be checked: the secret key ${checkpoint.keyId} is not at hand.`,
    );
  if (leftoverSeq !== undefined)
    find(
      report,
      `${who}: row ${leftoverSeq} is there although the checkpoint at row ${checkpoint?.checkpoint.seq} replaces it.`,
    );
  for (const restore of anchors?.restores ?? [])
    report.lines.push(
      `NOTE   ${who}: a restore of ${isoFromMicros(restore.atMicros)} took the chain back to row ${restore.seq}; rows up to ${restore.lostToSeq} of before are lost with it.`,
    );
  reportUnanchored(report, who, organization, nowMicros);
  if (report.findings === before) report.lines.push(`OK     ${who}: ${summaryOf(organization)}`);
}

/** Reports rows without an anchor; for an hour that is normal. */
function reportUnanchored(
  report: AuditLogReport,
  who: string,
  { verification, anchors, isDemo }: VerifiedOrganization,
  nowMicros: bigint,
): void {
  const newest = anchors ? newestSeq(anchors) : 0;
  const { lastSeq, lastAtMicros } = verification;
  if (newest >= lastSeq) return;
  // An organization with anchors was no demo when they were written.
  if (isDemo && newest === 0) return;
  const waits = rows(newest + 1, lastSeq);
  if (newest === 0)
    note(report, `${who}: no anchor was found, so a deleted end and a rewritten chain cannot be detected.`);
  else if ((lastAtMicros ?? 0n) < nowMicros - ANCHOR_PATIENCE_MICROS)
    note(
      report,
      `${who}: ${waits} not anchored for more than two hours: does a worker run, and can it write the folder of the anchors?`,
    );
  else report.lines.push(`       ${who}: ${waits} not anchored yet.`);
}

function summaryOf({ verification }: VerifiedOrganization): string {
  const { rows: count, checkpoint, anchorsCompared, lastSeq } = verification;
  if (lastSeq === 0) return 'no rows yet.';
  const from = checkpoint ? ` from the checkpoint at row ${checkpoint.checkpoint.seq}` : '';
  return `${count} rows${from} to row ${lastSeq} follow from each other; ${anchorsCompared} of them were compared with anchors.`;
}

function reportAnchors(report: AuditLogReport, anchors: AnchorsAtHand): void {
  if (anchors.forged > 0)
    find(
      report,
      `${anchors.place}: ${anchors.forged} anchors were changed or not signed by this service; they were not used.`,
    );
  for (const [keyId, count] of anchors.unknownKeys) {
    const sentence = `${anchors.place}: the signatures of ${count} anchors could not be checked: the secret key ${keyId} is not at hand`;
    if (anchors.unvouched > 0) note(report, `${sentence}.`);
    // This is normal for years after each rotation of the key.
    else report.lines.push(`NOTE   ${sentence}; newer ones, which were, cover the same rows.`);
  }
  if (anchors.unreadable > 0)
    note(report, `${anchors.place}: ${anchors.unreadable} lines are broken off and were passed over.`);
}

/**
 * Accepts that the database was reset by means other than `trueup restore`: a provider's snapshot, or a replica that
 * took over without the last commits. Each chain that contradicts its anchors gets a row with the reason, and signed
 * anchors that withdraw those after the last place at which both agree. A chain that is broken in itself was edited and
 * not reset; then nothing is accepted. Returns a sentence for each chain.
 * @throws StartError for a chain that is broken in itself.
 */
export async function acceptRestore(
  database: Database,
  keys: SecretKeys,
  { anchors, files, because }: { anchors: AnchorsAtHand; files: MonthlyLines; because: string },
): Promise<string[]> {
  const known = await listOrganizations(database);
  const sentences: string[] = [];
  const lines: string[] = [];
  const atMicros = microsFromDate(new Date());
  const mark = (orgId: string, { seq, hash }: ChainPoint, at: bigint) => {
    const anchor: AuditAnchor = { kind: 'restored', orgId, seq, hash, atMicros: at };
    lines.push(JSON.stringify(anchorLine(anchor, keys.sign(ANCHOR_PURPOSE, anchorText(anchor)))));
  };
  const takenBack: { id: string; place: ChainPoint }[] = [];
  for (const { id } of known) {
    const hashes = anchors.byOrganization.get(id)?.hashes;
    const place = hashes && (await findLastAgreed(new OrgDb(database, id), keys, hashes));
    if (place) takenBack.push({ id, place });
  }
  for (const { id, place } of takenBack) {
    const orgDb = new OrgDb(database, id);
    await recordAudit(orgDb, {
      action: 'database.restored',
      actor: { kind: 'command', id: 'audit-log:restored' },
      subject: null,
      details: { because, agreed_through_seq: place.seq },
      requestId: null,
    });
    const head = await findAuditHead(orgDb);
    mark(id, place, atMicros);
    if (head) mark(id, head, atMicros + 1n);
    sentences.push(`${publicId('org', id)}: rows after row ${place.seq} are lost; the chain goes on.`);
  }
  const ids = new Set(known.map(({ id }) => id));
  for (const [id, { hashes }] of anchors.byOrganization) {
    if (ids.has(id) || hashes.size === 0) continue;
    mark(id, { seq: 0, hash: FIRST_PREV_HASH }, atMicros);
    sentences.push(`${publicId('org', id)}: is lost with all of its rows.`);
  }
  files.append(lines, new Date());
  return sentences;
}

/** The last place at which a chain and its anchors agree; undefined: they agree throughout. */
async function findLastAgreed(
  orgDb: OrgDb,
  keys: SecretKeys,
  hashes: ReadonlyMap<number, readonly string[]>,
): Promise<ChainPoint | undefined> {
  const checkSignature = (text: string, signed: { keyId: string; signature: string }) =>
    keys.checkSignature(CHECKPOINT_PURPOSE, text, signed);
  const held = await verifyAuditLog(orgDb, { anchors: hashes, checkSignature });
  if (held.faultCount === 0) return undefined;
  if (isBroken(await verifyAuditLog(orgDb, { checkSignature })))
    throw new StartError(
      `The log of ${publicId('org', orgDb.orgId)} is broken in itself, which no restore does: nothing was accepted. Look at it with ./trueup audit-log verify.`,
    );
  // Later anchors may agree again, after the place at which they diverge.
  const parted = held.faults.find((fault) => fault.kind === 'rebuilt');
  const seq = parted?.agreedSeq ?? held.agreedSeq;
  const start = held.checkpoint?.checkpoint;
  const hash = start?.seq === seq ? start.hash : (hashes.get(seq)?.[0] ?? FIRST_PREV_HASH);
  return { seq, hash };
}

const isBroken = ({ faultCount, checkpoint, leftoverSeq }: AuditVerification): boolean =>
  faultCount > 0 || checkpoint?.verdict === 'forged' || leftoverSeq !== undefined;

export const ANCHORS_NAME = 'audit-anchors';

/** The anchors' folder where a setting names one outside of the data directory; undefined: it is part of the data. */
export function outsideAnchorFolder(config: Config): string | undefined {
  const { auditAnchorDir, dataDir } = config;
  return auditAnchorDir === join(dataDir, ANCHORS_NAME) ? undefined : auditAnchorDir;
}

/**
 * Records the restore in every organization's audit log, and returns the anchor lines that state where each chain
 * continues: later rows of earlier anchors are lost with the restore, which is not tampering. `known` are files with
 * earlier anchors; organizations that occur only there are reported as gone.
 */
export async function recordRestore(
  database: Database,
  keys: SecretKeys,
  backup: { takenAt: string },
  known: readonly string[],
): Promise<string[]> {
  for (const { id, isDemo } of await listOrganizations(database))
    if (!isDemo)
      await recordAudit(new OrgDb(database, id), {
        action: 'database.restored',
        actor: { kind: 'command', id: 'restore' },
        subject: null,
        details: { backup_taken_at: backup.takenAt },
        requestId: null,
      });
  const places = new Map<string, { seq: number; hash: string }>();
  for await (const line of readLines(known)) {
    const found = parseAnchorLine(line);
    if (found && found !== 'unreadable') places.set(found.anchor.orgId, { seq: 0, hash: FIRST_PREV_HASH });
  }
  for (const { orgId, seq, hash } of await listAuditHeads(database)) places.set(orgId, { seq, hash });
  const atMicros = microsFromDate(new Date());
  return [...places].map(([orgId, { seq, hash }]) => {
    const anchor: AuditAnchor = { kind: 'restored', orgId, seq, hash, atMicros };
    return JSON.stringify(anchorLine(anchor, keys.sign(ANCHOR_PURPOSE, anchorText(anchor))));
  });
}

/** Copies the anchors of the replaced installation: they document the rows that the restore discards. */
export function carryAnchors(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const file of new MonthlyLines(from).listFiles()) cpSync(file, join(to, file.slice(from.length + 1)));
}
