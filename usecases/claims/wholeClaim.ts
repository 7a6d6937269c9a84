import {
  type ClaimEvent,
  type ClaimOutcome,
  findClaim,
  findClaimEventOf,
  findClaimEvidence,
  listClaimEvents,
  listClaimOutcomes,
  listCreditsOf,
  listDisputeIdsOfClaim,
  type StoredClaim,
  type StoredCredit,
} from '../../db/claims/claims.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';
import { type ClaimState, isTerminal, type MovedFields, movedFields } from '../../domain/claims/lifecycle.js';
import { DomainError } from '../../domain/errors.js';

/** A claim with all its parts. */
export interface WholeClaim {
  claim: StoredClaim;
  disputeIds: readonly string[];
  events: readonly ClaimEvent[];
  outcomes: readonly ClaimOutcome[];
  credits: readonly StoredCredit[];
  evidence: Record<string, unknown>;
}

export function claimNotFound(): DomainError {
  return new DomainError('not_found', 'there is no claim with this id');
}

/** The state that the claim's workflow waits by; null: the claim does not exist. */
export async function findClaimState(orgDb: OrgDb, id: string): Promise<ClaimState | null> {
  return stateOf(await findClaim(orgDb, id));
}

export function stateOf(claim: StoredClaim): ClaimState;
export function stateOf(claim: StoredClaim | undefined): ClaimState | null;
export function stateOf(claim: StoredClaim | undefined): ClaimState | null {
  if (!claim) return null;
  const { version, status, nextActionAtMicros } = claim;
  return {
    version,
    status,
    nextActionAtMicros: nextActionAtMicros === null ? null : Number(nextActionAtMicros),
  };
}

/** A claim, the recorded move of a command, and the time, all from the database. */
export interface ViewedClaim {
  claim: StoredClaim;
  recorded: ClaimEvent | undefined;
  atMicros: bigint;
}

/** The claim and the command's move. Error: not_found. */
export async function viewClaim(orgDb: OrgDb, claimId: string, commandId: string): Promise<ViewedClaim> {
  return orgDb.transaction(async (inside) => {
    const [claim, recorded, atMicros] = await Promise.all([
      findClaim(inside, claimId),
      findClaimEventOf(inside, commandId),
      readClock(inside),
    ]);
    if (!claim) throw claimNotFound();
    return { claim, recorded, atMicros };
  });
}

/** All parts of a claim in one snapshot, since a move may be recorded between two reads. Error: not_found. */
export async function getWholeClaim(orgDb: OrgDb, id: string): Promise<WholeClaim> {
  const whole = await orgDb.transaction(async (inside) => {
    const [claim, disputeIds, events, outcomes, credits, evidence] = await Promise.all([
      findClaim(inside, id),
      listDisputeIdsOfClaim(inside, id),
      listClaimEvents(inside, id),
      listClaimOutcomes(inside, id),
      listCreditsOf(inside, [id]),
      findClaimEvidence(inside, id),
    ]);
    return claim && evidence && { claim, disputeIds, events, outcomes, credits, evidence };
  }, 'repeatable read');
  if (!whole) throw claimNotFound();
  return whole;
}

/** A claim as it was after a recorded command, whatever changed since: the answer to a repeat of the command. */
export async function getClaimAfter(orgDb: OrgDb, id: string, commandId: string): Promise<WholeClaim> {
  const whole = await getWholeClaim(orgDb, id);
  const event = whole.events.find((one) => one.commandId === commandId);
  if (!event) throw new Error('a command that is recorded stands in the history of its claim');
  return whole.claim.version === event.version ? whole : asOfVersion(whole, event.version);
}

function asOfVersion(whole: WholeClaim, version: number): WholeClaim {
  const events = whole.events.filter((event) => event.version <= version);
  const last = events.at(-1);
  if (!last) throw new Error('a claim begins with its making');
  const filed = events.find(({ to }) => to === 'submitted_to_provider');
  const said = events.reduce<MovedFields>((before, { to, fields }) => movedFields(before, to, fields), {
    externalTicketId: null,
    creditIssuedCents: null,
  });
  const isOver = isTerminal(last.to);
  return {
    ...whole,
    events,
    outcomes: isOver ? whole.outcomes : [],
    credits: whole.credits.flatMap((credit) => creditAsOf(credit, last.atMicros)),
    claim: {
      ...whole.claim,
      ...said,
      version: last.version,
      status: last.to,
      submittedAtMicros: filed?.atMicros ?? null,
      resolvedAtMicros: isOver ? last.atMicros : null,
      enteredAtMicros: last.atMicros,
      updatedAtMicros: last.atMicros,
      evidenceStaleAtMicros: ifBy(whole.claim.evidenceStaleAtMicros, last.atMicros),
      nextAction: last.nextAction,
      nextActionAtMicros: last.nextActionAtMicros,
      snoozedUntilMicros: null,
    },
  };
}

/** The time if it was not after the moment; else null. */
const ifBy = (micros: bigint | null, byMicros: bigint): bigint | null =>
  micros !== null && micros <= byMicros ? micros : null;

/** A credit as it was at a moment; empty where it was found later. */
function creditAsOf(credit: StoredCredit, atMicros: bigint): StoredCredit[] {
  if (credit.foundAtMicros > atMicros) return [];
  if (credit.decidedAtMicros === null || credit.decidedAtMicros <= atMicros) return [credit];
  return [{ ...credit, status: 'proposed', decidedAtMicros: null, decidedBy: null }];
}
