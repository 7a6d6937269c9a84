import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Orchestrator } from '../../adapters/orchestrator.js';
import { recordAudit } from '../../db/access/auditLog.js';
import { claimDisputes, releaseUndercharges, updateStatus } from '../../db/claims/claimRows.js';
import {
  type ClaimEvent,
  type ClaimedDispute,
  type ClaimOutcomeKind,
  findClaimEventOf,
  insertClaimEvent,
  insertClaimOutcome,
  listClaimedDisputes,
  lockClaim,
  readBusinessDays,
  type StoredClaim,
} from '../../db/claims/claims.js';
import { resolveDisputesOfClaim } from '../../db/claims/disputes.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import { IDEMPOTENCY_HOURS, parseIdempotencyKey } from '../../domain/access/idempotencyKey.js';
import { type BusinessDays, nextDeadline } from '../../domain/claims/deadlines.js';
import {
  assertMovable,
  type ClaimCommand,
  creditedFraction,
  isTerminal,
  movedFields,
  resolutionOf,
} from '../../domain/claims/lifecycle.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import { levelsOf, rawProbabilityOf } from '../../domain/reconciliation/weights/levels.js';
import { claimMovedMessage } from '../../domain/webhooks/messages.js';
import type { RequestAuthor } from '../access/recordAction.js';
import { settleCredits } from './findCredits.js';
import { claimNotFound, getClaimAfter, type ViewedClaim, viewClaim, type WholeClaim } from './wholeClaim.js';

/**
 * Time after which the row refuses the move, by the database's clock, microseconds; the API waits one second longer for
 * Temporal.
 */
const MOVE_MICROS = 4_000_000n;
/** Longest wait for earlier moves of the same claim, milliseconds. */
const LANE_MS = 5_000;
const RETRY_AFTER_SECONDS = 5;
const HOUR_MICROS = 3_600_000_000n;

interface WantedMove extends Pick<ClaimCommand, 'claimId' | 'to' | 'fields'> {
  operationId: string;
  /** The request's Idempotency-Key header. */
  idempotencyKey: string | undefined;
}

interface MoveDeps {
  moveClaim: Orchestrator['moveClaim'];
  logger: Logger;
}

/**
 * Moves a claim by its workflow; returns the moved claim. Postgres alone, without Temporal, reports that the claim does
 * not exist, that a request with the same Idempotency-Key has already made the move, or that the move is illegal.
 * Errors: not_found, illegal_transition, claim_conflict, invalid_body; workflow_engine_unavailable: the claim is
 * unchanged and stays so (docs/claims.md).
 */
export async function moveClaim(
  orgDb: OrgDb,
  wanted: WantedMove,
  { caller, requestId }: RequestAuthor,
  deps: MoveDeps,
): Promise<WholeClaim> {
  const { claimId, to, fields } = wanted;
  const known = commandIdOf(wanted, caller.keyId);
  const seen = await viewClaim(orgDb, claimId, known);
  if (seen.recorded && isKept(seen)) return getClaimAfter(orgDb, claimId, known);
  const { version } = seen.claim;
  assertMovable(seen.claim, { to, fields, version });
  // An Idempotency-Key that was used more than a day ago counts as new.
  const commandId = seen.recorded ? randomUUID() : known;
  const passed = await lanes.pass(`${orgDb.orgId} ${claimId}`, LANE_MS, async (hasWaited) => {
    const now = hasWaited ? await viewClaim(orgDb, claimId, commandId) : seen;
    // The previous move may have changed the claim that this request was made for.
    assertMovable(now.claim, { to, fields, version });
    const notAfterMicros = Number(now.atMicros + MOVE_MICROS);
    const command = {
      claimId,
      commandId,
      to,
      version,
      notAfterMicros,
      fields,
      keyId: caller.keyId,
      ...(caller.actor ? { actor: caller.actor } : {}),
      requestId,
    };
    await carryOut(orgDb, command, deps);
  });
  if (!passed) throw notMoved();
  return getClaimAfter(orgDb, claimId, commandId);
}

/** Resolves once the move is recorded. */
async function carryOut(
  orgDb: OrgDb,
  command: ClaimCommand,
  { moveClaim: ask, logger }: MoveDeps,
): Promise<void> {
  const answer = await ask({ orgId: orgDb.orgId, claimId: command.claimId }, command);
  if (answer.kind === 'moved') return;
  if (answer.kind === 'unsent') throw notMoved();
  if (answer.kind === 'refused')
    throw answer.error.code === 'command_too_late' ? notMoved(answer.error) : answer.error;
  logger.warn(
    { err: answer.cause, claimId: command.claimId },
    'Temporal does not report the result of a move',
  );
  if (await waitForMove(orgDb, command, (ms) => sleep(ms))) return;
  // The move was not made. Where another move was made meanwhile, the row shows why this one is impossible.
  assertMovable((await viewClaim(orgDb, command.claimId, command.commandId)).claim, command);
  throw notMoved(answer.cause);
}

/** Whether the recorded move answers a repeat: only as long as answers are kept for repeats. */
function isKept({ recorded, atMicros }: ViewedClaim): boolean {
  return recorded !== undefined && recorded.atMicros > atMicros - BigInt(IDEMPOTENCY_HOURS) * HOUR_MICROS;
}

/** Equal for repeats with the same Idempotency-Key and content; a random id for requests without a key. */
function commandIdOf(
  { operationId, idempotencyKey, claimId, to, fields }: WantedMove,
  keyId: string,
): string {
  if (idempotencyKey === undefined) return randomUUID();
  const words = [keyId, operationId, parseIdempotencyKey(idempotencyKey), claimId, { to, fields }];
  return createHash('sha256').update(JSON.stringify(words)).digest('hex');
}

function notMoved(cause?: unknown): DomainError {
  return new DomainError(
    'workflow_engine_unavailable',
    'The workflow engine does not answer. The claim is as it was; ask again, with the same Idempotency-Key where there was one.',
    { retryAfterSeconds: RETRY_AFTER_SECONDS, cause },
  );
}

/**
 * Attempts to read a row that is locked for too long, or whose database is unreachable. All attempts take longer than a
 * command is valid, so that no command is carried out after it was given up.
 */
const TRIES = 6;
const TRY_PAUSE_MS = 1_000;
const MILLI_MICROS = 1_000n;

/**
 * Determines the result of a command whose answer was lost: its row in the history, or undefined once it certainly did
 * nothing and never will. That is certain when its time is over and no transaction holds the claim: earlier holders
 * have committed or aborted, and later ones find the command too late. Error: service_unavailable where the row cannot
 * be read.
 */
export async function waitForMove(
  orgDb: OrgDb,
  command: Pick<ClaimCommand, 'claimId' | 'commandId' | 'notAfterMicros'>,
  pause: (milliseconds: number) => Promise<unknown>,
): Promise<ClaimEvent | undefined> {
  for (let tries = 1; ; ) {
    const seen = await viewHeld(orgDb, command).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== 'service_unavailable' || tries >= TRIES)
        throw error;
      return undefined;
    });
    if (!seen) {
      tries += 1;
      await pause(TRY_PAUSE_MS);
      continue;
    }
    if (seen.recorded) return seen.recorded;
    const leftMicros = BigInt(command.notAfterMicros) - seen.atMicros;
    if (leftMicros <= 0n) return undefined;
    await pause(Number(leftMicros / MILLI_MICROS) + 1);
  }
}

/** Waits for the holder of the claim's lock, then reads the result. */
function viewHeld(
  orgDb: OrgDb,
  { claimId, commandId }: Pick<ClaimCommand, 'claimId' | 'commandId'>,
): Promise<{ recorded: ClaimEvent | undefined; atMicros: bigint }> {
  return orgDb.transaction(async (inside) => {
    await lockClaim(inside, claimId);
    const [recorded, atMicros] = await Promise.all([findClaimEventOf(inside, commandId), readClock(inside)]);
    return { recorded, atMicros };
  });
}

/**
 * Carries out a move with all its effects; a command that is already recorded changes nothing. Simultaneous moves wait
 * for the row, so the history has one order. Errors: not_found, command_too_late, illegal_transition, claim_conflict
 * (the claim has another version by now), invalid_body (a partial credit of the whole amount).
 */
export async function recordClaimMove(orgDb: OrgDb, command: ClaimCommand): Promise<StoredClaim> {
  return orgDb.transaction((inside) => recordInside(inside, command));
}

async function recordInside(inside: OrgDb, command: ClaimCommand): Promise<StoredClaim> {
  const before = await lockClaim(inside, command.claimId);
  if (!before) throw claimNotFound();
  // Sent together after the lock: the recorded move, the time and the calendar, all as of now.
  const [recorded, atMicros, days] = await Promise.all([
    findClaimEventOf(inside, command.commandId),
    readClock(inside),
    readBusinessDays(inside),
  ]);
  if (recorded) return before;
  if (atMicros >= BigInt(command.notAfterMicros))
    throw new DomainError('command_too_late', 'the request for this move is no longer waiting');
  assertMovable(before, command);
  const at = atMicros < before.enteredAtMicros ? before.enteredAtMicros : atMicros;
  const after = await moveRow(inside, before, command, { at, days });
  await insertClaimEvent(inside, {
    claimId: before.id,
    version: after.version,
    commandId: command.commandId,
    from: before.status,
    to: command.to,
    atMicros: at,
    actor: command.keyId,
    fields: command.fields,
    nextAction: after.nextAction,
    nextActionAtMicros: after.nextActionAtMicros,
  });
  if (before.status === 'draft') await claimDisputes(inside, before.id);
  if (isTerminal(command.to)) await endClaim(inside, after, command, at);
  await Promise.all([
    publishMessages(inside, [claimMovedMessage(newUuid(at), after, before.status, at)]),
    recordMove(inside, before, after, command),
  ]);
  return after;
}

async function moveRow(
  inside: OrgDb,
  before: StoredClaim,
  { to, fields }: ClaimCommand,
  { at, days }: { at: bigint; days: BusinessDays },
): Promise<StoredClaim> {
  const { externalTicketId, creditIssuedCents } = movedFields(before, to, fields);
  const { periodEnd } = before;
  const next = nextDeadline(
    { status: to, enteredAtMicros: at, periodEnd, notifiedSteps: [], snoozedUntilMicros: null },
    days,
  );
  const after = await updateStatus(inside, before.id, {
    ...{ to, isTerminal: isTerminal(to), externalTicketId, creditIssuedCents, next, atMicros: at },
  });
  if (!after) throw new Error('the claim is held, so it is there');
  return after;
}

/**
 * Records the outcome, resolves the disputes, releases their days and the netted undercharges, and settles the credits.
 */
async function endClaim(
  inside: OrgDb,
  claim: StoredClaim,
  { to, fields, keyId }: ClaimCommand,
  atMicros: bigint,
): Promise<void> {
  const disputes = await listClaimedDisputes(inside, claim.id);
  await insertClaimOutcome(
    inside,
    {
      claimId: claim.id,
      status: to,
      denialReason: fields.denialReason,
      violationType: fields.violationType,
      creditIssuedCents: claim.creditIssuedCents,
      actor: keyId,
      atMicros,
    },
    {
      provider: claim.provider,
      fraction: creditedFraction(to, claim.creditIssuedCents, claim.recoverableCents),
      kinds: kindsOf(disputes),
    },
  );
  const resolution = resolutionOf(to, fields.violationType);
  if (resolution === undefined) throw new Error(`a claim that is ${to} has not ended`);
  await resolveDisputesOfClaim(inside, claim.id, { resolution, notes: null, by: keyId, atMicros });
  await releaseUndercharges(inside, claim.id);
  const creditCents = to === 'denied' ? null : claim.creditIssuedCents;
  await settleCredits(inside, claim.id, { creditCents, by: keyId, atMicros });
  await insertOutboxMessage(inside, 'weights.recompute', claim.id);
}

/** Dollars by kind; a kind with several disputes has the confidence of the largest. */
function kindsOf(disputes: readonly ClaimedDispute[]): ClaimOutcomeKind[] {
  const kinds = new Map<FindingKind, ClaimOutcomeKind>();
  for (const { kind, amountCents, probability, waterfall, weightSet } of disputes) {
    const known = kinds.get(kind);
    if (known) kinds.set(kind, { ...known, claimedCents: known.claimedCents + BigInt(amountCents) });
    else
      kinds.set(kind, {
        claimedType: kind,
        claimedCents: BigInt(amountCents),
        levels: levelsOf(waterfall),
        probability,
        rawProbability: rawProbabilityOf(probability, waterfall),
        weightSet,
      });
  }
  return [...kinds.values()];
}

function recordMove(
  inside: OrgDb,
  before: StoredClaim,
  after: StoredClaim,
  { keyId, actor, requestId, fields }: ClaimCommand,
): Promise<void> {
  return recordAudit(inside, {
    action: before.status === 'draft' ? 'claim.submitted' : 'claim.status_changed',
    actor: actor ?? { kind: 'key', id: keyId },
    subject: { type: 'claim', id: publicId('clm', after.id) },
    details: {
      from: before.status,
      to: after.status,
      version: after.version,
      total_recoverable_cents: after.recoverableCents,
      credit_issued_cents: after.creditIssuedCents,
      external_ticket_id: after.externalTicketId,
      violation_type: fields.violationType,
    },
    requestId,
  });
}

/**
 * Runs one task per name at a time in this process: a claim's workflow accepts only a few moves at once, and of
 * simultaneous moves only the first can succeed.
 */
export class Lanes {
  readonly #last = new Map<string, Promise<void>>();

  /** The result of `work`, whose parameter is whether it waited; undefined: its turn did not come in time. */
  async pass<T>(
    name: string,
    waitMs: number,
    work: (hasWaited: boolean) => Promise<T>,
  ): Promise<{ given: T } | undefined> {
    const before = this.#last.get(name);
    let release: () => void = () => undefined;
    const done = new Promise<void>((resolve) => {
      release = resolve;
    });
    const mine = (before ?? Promise.resolve()).then(() => done);
    this.#last.set(name, mine);
    try {
      if (before && !(await isWithin(before, waitMs))) return undefined;
      return { given: await work(before !== undefined) };
    } finally {
      release();
      // A later caller waits for this one.
      if (this.#last.get(name) === mine) void mine.then(() => this.#forget(name, mine));
    }
  }

  #forget(name: string, ended: Promise<void>): void {
    if (this.#last.get(name) === ended) this.#last.delete(name);
  }
}

async function isWithin(work: Promise<void>, waitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), waitMs);
  });
  const isDone = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return isDone;
}

const lanes = new Lanes();
