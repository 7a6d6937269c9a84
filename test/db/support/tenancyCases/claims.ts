import { randomUUID } from 'node:crypto';
import pino from 'pino';
import * as claimRows from '../../../../db/claims/claimRows.js';
import * as claims from '../../../../db/claims/claims.js';
import { listTicketDisputes } from '../../../../db/claims/ticketFacts.js';
import { updateSettings } from '../../../../db/installation/organizations.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import { NO_FIELDS } from '../../../../domain/claims/lifecycle.js';
import { DEFAULT_SETTINGS } from '../../../../domain/installation/settings.js';
import { isoFromMicros } from '../../../../domain/period.js';
import { moveClaim, recordClaimMove, waitForMove } from '../../../../usecases/claims/moveClaim.js';
import { noteClaimDue, recountDeadlines, snoozeClaim } from '../../../../usecases/claims/reminders.js';
import {
  findClaimState,
  getClaimAfter,
  getWholeClaim,
  viewClaim,
} from '../../../../usecases/claims/wholeClaim.js';
import { aCommand, storeClaim } from '../../../support/claims.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const PAGE = { limit: 10, offset: 0 };
const AT_MICROS = 1_772_323_200_000_000n;

/** The life of claims. */
export const CLAIM_CASES: Record<string, TenancyCase> = {
  findClaim: (db, { draftClaimId }) => claims.findClaim(db, draftClaimId),
  getWholeClaim: (db, { draftClaimId }) => getWholeClaim(db, draftClaimId),
  getClaimAfter: (db, { endedClaimId, commandId }) => getClaimAfter(db, endedClaimId, commandId),
  lockClaim: (db, { draftClaimId }) => claims.lockClaim(db, draftClaimId),
  findClaimEvidence: (db, { draftClaimId }) => claims.findClaimEvidence(db, draftClaimId),
  listClaims: (db) => claims.listClaims(db, {}, PAGE),
  listDisputeIdsOfClaim: (db, { draftClaimId }) => claims.listDisputeIdsOfClaim(db, draftClaimId),
  listClaimEvents: (db, { endedClaimId }) => claims.listClaimEvents(db, endedClaimId),
  findClaimEventOf: (db, { commandId }) => claims.findClaimEventOf(db, commandId),
  insertClaimEvent: (db, { draftClaimId, marker }) =>
    claims.insertClaimEvent(db, {
      ...{ claimId: draftClaimId, version: 7, commandId: randomUUID(), from: null, to: 'draft' as const },
      ...{
        atMicros: AT_MICROS,
        actor: marker,
        fields: NO_FIELDS,
        nextAction: null,
        nextActionAtMicros: null,
      },
    }),
  listClaimOutcomes: (db, { endedClaimId }) => claims.listClaimOutcomes(db, endedClaimId),
  listClaimedDisputes: (db, { endedClaimId }) => claims.listClaimedDisputes(db, endedClaimId),
  insertClaimOutcome: (db, { draftClaimId, marker }) =>
    claims.insertClaimOutcome(
      db,
      {
        ...{ claimId: draftClaimId, status: 'credit_issued', denialReason: null, violationType: null },
        ...{ creditIssuedCents: 1, actor: marker, atMicros: AT_MICROS },
      },
      { provider: 'openai', fraction: '1', kinds: [] },
    ),
  moveClaim: (db, { draftClaimId, marker }) =>
    moveClaim(
      db,
      {
        ...{ claimId: draftClaimId, to: 'submitted_to_provider', fields: NO_FIELDS },
        ...{ operationId: 'submitClaim', idempotencyKey: marker },
      },
      anAuthor(marker),
      { moveClaim: async () => ({ kind: 'unsent' }), logger: pino({ level: 'silent' }) },
    ),
  recordClaimMove: (db, { draftClaimId }) =>
    db.transaction((inside) =>
      recordClaimMove(inside, aCommand({ id: draftClaimId, version: 1 }, 'submitted_to_provider')),
    ),
  lockOpenClaims: (db) => db.transaction((inside) => claims.lockOpenClaims(inside)),
  readBusinessDays: async (db) => isoFromMicros((await claims.readBusinessDays(db)).after(AT_MICROS, 1)),
  recountDeadlines: (db) => db.transaction((inside) => recountDeadlines(inside)),
  snoozeClaim: (db, { draftClaimId, marker }) =>
    snoozeClaim(db, { claimId: draftClaimId, until: null }, anAuthor(marker)),
  updateStatus: (db, { draftClaimId }) =>
    claimRows.updateStatus(db, draftClaimId, {
      ...{ to: 'submitted_to_provider', isTerminal: false, externalTicketId: null, creditIssuedCents: null },
      ...{ next: undefined, atMicros: AT_MICROS },
    }),
  updateNotice: (db, { draftClaimId }) =>
    claimRows.updateNotice(db, draftClaimId, { next: undefined, steps: ['x'] }),
  updateNotices: (db, { draftClaimId }) =>
    claimRows.updateNotices(db, [{ id: draftClaimId, next: undefined }]),
  updateSnooze: (db, { draftClaimId }) =>
    claimRows.updateSnooze(db, draftClaimId, {
      ...{ untilMicros: AT_MICROS, next: undefined, atMicros: AT_MICROS },
    }),
  claimDisputes: (db, { draftClaimId }) => claimRows.claimDisputes(db, draftClaimId),
  releaseDisputes: (db, { draftClaimId }) => claimRows.releaseDisputes(db, draftClaimId),
  deleteDraft: async (db, { draftClaimId }) => {
    await claimRows.releaseDisputes(db, draftClaimId);
    await claimRows.deleteDraft(db, draftClaimId);
  },
  listTicketDisputes: (db, { draftClaimId }) => listTicketDisputes(db, draftClaimId),
  findClaimState: (db, { draftClaimId }) => findClaimState(db, draftClaimId),
  noteClaimDue: (db, { draftClaimId }) => noteClaimDue(db, draftClaimId),
  viewClaim: (db, { draftClaimId, commandId }) => viewClaim(db, draftClaimId, commandId),
  waitForMove: (db, { endedClaimId, commandId }) =>
    waitForMove(db, { claimId: endedClaimId, commandId, notAfterMicros: 1 }, async () => undefined),
};

export interface OwnedClaims {
  /** A draft whose notice is due, and a claim that was credited in part. */
  draftClaimId: string;
  endedClaimId: string;
  /** A command that the latter's history has. */
  commandId: string;
}

export async function makeClaims(db: OrgDb, marker: string): Promise<OwnedClaims> {
  const longAgo = { by: marker, atMicros: AT_MICROS };
  const of = { disputes: [{ cents: 12_345, accountId: marker }], notes: marker, evidence: { marker } };
  const draft = await storeClaim(db, { ...of, ...longAgo });
  const ended = await storeClaim(db, { ...of, by: marker, status: 'partial' });
  // A separate calendar, and a deadline that does not follow from it.
  await updateSettings(db, { ...DEFAULT_SETTINGS, timeZone: 'America/New_York' });
  const [, filed] = await claims.listClaimEvents(db, ended.id);
  return { draftClaimId: draft.id, endedClaimId: ended.id, commandId: filed?.commandId ?? '' };
}
